package control

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

// Requests about the files of runs.
const (
	SubjectFiles = "longshore.files" // FilesRequest -> FileList
	SubjectFile  = "longshore.file"  // FileRequest -> FilePart
)

// MaxFiles is how many files a page lists at most.
const MaxFiles = 1000

// FilesRequest asks which files a run had after a step. Files are saved with the step that changed them.
type FilesRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	ID     string `json:"id"`
	Step   *int   `json:"step,omitempty"` // absent: the last one that changed files; 0: before the first
	// Manifest asks for the files of a list that the run had, in place of a step: so that pages, and the reading of a file, are of the
	// same one. It is the Manifest of a FileList, or of a result.
	Manifest string `json:"manifest,omitempty"`
	After    string `json:"after,omitempty"` // only files after this name: the Next of the page before
	Limit    int    `json:"limit,omitempty"` // default and at most 1000
}

// Check returns a *FieldError for what is wrong beside the name of the run.
func (r *FilesRequest) Check() error {
	if r.Limit < 0 || r.Limit > MaxFiles {
		return &messages.FieldError{Field: "limit", Reason: fmt.Sprintf("must be from 1 to %d", MaxFiles)}
	}
	if r.After != "" {
		if err := manifest.CheckPath(r.After); err != nil {
			return &messages.FieldError{Field: "after", Reason: err.Error()}
		}
	}
	return checkVersion(r.Step, r.Manifest)
}

// checkVersion checks what says which files of a run are meant.
func checkVersion(step *int, hash string) error {
	switch {
	case step != nil && hash != "":
		return &messages.FieldError{Field: "manifest", Reason: "cannot be combined with step"}
	case step != nil && *step < 0:
		return &messages.FieldError{Field: "step", Reason: "must be 0 or more"}
	case hash != "" && !manifest.ValidHash(hash):
		return &messages.FieldError{Field: "manifest", Reason: "must be 64 hexadecimal digits in lower case"}
	default:
		return nil
	}
}

// FileList is a page of the files of a run, by name.
type FileList struct {
	Step     int                  `json:"step"`               // in which they changed last; 0: before the first
	Manifest string               `json:"manifest,omitempty"` // names this list; absent: no files were saved
	Count    int                  `json:"count"`              // of all pages
	Bytes    int64                `json:"bytes"`              // of all pages
	LeftOut  int                  `json:"leftOut,omitempty"`  // links and the like, which are not saved
	Files    []messages.SavedFile `json:"files"`
	Next     string               `json:"next,omitempty"` // the After of the next page; absent: this is the last
}

// FileRequest asks for a part of a file of a run.
type FileRequest struct {
	Tenant   string `json:"tenant,omitempty"` // default "default"
	ID       string `json:"id"`
	Name     string `json:"name"`
	Step     *int   `json:"step,omitempty"`     // as in FilesRequest
	Manifest string `json:"manifest,omitempty"` // as in FilesRequest
	Offset   int64  `json:"offset,omitempty"`
	Length   int64  `json:"length,omitempty"` // default: as much as fits one message, which is the most anyway
}

// Check returns a *FieldError for what is wrong beside the name of the run.
func (r *FileRequest) Check() error {
	if err := manifest.CheckPath(r.Name); err != nil {
		return &messages.FieldError{Field: "name", Reason: err.Error()}
	}
	switch {
	case r.Offset < 0:
		return &messages.FieldError{Field: "offset", Reason: "must be 0 or more"}
	case r.Length < 0:
		return &messages.FieldError{Field: "length", Reason: "must be 0 or more"}
	}
	return checkVersion(r.Step, r.Manifest)
}

// FilePart is a part of a file.
type FilePart struct {
	messages.SavedFile

	Manifest string `json:"manifest"` // of the list that it is in: name it to read on in the same file
	Offset   int64  `json:"offset"`
	Data     []byte `json:"data"` // empty: the file ends here
}
