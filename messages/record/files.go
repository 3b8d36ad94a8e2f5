package record

// FilesSaved says what the run's files are from here on: those of a manifest, which is stored with their contents before this
// record is appended. It stands in the entry of the report of what changed them, so an owner that may not append has changed
// nothing. Files that no such record names are of no claim after the one that wrote them.
type FilesSaved struct {
	Step     int    `json:"step"`     // in which they changed; 0: before the first
	Manifest string `json:"manifest"` // its hash: see package manifest
	Files    int    `json:"files"`    // how many there are
	Bytes    int64  `json:"bytes"`    // of all of them
	Added    int    `json:"added,omitempty"`
	Changed  int    `json:"changed,omitempty"`
	Removed  int    `json:"removed,omitempty"`
	LeftOut  int    `json:"leftOut,omitempty"` // links and the like, which are not saved
	// Taken is set if these are the files of a named workspace, as the run found them there, in place of those that it had. Manifest may
	// then be empty: the workspace had no files.
	Taken *Taken `json:"taken,omitempty"`
}

// Taken says from where a run has taken its files.
type Taken struct {
	Workspace string `json:"workspace"`
	Turn      uint64 `json:"turn"`          // the number of the permit for it
	Run       string `json:"run,omitempty"` // that left them there; empty: there were none
}

// InWorkspace is what the files of a run are since it took those of a named workspace: what the next run there begins with, once this one
// gives the workspace back.
type InWorkspace struct {
	Name     string `json:"name"`
	Turn     uint64 `json:"turn"`
	Manifest string `json:"manifest,omitempty"`
	Files    int    `json:"files,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Step     int    `json:"step,omitempty"`
	Seq      uint64 `json:"seq,omitempty"` // of the entry with that record
}

// Kind implements Record.
func (*FilesSaved) Kind() Kind { return KindFilesSaved }

func (r *FilesSaved) head(h *Head) {
	w := InWorkspace{Manifest: r.Manifest, Files: r.Files, Bytes: r.Bytes, Step: r.Step}
	switch {
	case r.Taken != nil:
		w.Name, w.Turn = r.Taken.Workspace, r.Taken.Turn
	case h.Workspace != nil:
		w.Name, w.Turn = h.Workspace.Name, h.Workspace.Turn
	default:
		return
	}
	h.Workspace = &w
}

func (h *Head) placeWorkspace(seq uint64) {
	if h.Workspace == nil {
		return
	}
	w := *h.Workspace // others may hold the head before it was placed
	w.Seq = seq
	h.Workspace = &w
}

// forked is the record in a fork, which is in no workspace.
func (r *FilesSaved) forked() (*FilesSaved, bool) {
	if r.Taken == nil {
		return r, true
	}
	kept := *r
	kept.Taken = nil
	return &kept, true
}
