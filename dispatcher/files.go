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
	var all *control.FileList
	for {
		var page control.FileList
		if err := of.client.request(ctx, control.SubjectFiles, req, &page); err != nil {
			return nil, err
		}
		if all == nil {
			all = &page
		} else {
			all.Files = append(all.Files, page.Files...)
		}
		switch {
		case page.Next == "":
			all.Next = ""
			return all, nil
		case page.Next <= req.After || len(page.Files) == 0 || len(all.Files) > maxListed:
			return nil, fmt.Errorf("list files: the page after %q does not fit the one before", req.After)
		}
		req.Step, req.Manifest, req.After = nil, all.Manifest, page.Next
	}
}

// Part returns a part of a file, from an offset: length bytes, or less where the answer would not fit a message or the file ends.
func (of Files) Part(ctx context.Context, run messages.Ref, req control.FileRequest) (*control.FilePart, error) {
	req.Tenant, req.ID = run.Tenant, run.Run
	var part control.FilePart
	if err := of.client.request(ctx, control.SubjectFile, req, &part); err != nil {
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
	sum := sha256.New()
	var first *messages.SavedFile
	for {
		part, err := of.Part(ctx, run, req)
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

// filePart reads a part of a file over HTTP, as its range.
func (r *remote) filePart(ctx context.Context, request json.RawMessage) (json.RawMessage, error) {
	var req control.FileRequest
	if err := json.Unmarshal(request, &req); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	run := call{method: http.MethodGet, path: "/v1/tasks/" + url.PathEscape(req.ID) + "/file", tenant: req.Tenant, query: url.Values{"name": {req.Name}}}
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
