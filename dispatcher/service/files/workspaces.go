package files

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

// listWorkspace answers with a page of the files of a named workspace.
func (fs *Files) listWorkspace(ctx context.Context, req control.WorkspaceFilesRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	v, err := fs.inWorkspace(ctx, req.Tenant, req.Workspace, req.Manifest)
	if err != nil {
		return nil, err
	}
	return fs.page(&v, req.After, req.Limit), nil
}

// workspaceFile answers with a part of a file of a named workspace.
func (fs *Files) workspaceFile(ctx context.Context, req control.WorkspaceFileRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	v, err := fs.inWorkspace(ctx, req.Tenant, req.Workspace, req.Manifest)
	if err != nil {
		return nil, err
	}
	return fs.content(ctx, req.Tenant, &v, &control.FileRequest{Name: req.Name, Offset: req.Offset, Length: req.Length}, "the workspace")
}

// inWorkspace finds the files that a workspace has. What it had before, only the runs that left it there show.
func (fs *Files) inWorkspace(ctx context.Context, tenant, name, hash string) (version, error) {
	head, _, err := fs.cfg.Store.Workspace(ctx, tenant, name)
	v := version{hash: head.Manifest, step: head.Step}
	switch {
	case err != nil:
		return v, err
	case head.Manifest == "":
		return v, noFile("the workspace has no files")
	case hash != "" && hash != head.Manifest:
		return v, noFile("the workspace has other files by now: list them again")
	}
	v.Manifest, err = fs.read(ctx, tenant, v.hash)
	return v, err
}
