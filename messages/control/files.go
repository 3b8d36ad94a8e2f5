package control

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
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
		return &messages.FieldError{Field: "manifest", Reason: wrongHash}
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

// WorkspaceFilesRequest asks which files a named workspace has: those that the next run there begins with.
type WorkspaceFilesRequest struct {
	Tenant    string `json:"tenant,omitempty"` // default "default"
	Workspace string `json:"workspace"`
	// Manifest is the one of the page before. If the workspace has other files by now, there is no such list.
	Manifest string `json:"manifest,omitempty"`
	After    string `json:"after,omitempty"` // only files after this name: the Next of the page before
	Limit    int    `json:"limit,omitempty"` // default and at most 1000
}

// Check fills the tenant's default and returns a *FieldError for what is wrong.
func (r *WorkspaceFilesRequest) Check() error {
	if err := checkWorkspace(&r.Tenant, r.Workspace); err != nil {
		return err
	}
	return (&FilesRequest{Manifest: r.Manifest, After: r.After, Limit: r.Limit}).Check()
}

// WorkspaceFileRequest asks for a part of a file of a named workspace.
type WorkspaceFileRequest struct {
	Tenant    string `json:"tenant,omitempty"` // default "default"
	Workspace string `json:"workspace"`
	Name      string `json:"name"`
	Manifest  string `json:"manifest,omitempty"` // as in WorkspaceFilesRequest
	Offset    int64  `json:"offset,omitempty"`
	Length    int64  `json:"length,omitempty"` // default: as much as fits one message, which is the most anyway
}

// Check fills the tenant's default and returns a *FieldError for what is wrong.
func (r *WorkspaceFileRequest) Check() error {
	if err := checkWorkspace(&r.Tenant, r.Workspace); err != nil {
		return err
	}
	return (&FileRequest{Name: r.Name, Manifest: r.Manifest, Offset: r.Offset, Length: r.Length}).Check()
}

func checkWorkspace(tenant *string, name string) error {
	if err := checkNamed(tenant, "", false); err != nil {
		return err
	}
	return strict.CheckToken("workspace", name)
}

// Requests about named workspaces, of the dispatcher's micro service.
const (
	SubjectWorkspaceFiles  = "longshore.workspace_files"  // WorkspaceFilesRequest -> FileList
	SubjectWorkspaceFile   = "longshore.workspace_file"   // WorkspaceFileRequest -> FilePart
	SubjectWorkspaces      = "longshore.workspaces"       // WorkspaceRequest without a name -> WorkspaceList
	SubjectWorkspace       = "longshore.workspace"        // WorkspaceRequest -> WorkspaceStatus
	SubjectWorkspaceDelete = "longshore.workspace_delete" // WorkspaceRequest -> WorkspaceStatus as it was; conflict while a run has it
)

// MaxWorkspaces is how many workspaces a list has at most.
const MaxWorkspaces = 1000

// WorkspaceRequest names a workspace, or all of a tenant.
type WorkspaceRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	Name   string `json:"name,omitempty"`
}

// Check fills the tenant's default and checks the names; one checks that a workspace is named.
func (r *WorkspaceRequest) Check(one bool) error { return checkNamed(&r.Tenant, r.Name, one) }

