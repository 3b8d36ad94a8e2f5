package history

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Check plans the decisions of a log again. An error comes from the entries, is the cause of ctx, at whose end it stops, or says why the log
// cannot be folded.
type Check func(ctx context.Context, entries iter.Seq2[record.Entry, error]) (control.RunCheck, error)

// Bounds of checks. The two times together are less than that of a request, so that the caller learns what happened.
const (
	maxChecks = 2               // at once: each may keep a core busy
	checkWait = 2 * time.Second // for others to end
	checkTime = 7 * time.Second // a run of 10,000 steps takes about one

	maxFoldError = 1024 // bytes of why a log cannot be folded, which may repeat the log
)

// check answers whether today's planners decide as the owners of a run did.
func (h *History) check(ctx context.Context, req control.RunRequest) (any, error) {
	run, err := req.Ref()
	if err != nil {
		return nil, err
	}
	if err := h.cfg.Runs.HasLog(ctx, run); err != nil {
		return nil, err
	}
	if h.cfg.Check == nil {
		return nil, unable("this dispatcher has no planners: check the run with longshore replay " + run.Run + " --check")
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return h.checked(ctx, func(ctx context.Context) iter.Seq2[record.Entry, error] {
		return h.cfg.Log.Read(ctx, run, 0, runlog.Tail)
	})
}

// enter waits for a permit to check, and is not in the way of other requests meanwhile.
func (h *History) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-h.checking }
	select {
	case h.checking <- struct{}{}:
		return leave, nil
	default:
	}
	err = control.ErrCheckBusy
	request.Idle(ctx, func(stop <-chan struct{}) {
		busy := time.NewTimer(checkWait)
		defer busy.Stop()
		select {
		case h.checking <- struct{}{}:
			err = nil
		case <-busy.C:
		case <-stop:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	})
	if err != nil {
		return nil, err
	}
	return leave, nil
}

// checked checks what read yields, for as long as ctx and the time for a check last.
func (h *History) checked(ctx context.Context, read func(context.Context) iter.Seq2[record.Entry, error]) (*control.RunCheck, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, control.ErrCheckLong)
	defer cancel()
	var unread error
	report, err := h.plan(ctx, func(yield func(record.Entry, error) bool) {
		for e, err := range read(ctx) {
			if ctx.Err() != nil { // entries may come faster than they are planned
				err = context.Cause(ctx)
			}
			if unread = err; !yield(e, err) || err != nil {
				return
			}
		}
	})
	switch {
	case unread != nil:
		return nil, unread
	case err != nil && errors.Is(err, context.Cause(ctx)): // its entry is long
		return nil, err
	case errors.Is(err, errPanicked):
		return nil, unable("the planner of this version panicked on the log: longshore replay --check of the same version shows where")
	case err != nil:
		return nil, unable("this version cannot fold the log: " + strict.Clip(err.Error(), maxFoldError))
	}
	report.Version = h.cfg.Version
	return &report, nil
}

// errPanicked is told instead of the value, which may hold anything.
var errPanicked = errors.New("the planner panicked")

// plan is the Check of the configuration. What planners do with an odd log must not end the dispatcher.
func (h *History) plan(ctx context.Context, entries iter.Seq2[record.Entry, error]) (report control.RunCheck, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return h.cfg.Check(ctx, entries)
}

// unable is the problem of what this dispatcher cannot check.
func unable(why string) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotImplemented), Status: http.StatusNotImplemented, Code: messages.CodeInternal, Detail: why,
	}
}
