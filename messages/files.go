package messages

import (
	"path"
	"strings"
	"time"
)

// MaxResultFiles bounds the files that a result lists. The operation files lists all of them.
const MaxResultFiles = 100

// ResultFiles are the files that a run left: those that were saved last.
type ResultFiles struct {
	Step     int    `json:"step"`     // in which they changed last; 0: before the first
	Manifest string `json:"manifest"` // hash of the list of all of them, which requests for files may name
	Count    int    `json:"count"`
	Bytes    int64  `json:"bytes"`             // of all of them
	LeftOut  int    `json:"leftOut,omitempty"` // links and the like, which are not saved
	// List is the first of them by name, at most MaxResultFiles. It is read when a result is asked for: never stored, and in no event.
	List []SavedFile `json:"list,omitempty"`
}

// SavedFile is a file of a run, as lists show it.
type SavedFile struct {
	Name string `json:"name"` // path in the workspace, with slashes
	Size int64  `json:"size"`
	Type string `json:"type"` // media type, by the ending of the name: see MediaType
	Hash string `json:"hash"` // SHA-256 of the content, in hex
	Exec bool   `json:"exec,omitempty"`
}

// anyMedia is the type of what may be anything.
const anyMedia = "application/octet-stream"

// MediaType is the type by which a file of this name is served: of a fixed list by its ending, application/octet-stream otherwise. None
// of the types makes a browser run what the file says, so pages, scripts and SVG have no type of their own.
func MediaType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".log", ".md", ".diff", ".patch", ".go", ".py", ".rs", ".c", ".h", ".java", ".rb", ".sh", ".sql", ".toml", ".ini", ".yaml", ".yml":
		return "text/plain; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".json":
		return "application/json"
	case ".jsonl", ".ndjson":
		return "application/x-ndjson"
	case ".pdf":
		return "application/pdf"
	case ".zip":
		return "application/zip"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".mp3":
		return "audio/mpeg"
	case ".wav":
		return "audio/wav"
	case ".mp4":
		return "video/mp4"
	default:
		return anyMedia
	}
}

// Workspace is the head of a named workspace: the files that the last run in it has left.
type Workspace struct {
	Manifest string    `json:"manifest,omitempty"` // its hash; empty: it has no files
	Files    int       `json:"files,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Run      string    `json:"run,omitempty"`  // that changed them last
	Step     int       `json:"step,omitempty"` // in which it did
	Time     time.Time `json:"time,omitzero"`  // when that run gave the workspace back

	// Turn is the number of the permit of the run that gave it back last, Seq the sequence of the entry in the log of that run which
	// says what the files are. A head is only replaced by one that is later by both, in this order.
	Turn uint64 `json:"turn"`
	Seq  uint64 `json:"seq,omitempty"`
}
