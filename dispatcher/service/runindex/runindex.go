// Package runindex answers the requests about many runs: from an index of them, and from the queue.
package runindex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
)

// Index answers about many runs. What is stored before a question is in its answer, or the answer says that it is behind.
type Index interface {
	Runs(ctx context.Context, req control.RunsRequest) (control.RunPage, error)
	Stats(ctx context.Context, req control.StatsRequest) (control.RunStats, error)
	Steps(ctx context.Context, run messages.Ref) (control.StepList, error)
	// Begun are those of some runs that have an event.
	Begun(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	Status(ctx context.Context) (control.IndexStatus, error)
}

// Config is what RunIndex works with.
type Config struct {
	Index Index // nil: clients read the events themselves
	Queue *taskqueue.Queue
	Runs  *runs.Runs
	Room  request.Room
	Log   *slog.Logger
}

// RunIndex answers the requests about many runs: from an index, and from the queue.
type RunIndex struct{ cfg Config }

// New returns a RunIndex.
func New(cfg Config) *RunIndex { return &RunIndex{cfg} }

// Handlers are the requests about many runs.
func (x *RunIndex) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectRuns:     request.Read(x.indexedRuns),
		control.SubjectRunStats: request.Read(x.runStats),
		control.SubjectRunSteps: request.Read(x.runSteps),
		control.SubjectIndex:    request.Read(x.indexStatus),

		control.SubjectIndexRebuild: request.Read(x.rebuildIndex),
		control.SubjectQueued:       request.Read(x.listQueued),
	}
}

// noIndex is the answer of a dispatcher that has no index, or cannot ask it now, which may pass. A client then reads the
// events itself.
func noIndex(detail string, passes bool) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotImplemented), Status: http.StatusNotImplemented,
		Code: messages.CodeInternal, Retryable: passes, Detail: detail,
	}
}

func isField(err error) bool {
	_, ok := errors.AsType[*messages.FieldError](err)
	return ok
}

// indexed asks the index. Why it cannot be asked is for the log alone: it may name a database.
func indexed[Reply any](ctx context.Context, x *RunIndex, ask func(Index) (Reply, error)) (reply Reply, err error) {
	if x.cfg.Index == nil {
		return reply, noIndex("this dispatcher keeps no index of runs (LONGSHORE_INDEX)", false)
	}
	if reply, err = ask(x.cfg.Index); err == nil || isField(err) {
		return reply, err
	}
	x.cfg.Log.WarnContext(ctx, "ask the run index", "err", err)
	return reply, noIndex("the index of runs cannot be asked now", true)
}

func (x *RunIndex) indexedRuns(ctx context.Context, req control.RunsRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	page, err := indexed(ctx, x, func(i Index) (control.RunPage, error) { return i.Runs(ctx, req) })
	if err != nil {
		return nil, err
	}
	room := x.cfg.Room.Page()
	for i := range page.Runs {
		data, err := json.Marshal(page.Runs[i])
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", page.Runs[i].ID, err)
		}
		if room -= len(data) + len(","); room <= 0 && i > 0 {
			page.Runs, page.Next = page.Runs[:i], page.Runs[i-1].ID
			break
		}
	}
	return page, nil
}

func (x *RunIndex) runStats(ctx context.Context, req control.StatsRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return indexed(ctx, x, func(i Index) (control.RunStats, error) { return i.Stats(ctx, req) })
}

func (x *RunIndex) runSteps(ctx context.Context, req control.RunRequest) (any, error) {
	ref, err := req.Ref()
	if err != nil {
		return nil, err
	}
	list, err := indexed(ctx, x, func(i Index) (control.StepList, error) { return i.Steps(ctx, ref) })
	if err == nil && len(list.Steps) == 0 { // it has none yet, or it is unknown
		_, err = x.cfg.Runs.Task(ctx, ref, true)
	}
	return list, err
}

func (x *RunIndex) indexStatus(ctx context.Context, _ struct{}) (any, error) {
	return indexed(ctx, x, func(i Index) (control.IndexStatus, error) { return i.Status(ctx) })
}

// rebuildIndex builds the index again. It takes as long as the deletion of what is in it.
func (x *RunIndex) rebuildIndex(ctx context.Context, _ struct{}) (any, error) {
	made, ok := x.cfg.Index.(interface {
		Rebuild(ctx context.Context) error
	})
	if !ok {
		return nil, noIndex("this dispatcher keeps no index of runs (LONGSHORE_INDEX)", false)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), control.IndexRebuildTime)
	defer cancel()
	x.cfg.Log.InfoContext(ctx, "the run index is made again")
	return struct{}{}, made.Rebuild(ctx)
}

// stillQueued takes out of a page of queued tasks those that have begun, as far as an index knows.
func (x *RunIndex) stillQueued(ctx context.Context, tenant string, list *control.QueuedList) {
	if x.cfg.Index == nil || len(list.Runs) == 0 {
		return
	}
	ids := make([]string, len(list.Runs))
	for i := range list.Runs {
		ids[i] = list.Runs[i].ID
	}
	begun, err := x.cfg.Index.Begun(ctx, tenant, ids)
	if err != nil { // who reads the events finds out, too
		x.cfg.Log.WarnContext(ctx, "ask the run index", "err", err)
		return
	}
	left := list.Runs[:0]
	for _, r := range list.Runs {
		if !begun[r.ID] {
			left = append(left, r)
		}
	}
	list.Runs = left
}
