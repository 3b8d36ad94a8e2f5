// Package files answers with the files of runs: which there were after a step, and what they hold. It also stores contents that tasks
// are to refer to.
//
// A file is found by a run that has it, never by its hash alone, so a request sees no more than the tenant's own runs show.
package files

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Files works with.
type Config struct {
	Store   *files.Store
	Uploads *files.Uploads
	Log     runlog.Log
	Runs    *runs.Runs
	Room    request.Room
}

// Files answers with the files of runs.
type Files struct {
	cfg  Config
	kept manifests
}

// New returns a Files.
func New(cfg Config) *Files { return &Files{cfg: cfg} }

// Handlers are the requests about files.
func (fs *Files) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectFiles: request.Read(fs.list),
		control.SubjectFile:  request.Read(fs.file),

		control.SubjectWorkspaceFiles: request.Read(fs.listWorkspace),
		control.SubjectWorkspaceFile:  request.Read(fs.workspaceFile),

		control.SubjectMissing:    request.Read(fs.missing),
		control.SubjectUpload:     request.Read(fs.upload),
		control.SubjectUploadPart: request.Read(fs.part),
	}
}

// list answers with a page of the files of a run.
func (fs *Files) list(ctx context.Context, req control.FilesRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	v, err := fs.version(ctx, ref, req.Step, req.Manifest)
	if err != nil {
		return nil, err
	}
	return fs.page(&v, req.After, req.Limit), nil
}

// page is a page of files after a name.
func (fs *Files) page(v *version, after string, limit int) *control.FileList {
	page := &control.FileList{Step: v.step, Manifest: v.hash, Files: []messages.SavedFile{}}
	if v.hash == "" {
		return page
	}
	page.Count, page.Bytes, page.LeftOut = len(v.Files), v.Bytes(), v.LeftOut
	from, found := slices.BinarySearchFunc(v.Files, after, func(f manifest.File, name string) int { return strings.Compare(f.Path, name) })
	if found {
		from++
	}
	room := fs.cfg.Room.Page()
	if limit == 0 {
		limit = control.MaxFiles
	}
	for _, f := range v.Files[from:] {
		s := runs.Saved(f)
		if room -= sizeOf(&s); len(page.Files) == limit || len(page.Files) > 0 && room < 0 {
			page.Next = page.Files[len(page.Files)-1].Name
			break
		}
		page.Files = append(page.Files, s)
	}
	return page
}

// sizeOf is at least how many bytes of JSON a file of a list takes.
func sizeOf(s *messages.SavedFile) int {
	const frame = 64 // the names of the fields, and numbers
	return frame + len(`\u0000`)*len(s.Name) + len(s.Type) + len(s.Hash)
}

// file answers with a part of a file.
func (fs *Files) file(ctx context.Context, req control.FileRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	v, err := fs.version(ctx, ref, req.Step, req.Manifest)
	if err != nil {
		return nil, err
	}
	return fs.content(ctx, ref.Tenant, &v, &req, "the run")
}

// content is a part of a file of those of a run or of a workspace.
func (fs *Files) content(ctx context.Context, tenant string, v *version, req *control.FileRequest, of string) (*control.FilePart, error) {
	f, ok := v.Find(req.Name)
	if !ok {
		return nil, noFile(fmt.Sprintf("%q is not among the files of %s", strict.Clip(req.Name, 256), of))
	}
	part := &control.FilePart{SavedFile: runs.Saved(f), Manifest: v.hash, Offset: req.Offset}
	room := int64(fs.cfg.Room.Page() / 4 * 3) // it travels in base64
	if req.Length > 0 {
		room = min(room, req.Length)
	}
	if req.Offset >= f.Size {
		part.Data = []byte{}
		return part, nil
	}
	content, err := fs.cfg.Store.Open(ctx, tenant, f.Hash)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := content.Copy(ctx, &data, req.Offset, room); err != nil {
		return nil, err
	}
	part.Data = data.Bytes()
	return part, nil
}

// noFile is the problem of a request for what a run does not have.
func noFile(detail string) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
		Code: messages.CodeNotFound, Detail: control.ErrNoFile.Error() + ": " + detail,
	}
}
