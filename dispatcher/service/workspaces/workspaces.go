// Package workspaces answers the requests about named workspaces.
package workspaces

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

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
	for names := range slices.Chunk(names, page) {
		found, err := ws.statuses(ctx, req.Tenant, names)
		if err != nil {
			return nil, err
		}
		list.Workspaces = append(list.Workspaces, found...)
		if len(list.Workspaces) > control.MaxWorkspaces {
			list.Workspaces, list.More = list.Workspaces[:control.MaxWorkspaces], true
			break
		}
	}
	return list, nil
}

const (
	page   = 256 // workspaces that are looked at before the list is perhaps full
	atOnce = 16  // of these at the same time
)

// statuses are those of the workspaces that have files or a run.
func (ws *Workspaces) statuses(ctx context.Context, tenant string, names []string) (found []control.WorkspaceStatus, err error) {
	all := make([]*control.WorkspaceStatus, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, name := range names {
		group.Go(func() error {
			st, err := ws.status(ctx, tenant, name)
			switch {
			case errors.Is(err, control.ErrNoWorkspace):
				return nil
			case err == nil:
				all[i] = &st
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, st := range all {
		if st != nil {
			found = append(found, *st)
		}
	}
	return found, nil
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
