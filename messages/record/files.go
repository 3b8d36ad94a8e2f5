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
}

// Kind implements Record.
func (*FilesSaved) Kind() Kind { return KindFilesSaved }
