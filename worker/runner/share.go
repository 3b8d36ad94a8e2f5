package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-run/longshore/worker/agent"
)

// shareWait is how long a run waits, in its slot, for a named workspace that another one has. After that it is handed
// back, and the attempt is spent.
const shareWait = 10 * time.Minute

// share locks the task's named workspace, if it has one, before any effect. A run that waits for it can still be cancelled, and is
// handed back when the worker stops.
func (x *toolWork) share(ctx context.Context, next agent.Action) (agent.Action, error) {
	name := x.journal.state.Task.Workspace
	if name == "" || x.cfg.Named == nil || x.shared != nil {
		return next, nil
	}
	for {
		switch next.(type) {
		case *agent.Finish, *agent.Park, *agent.AskHooks, *agent.AcquirePermits, *agent.TakePermits: // they need no files
			return next, nil
		}
		news, err := x.await(ctx, name)
		if err != nil || !news {
			return next, err
		}
		if next, err = x.journal.replan(ctx); err != nil {
			return nil, err
		}
	}
}

// await waits for the workspace. With news the log has grown instead, and is to be read first.
func (x *toolWork) await(ctx context.Context, name string) (news bool, err error) {
	limited, stop := context.WithTimeoutCause(ctx, shareWait, fmt.Errorf("workspace %s: another run has it", name))
	defer stop()
	wait, abort := context.WithCancelCause(limited)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer abort(nil)
	watching.Go(func() {
		select {
		case <-x.r.drain:
			abort(ErrShutdown)
		case <-wait.Done():
		}
	})
	defer x.own.listen(abort)()
	defer x.journal.bound(abort)()
	if x.shared, err = x.cfg.Named(wait, x.run.Tenant, name); err == nil {
		return false, nil
	}
	cause := context.Cause(wait)
	switch {
	case errors.Is(cause, errControl):
		return true, nil
	case cause != nil:
		return false, cause
	default:
		return false, fmt.Errorf("open workspace: %w", err)
	}
}
