package dispatcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNoFile means that a run has no such file, or never had the list of files that was named.
var ErrNoFile = control.ErrNoFile

// maxListed bounds the files that List gathers.
const maxListed = 1_000_000

// FilesAt says which files of a run are meant. The zero value: those that were saved last.
type FilesAt struct {
	Step     *int   // as they were after this step; 0: before the first
	Manifest string // in place of a step: the Manifest of an earlier list, or of a result
}

// List returns the files of a run, by name. All of them are of one moment, which the list's Manifest names. A run that saved none has an
// empty list. ErrNotBegun: it is queued.
func (of Files) List(ctx context.Context, run messages.Ref, at FilesAt) (*control.FileList, error) {
	req := control.FilesRequest{Tenant: run.Tenant, ID: run.Run, Step: at.Step, Manifest: at.Manifest}
	return listed(func(list, after string, page *control.FileList) error {
		if list != "" {
			req.Step, req.Manifest, req.After = nil, list, after
		}
		return of.client.request(ctx, control.SubjectFiles, req, page)
	})
}

// listed gathers pages, each of the list that the first one names.
func listed(ask func(list, after string, page *control.FileList) error) (*control.FileList, error) {
	var all *control.FileList
	list, after := "", ""
	for {
		var page control.FileList
		if err := ask(list, after, &page); err != nil {
			return nil, err
		}
		if all == nil {
			all = &page
		} else {
			all.Files = append(all.Files, page.Files...)
		}
		switch next := page.Next; {
		case next == "":
			all.Next = ""
			return all, nil
		case next <= after || len(page.Files) == 0 || len(all.Files) > maxListed:
			return nil, fmt.Errorf("list files: the page after %q does not fit the one before", after)
		default:
			list, after = all.Manifest, next
		}
	}
}

// Part returns a part of a file, from an offset: length bytes, or less where the answer would not fit a message or the file ends.
func (of Files) Part(ctx context.Context, run messages.Ref, req control.FileRequest) (*control.FilePart, error) {
	req.Tenant, req.ID = run.Tenant, run.Run
	return of.client.part(ctx, control.SubjectFile, req, &req)
}

// part makes a request for a part of a file, of which req tells the part.
func (c *Client) part(ctx context.Context, subject string, asks any, req *control.FileRequest) (*control.FilePart, error) {
	var part control.FilePart
	if err := c.request(ctx, subject, asks, &part); err != nil {
		return nil, err
	}
	if part.Offset != req.Offset || part.Offset < part.Size && len(part.Data) == 0 || int64(len(part.Data)) > part.Size-min(part.Offset, part.Size) {
		return nil, fmt.Errorf("read file %q: the answer is not the part that was asked for", req.Name)
	}
	return &part, nil
}

// Get writes a file of a run to w and returns what it is. It reads part by part, all of the same file although the run may be saving
// another, and verifies the whole by its hash: an error after the last byte means that w has a damaged file.
func (of Files) Get(ctx context.Context, run messages.Ref, name string, at FilesAt, w io.Writer) (*messages.SavedFile, error) {
	req := control.FileRequest{Name: name, Step: at.Step, Manifest: at.Manifest}
	return whole(req, w, func(req control.FileRequest) (*control.FilePart, error) { return of.Part(ctx, run, req) })
}

// whole writes a file part by part and verifies it.
func whole(req control.FileRequest, w io.Writer, next func(control.FileRequest) (*control.FilePart, error)) (*messages.SavedFile, error) {
	name := req.Name
	sum := sha256.New()
	var first *messages.SavedFile
	for {
		part, err := next(req)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = &part.SavedFile
			req.Step, req.Manifest = nil, part.Manifest
		}
		if part.SavedFile != *first {
			return nil, fmt.Errorf("read file %q: its parts are of different files", name)
		}
		_, _ = sum.Write(part.Data)
		if _, err := w.Write(part.Data); err != nil {
			return nil, fmt.Errorf("write file %q: %w", name, err)
		}
		if req.Offset += int64(len(part.Data)); req.Offset < first.Size {
			continue
		}
		if hex.EncodeToString(sum.Sum(nil)) != first.Hash {
			return nil, fmt.Errorf("read file %q: what came does not have its hash", name)
		}
		return first, nil
	}
}

// noFileError is a problem that is ErrNoFile.
type noFileError struct{ problem *messages.Problem }

func (e *noFileError) Error() string   { return e.problem.Detail }
func (e *noFileError) Unwrap() []error { return []error{ErrNoFile, e.problem} }

// httpPart is how much of a file one request over HTTP asks for.
const httpPart = 4 << 20

