// Package workspaces answers the requests about named workspaces.
package workspaces

import (
	"context"
	"errors"
	"slices"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Workspaces answers the requests about named workspaces.
type Workspaces struct {
	files      *files.Store
	semaphores *semaphores.Store
	controller *runlog.Controller
}

// New returns Workspaces.
func New(store *files.Store, permits *semaphores.Store, controller *runlog.Controller) *Workspaces {
	k := *controller
	k.Semaphores, k.Workspaces = permits, store // it gives permits to runs that wait
	return &Workspaces{store, permits, &k}
}

// Handlers are the requests about named workspaces.
func (ws *Workspaces) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectWorkspaces:      request.Read(ws.list),
		control.SubjectWorkspace:       request.Read(ws.get),
		control.SubjectWorkspaceDelete: request.Read(ws.remove),
	}
}

// maxWaiting is how many runs that wait are told.
const maxWaiting = 100

// list has the workspaces with files, and those that a run has now.
func (ws *Workspaces) list(ctx context.Context, req control.WorkspaceRequest) (any, error) {
	if err := req.Check(false); err != nil {
		return nil, err
	}
	var names []string
	for name, err := range ws.files.Named(ctx, req.Tenant) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	list := control.WorkspaceList{Workspaces: []control.WorkspaceStatus{}}
	for _, name := range names {
		st, err := ws.status(ctx, req.Tenant, name)
		switch {
		case errors.Is(err, control.ErrNoWorkspace):
			continue
		case err != nil:
			return nil, err
		case len(list.Workspaces) == control.MaxWorkspaces:
			list.More = true
			return list, nil
		}
		list.Workspaces = append(list.Workspaces, st)
	}
	return list, nil
}

// status is what is known of a workspace. The error control.ErrNoWorkspace says that it has no files, and that no run has it.
func (ws *Workspaces) status(ctx context.Context, tenant, name string) (control.WorkspaceStatus, error) {
	head, _, err := ws.files.Workspace(ctx, tenant, name)
	if err != nil {
		return control.WorkspaceStatus{}, err
	}
	permits, _, err := ws.semaphores.Semaphore(ctx, queue.WorkspaceSemaphore(tenant, name))
	if err != nil {
		return control.WorkspaceStatus{}, err
	}
	st := control.StatusOfWorkspace(&head, tenant, name)
	if len(permits.Permits) > 0 {
		if run := permits.Permits[0].Ref().Run; run != messages.NoRun {
			st.Holder = run
		}
	}
	if st.Manifest == "" && st.Holder == "" {
		return st, control.ErrNoWorkspace
	}
	return st, nil
}

func (ws *Workspaces) get(ctx context.Context, req control.WorkspaceRequest) (any, error) {
	if err := req.Check(true); err != nil {
		return nil, err
	}
	st, err := ws.status(ctx, req.Tenant, req.Name)
	if err != nil {
		return nil, err
	}
	for w, err := range ws.semaphores.Standing(ctx, queue.WorkspaceSemaphore(req.Tenant, req.Name), req.Tenant) {
		if err != nil {
			return nil, err
		}
		if len(st.Waiting) == maxWaiting {
			break
		}
		st.Waiting = append(st.Waiting, w.Run.Run)
	}
	return st, nil
}

func (ws *Workspaces) remove(ctx context.Context, req control.WorkspaceRequest) (any, error) {
	if err := req.Check(true); err != nil {
		return nil, err
	}
	was, err := ws.controller.ForgetWorkspace(ctx, req.Tenant, req.Name)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return nil, control.ErrNoWorkspace
	case errors.Is(err, runlog.ErrWorkspaceBusy):
		return nil, control.ErrBusy
	case err != nil:
		return nil, err
	default:
		return control.StatusOfWorkspace(&was, req.Tenant, req.Name), nil
	}
}