// WorkspaceStatus is what is known about a named workspace.
type WorkspaceStatus struct {
	Tenant   string    `json:"tenant"`
	Name     string    `json:"name"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Manifest string    `json:"manifest,omitempty"` // the hash of the list of files; empty: there are none
	Run      string    `json:"run,omitempty"`      // that changed the files last
	Step     int       `json:"step,omitempty"`     // in which it did
	Updated  time.Time `json:"updated,omitzero"`   // when that run gave the workspace back
	Holder   string    `json:"holder,omitempty"`   // the run that has the workspace now; what it has changed is not in the above yet
	Waiting  []string  `json:"waiting,omitempty"`  // runs that wait for it, the next one first, 100 at most; not in a list
}

// WorkspaceList is the named workspaces of a tenant by name.
type WorkspaceList struct {
	Workspaces []WorkspaceStatus `json:"workspaces"`
	More       bool              `json:"more,omitempty"` // there are others
}

// StatusOfWorkspace is the public form of a head.
func StatusOfWorkspace(w *messages.Workspace, tenant, name string) WorkspaceStatus {
	return WorkspaceStatus{
		Tenant: tenant, Name: name, Files: w.Files, Bytes: w.Bytes, Manifest: w.Manifest, Run: w.Run, Step: w.Step, Updated: w.Time,
	}
}

// Requests that store contents before a task refers to them.
const (
	SubjectMissing    = "longshore.missing"    // MissingRequest -> MissingReply
	SubjectUpload     = "longshore.upload"     // UploadRequest -> UploadReply
	SubjectUploadPart = "longshore.uploadpart" // PartRequest -> PartReply
)

// MaxContents is how many contents one request names at most.
const MaxContents = 1000

// What an upload means when it fails.
var (
	ErrNoUpload    = errors.New("no such upload")
	ErrUploadsFull = errors.New("too much is uploaded that no run refers to yet")
)

// Content names what is stored.
type Content struct {
	Hash string `json:"hash"` // SHA-256, in hex
	Size int64  `json:"size"` // in bytes
}

// MissingRequest asks which contents the tenant has not stored. The others stay for half an hour at least, within which a task may refer
// to them.
type MissingRequest struct {
	Tenant string   `json:"tenant,omitempty"` // default "default"
	Hashes []string `json:"hashes"`           // at most 1000
}

// Check returns a *FieldError.
func (r *MissingRequest) Check() error {
	if n := len(r.Hashes); n < 1 || n > MaxContents {
		return &messages.FieldError{Field: "hashes", Reason: fmt.Sprintf("must be 1 to %d", MaxContents)}
	}
	for i, hash := range r.Hashes {
		if !manifest.ValidHash(hash) {
			return &messages.FieldError{Field: "hashes[" + strconv.Itoa(i) + "]", Reason: wrongHash}
		}
	}
	return nil
}

const wrongHash = "must be 64 hexadecimal digits in lower case"

// MissingReply has those of the hashes that must be uploaded.
type MissingReply struct {
	Missing []string `json:"missing"`
}

// UploadRequest stores contents that fit one request.
type UploadRequest struct {
	Tenant   string     `json:"tenant,omitempty"` // default "default"
	Contents []Uploaded `json:"contents"`         // at most 1000
}

// Uploaded is a content that is uploaded.
type Uploaded struct {
	Hash string `json:"hash"`
	Data []byte `json:"data"`
}

// Check returns a *FieldError. Data of another hash is one.
func (r *UploadRequest) Check() error {
	if n := len(r.Contents); n < 1 || n > MaxContents {
		return &messages.FieldError{Field: "contents", Reason: fmt.Sprintf("must be 1 to %d", MaxContents)}
	}
	for i := range r.Contents {
		if manifest.HashOf(r.Contents[i].Data) != r.Contents[i].Hash {
			return &messages.FieldError{Field: "contents[" + strconv.Itoa(i) + "].hash", Reason: "is not the SHA-256 of the data"}
		}
	}
	return nil
}

// UploadReply says what is stored.
type UploadReply struct {
	Contents []Content `json:"contents"`
}

// PartRequest uploads a part of a content that does not fit one request. Parts come in order, all but the last of the same length; each
// may be sent again. The upload ends with the last part, or when it has taken half an hour.
type PartRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"

	Content

	Upload string `json:"upload,omitempty"` // as the reply to the first part names it
	Offset int64  `json:"offset,omitempty"`
	Data   []byte `json:"data,omitempty"`
	GiveUp bool   `json:"giveUp,omitempty"` // remove what the upload has stored; it has no data then
}

// Check returns a *FieldError.
func (r *PartRequest) Check() error {
	switch {
	case !manifest.ValidHash(r.Hash):
		return &messages.FieldError{Field: "hash", Reason: wrongHash}
	case r.Size < 1:
		return &messages.FieldError{Field: "size", Reason: "must be at least 1: upload an empty content at once"}
	case r.Offset < 0 || r.Offset >= r.Size:
		return &messages.FieldError{Field: "offset", Reason: "must be within the content"}
	case r.GiveUp && len(r.Data) > 0:
		return &messages.FieldError{Field: "data", Reason: "cannot be combined with giveUp"}
	case (r.Offset > 0 || r.GiveUp) && r.Upload == "":
		return &messages.FieldError{Field: "upload", Reason: "is missing"}
	case !r.GiveUp && len(r.Data) == 0:
		return &messages.FieldError{Field: "data", Reason: "is missing"}
	default:
		return nil
	}
}

// PartReply says how far an upload is.
type PartReply struct {
	Upload string `json:"upload,omitempty"` // to be named with the next part; absent: the content was stored already
	Next   int64  `json:"next"`             // offset of the next part
	Done   bool   `json:"done,omitempty"`   // the content is stored and has its hash
}