// filePart reads a part of a file of a run or of a workspace over HTTP, as its range.
func (r *remote) filePart(ctx context.Context, request json.RawMessage) (json.RawMessage, error) {
	var req struct {
		control.FileRequest

		Workspace string `json:"workspace"`
	}
	if err := json.Unmarshal(request, &req); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	path := "/v1/tasks/" + url.PathEscape(req.ID)
	if req.Workspace != "" {
		path = "/v1/workspaces/" + url.PathEscape(req.Workspace)
	}
	run := call{method: http.MethodGet, path: path + "/file", tenant: req.Tenant, query: url.Values{"name": {req.Name}}}
	set(run.query, "manifest", req.Manifest)
	if req.Step != nil {
		run.query.Set("step", strconv.Itoa(*req.Step))
	}
	length := int64(httpPart)
	if req.Length > 0 {
		length = min(length, req.Length)
	}
	run.header = map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", req.Offset, req.Offset+length-1)}
	resp, err := r.do(ctx, run)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	part := control.FilePart{Manifest: resp.Header.Get(control.HeaderManifest), Offset: req.Offset}
	part.Name, part.Hash, part.Type = req.Name, strings.Trim(resp.Header.Get("ETag"), `"`), resp.Header.Get("Content-Type")
	if part.Data, err = io.ReadAll(io.LimitReader(resp.Body, length+1)); err != nil {
		return nil, r.unreachable(ctx, err)
	}
	_, size, ranged := strings.Cut(resp.Header.Get("Content-Range"), "/")
	switch {
	case resp.StatusCode == http.StatusPartialContent && ranged:
		part.Size, err = strconv.ParseInt(size, 10, 64)
	case resp.StatusCode == http.StatusOK && len(part.Data) == 0: // an empty file has no ranges
	default:
		err = errors.New("it does not answer with the range that was asked for")
	}
	if err != nil {
		return nil, fmt.Errorf("read a file from %s: %w", r.base, err)
	}
	return json.Marshal(part)
}

// Errors about named workspaces.
var (
	ErrNoWorkspace   = control.ErrNoWorkspace
	ErrWorkspaceBusy = control.ErrBusy
)

// List returns the named workspaces of a tenant by name, a thousand at most, without the runs that wait for them.
func (of Workspaces) List(ctx context.Context, tenant string) (*control.WorkspaceList, error) {
	var list control.WorkspaceList
	if err := of.client.request(ctx, control.SubjectWorkspaces, control.WorkspaceRequest{Tenant: tenant}, &list); err != nil {
		return nil, err
	}
	return &list, nil
}

// Get tells what a named workspace has, and which runs have it and wait for it. ErrNoWorkspace: it has no files, and no run has it.
func (of Workspaces) Get(ctx context.Context, tenant, name string) (*control.WorkspaceStatus, error) {
	return of.client.workspace(ctx, control.SubjectWorkspace, tenant, name)
}

// Files returns the files of a named workspace, by name: those that the next run there begins with. ErrNoFile: there are
// none, or they became others meanwhile.
func (of Workspaces) Files(ctx context.Context, tenant, name string) (*control.FileList, error) {
	return listed(func(list, after string, page *control.FileList) error {
		req := control.WorkspaceFilesRequest{Tenant: tenant, Workspace: name, Manifest: list, After: after}
		return of.client.request(ctx, control.SubjectWorkspaceFiles, req, page)
	})
}

// Part returns a part of a file of a named workspace, as Files.Part does; the request has no step.
func (of Workspaces) Part(ctx context.Context, tenant, name string, req control.FileRequest) (*control.FilePart, error) {
	return of.client.part(ctx, control.SubjectWorkspaceFile, control.WorkspaceFileRequest{
		Tenant: tenant, Workspace: name, Name: req.Name, Manifest: req.Manifest, Offset: req.Offset, Length: req.Length,
	}, &req)
}

// File writes a file of a named workspace to w, as Files.Get does. ErrNoFile: the workspace has no such file, or others meanwhile.
func (of Workspaces) File(ctx context.Context, tenant, workspace, name string, w io.Writer) (*messages.SavedFile, error) {
	return whole(control.FileRequest{Name: name}, w, func(req control.FileRequest) (*control.FilePart, error) {
		return of.Part(ctx, tenant, workspace, req)
	})
}

// Delete makes the next run in a named workspace begin without files, and returns what the workspace was. ErrNoWorkspace: it has no
// files. ErrWorkspaceBusy: a run has it.
func (of Workspaces) Delete(ctx context.Context, tenant, name string) (*control.WorkspaceStatus, error) {
	return of.client.workspace(ctx, control.SubjectWorkspaceDelete, tenant, name)
}

func (c *Client) workspace(ctx context.Context, subject, tenant, name string) (*control.WorkspaceStatus, error) {
	var w control.WorkspaceStatus
	if err := c.request(ctx, subject, control.WorkspaceRequest{Tenant: tenant, Name: name}, &w); err != nil {
		return nil, err
	}
	return &w, nil
}
