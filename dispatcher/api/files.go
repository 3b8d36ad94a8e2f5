package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// getFileOperation serves the content of a file.
func getFileOperation() operation {
	return operation{
		method: "GET", path: "/v1/tasks/{id}/file", id: "getFile", needs: control.Read, tag: "tasks", summary: "Get a file of a run",
		failures: failuresOf(control.SubjectFile),
		text: "Its bytes, as a download; with Range a part of it (206). The ETag is the SHA-256 of the content. The type is one of a fixed " +
			"list by the ending of the name, and application/octet-stream for all else: no page, script or SVG is served as such.",
		headers: []control.Parameter{{Name: "Range", Text: "The part to get, such as bytes=0-1023."}, {Name: "If-None-Match", Text: "Answer 304 if this is the ETag."}},
		query: []control.Parameter{
			{Name: "name", Text: "Path of the file in the workspace.", Example: "report/summary.md"},
			{Name: "step", Text: "The file as it was after this step; 0: before the first. By default as it was last.", Kind: "integer"},
			{Name: "manifest", Text: "In place of a step: the `manifest` of a list of files or of the result."},
		},
		reply: "", stream: getFile, media: "application/octet-stream",
	}
}

// getWorkspaceFileOperation serves the content of a file of a named workspace.
func getWorkspaceFileOperation() operation {
	o := getFileOperation()
	o.path, o.id, o.tag, o.summary = "/v1/workspaces/{workspace}/file", "getWorkspaceFile", "workspaces", "Get a file of a named workspace"
	o.failures = failuresOf(control.SubjectWorkspaceFile)
	o.query = []control.Parameter{
		{Name: "name", Text: "Path of the file in the workspace.", Example: "report/summary.md"},
		{Name: "manifest", Text: "The `manifest` of a list of its files: 404 if the workspace has other files by now."},
	}
	o.stream = getWorkspaceFile
	return o
}

func getWorkspaceFile(w http.ResponseWriter, q *query) error {
	tenant, err := q.tenant()
	if err != nil {
		return err
	}
	name := q.r.PathValue("workspace")
	return serveFile(w, q, control.FileRequest{Name: q.text("name"), Manifest: q.text("manifest")}, func(ctx context.Context, req control.FileRequest) (*control.FilePart, error) {
		return q.api.cfg.Client.Workspaces().Part(ctx, tenant, name, req)
	})
}

// getFile serves a file of a run.
func getFile(w http.ResponseWriter, q *query) error {
	run, err := q.run()
	if err != nil {
		return err
	}
	req := control.FileRequest{Name: q.text("name"), Manifest: q.text("manifest")}
	if v := q.text("step"); v != "" {
		step, err := strconv.Atoi(v)
		if err != nil {
			return &messages.FieldError{Field: "step", Reason: "must be a number"}
		}
		req.Step = &step
	}
	return serveFile(w, q, req, func(ctx context.Context, req control.FileRequest) (*control.FilePart, error) {
		return q.api.cfg.Client.Files().Part(ctx, run, req)
	})
}

// serveFile serves what parts are of. Nothing in its answer lets a browser take the file for a page of the API's origin.
func serveFile(w http.ResponseWriter, q *query, req control.FileRequest, parts partFunc) error {
	if req.Name == "" {
		return &messages.FieldError{Field: "name", Reason: "is missing"}
	}
	ctx := q.r.Context()
	if q.r.Header.Get("Range") != "" {
		req.Length = 1 // what the file is: the range may begin anywhere
	}
	first, err := parts(ctx, req)
	if err != nil {
		return err
	}
	if base := path.Base(first.Name); len(base) <= maxDownloadName {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": base}))
	} else {
		w.Header().Set("Content-Disposition", "attachment")
	}
	for name, value := range map[string]string{
		"Content-Type": first.Type, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Cache-Control": "private, no-cache", "ETag": strconv.Quote(first.Hash), control.HeaderManifest: first.Manifest,
	} {
		w.Header().Set(name, value)
	}
	q.answering()
	http.ServeContent(w, q.r, "", time.Time{}, &fileReader{
		ctx: ctx, parts: parts, part: first, rc: http.NewResponseController(w),
	})
	return nil
}

// maxDownloadName bounds the name that a download suggests, in bytes.
const maxDownloadName = 255

// partFunc reads a part of a file.
type partFunc func(context.Context, control.FileRequest) (*control.FilePart, error)

// fileReader reads a file part by part. Each read gives the client time to take what it returns.
type fileReader struct {
	ctx   context.Context //nolint:containedctx // of the request that is answered
	parts partFunc
	part  *control.FilePart // that was read last
	at    int64
	rc    *http.ResponseController
}

// Seek implements io.Seeker.
func (f *fileReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.part.Size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of a file")
	}
	f.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (f *fileReader) Read(p []byte) (int, error) {
	if f.at >= f.part.Size {
		return 0, io.EOF
	}
	if f.at < f.part.Offset || f.at >= f.part.Offset+int64(len(f.part.Data)) {
		part, err := f.parts(f.ctx, control.FileRequest{Name: f.part.Name, Manifest: f.part.Manifest, Offset: f.at})
		if err != nil {
			return 0, err
		}
		if part.SavedFile != f.part.SavedFile {
			return 0, fmt.Errorf("read file %q: its parts are of different files", f.part.Name)
		}
		f.part = part
	}
	if err := writeBy(f.rc, time.Now().Add(bodyTimeout)); err != nil {
		return 0, err
	}
	n := copy(p, f.part.Data[f.at-f.part.Offset:])
	f.at += int64(n)
	return n, nil
}
