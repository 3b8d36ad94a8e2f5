package runlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// Workspaces stores the head of each named workspace. A head keeps its manifest, and what that names, as the reference of a run does. One
// that has had no manifest for a day may disappear. Safe for concurrent use. Reads are never stale.
type Workspaces interface {
	// Workspace returns the head of a workspace and its revision; zero if it never had one.
	Workspace(ctx context.Context, tenant, name string) (w messages.Workspace, revision uint64, err error)
	// PutWorkspace replaces the head of a revision. ErrConflict: the stored revision is another.
	PutWorkspace(ctx context.Context, tenant, name string, revision uint64, w messages.Workspace) error
}

// ErrWorkspaceBusy means that a run has the workspace.
var ErrWorkspaceBusy = errors.New("a run has the workspace")

const (
	// Bounds giving a permit back for a caller that may have gone.
	undoTimeout = 5 * time.Second
	// How long a removal may take.
	forgetTimeout = 20 * time.Second
	// How old the permit of a removal must be before a sweep takes it for one whose process died. Clocks of two machines differ.
	forgetAge = time.Minute
)

// errNoWorkspaces is that of a process which was not given the heads, and must not give on what it cannot read.
var errNoWorkspaces = errors.New("this process has no store of named workspaces")

// TakeWorkspace returns the number of the permit that a claim holds for a named workspace, and the head of it. The head does not change
// while the permit is held. A run whose log has the files of another turn begins with those of the head; see record.Taken.
func (k *Controller) TakeWorkspace(ctx context.Context, run messages.Ref, claim uint64, name string) (turn uint64, w messages.Workspace, err error) {
	l, _, err := k.Semaphores.Semaphore(ctx, queue.WorkspaceSemaphore(run.Tenant, name))
	if err != nil {
		return 0, w, fmt.Errorf("take workspace %s: %w", name, err)
	}
	i := l.Of(run)
	if i < 0 || l.Permits[i].Claim != claim {
		return 0, w, fmt.Errorf("take workspace %s: %w", name, errGone)
	}
	if w, _, err = k.Workspaces.Workspace(ctx, run.Tenant, name); err != nil {
		return 0, w, fmt.Errorf("take workspace %s: %w", name, err)
	}
	return l.Permits[i].Turn, w, nil
}

// leaveWorkspace makes the files of a run, as its log had them at a head, those of the named workspace that it gives back. It comes before
// its permit is released: the next run finds them. A head that is stored is never replaced by an earlier one, however late this call is.
func (k *Controller) leaveWorkspace(ctx context.Context, run messages.Ref, h record.Head, name string) error {
	workspace, is := queue.WorkspaceOfSemaphore(name)
	last := h.Workspace
	if !is || last == nil || last.Name != workspace {
		return nil // it has not taken the files: they are as the run before left them
	}
	if k.Workspaces == nil {
		return errNoWorkspaces
	}
	return k.changeWorkspace(ctx, run.Tenant, workspace, func(w *messages.Workspace, isNew bool) (bool, error) {
		if last.Turn < w.Turn || last.Turn == w.Turn && last.Seq <= w.Seq {
			return false, nil
		}
		if isNew { // or it was removed since, long after the run gave it back
			if has, err := k.hasTurn(ctx, run, name, last.Turn); err != nil || !has {
				return false, err
			}
		}
		if w.Manifest != last.Manifest {
			*w = messages.Workspace{Manifest: last.Manifest, Files: last.Files, Bytes: last.Bytes, Run: run.Run, Step: last.Step, Time: h.Time}
		}
		w.Turn, w.Seq = last.Turn, last.Seq
		return true, nil
	})
}

// hasTurn reports whether a run still holds the permit of a workspace with a number.
func (k *Controller) hasTurn(ctx context.Context, run messages.Ref, semaphore string, turn uint64) (bool, error) {
	l, _, err := k.Semaphores.Semaphore(ctx, semaphore)
	i := l.Of(run)
	return i >= 0 && l.Permits[i].Turn == turn, err
}

// changeWorkspace stores what change makes of a head, unless it is false.
func (k *Controller) changeWorkspace(ctx context.Context, tenant, name string, change func(w *messages.Workspace, isNew bool) (bool, error)) error {
	head := stored[messages.Workspace]{
		read: func() (messages.Workspace, uint64, error) { return k.Workspaces.Workspace(ctx, tenant, name) },
		put: func(revision uint64, w messages.Workspace) error {
			return k.Workspaces.PutWorkspace(ctx, tenant, name, revision, w)
		},
	}
	return head.update(ctx, change)
}

// addPermit gives a run a permit. That of a workspace has a number which none before had.
func (k *Controller) addPermit(ctx context.Context, name string, l *queue.Semaphore, p queue.Permit) error {
	if workspace, ok := queue.WorkspaceOfSemaphore(name); ok {
		if k.Workspaces == nil {
			return errNoWorkspaces
		}
		run := p.Ref()
		w, revision, err := k.Workspaces.Workspace(ctx, run.Tenant, workspace)
		if err != nil {
			return fmt.Errorf("read workspace %s: %w", workspace, err)
		}
		if revision == 0 && l.Turn == 0 { // it may have had turns before its head was removed: those were numbered from an earlier time
			l.Turn = uint64(max(k.Now().UnixMilli(), 0))
		}
		l.Turn = max(l.Turn, w.Turn) + 1 // the semaphore may not have been used for a while, or be lost, or come from a backup
		p.Turn = l.Turn
	}
	l.Permits = append(l.Permits, p)
	return nil
}

// ForgetWorkspace makes the next run in a named workspace begin without files, and returns what the workspace was. ErrNotFound: it has no
// files. ErrWorkspaceBusy: a run has it.
func (k *Controller) ForgetWorkspace(ctx context.Context, tenant, name string) (was messages.Workspace, err error) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	semaphore := queue.WorkspaceSemaphore(tenant, name)
	// It takes the permit meanwhile, under the id that no run has. If this process dies, a sweep gives it back.
	self := messages.Ref{Tenant: tenant, Run: messages.NoRun}
	turn := uint64(0)
	err = k.changeSemaphore(ctx, semaphore, func(l *queue.Semaphore, _ bool) (bool, error) {
		if len(l.Permits) > 0 {
			return false, ErrWorkspaceBusy
		}
		if err := k.addPermit(ctx, semaphore, l, queue.Permit{Run: queue.HolderOf(self)}); err != nil {
			return false, err
		}
		turn = l.Turn
		return true, nil
	})
	if err != nil {
		return was, err
	}
	err = k.changeWorkspace(ctx, tenant, name, func(w *messages.Workspace, _ bool) (bool, error) {
		was = *w
		*w = messages.Workspace{Turn: turn}
		return was.Manifest != "" && was.Turn < turn, nil
	})
	if err == nil && was.Manifest == "" {
		err = ErrNotFound
	}
	ctx, undone := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer undone()
	freed := k.changeSemaphore(ctx, semaphore, func(l *queue.Semaphore, _ bool) (bool, error) {
		i := slices.IndexFunc(l.Permits, func(p queue.Permit) bool { return p.Turn == turn })
		if i >= 0 {
			l.Permits = slices.Delete(l.Permits, i, i+1)
		}
		return i >= 0, nil
	})
	return was, errors.Join(err, freed, k.LookAt(ctx, semaphore))
}
