package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// RunIndex answers about many runs. What is stored before a question is in its answer, or the answer says that it is behind.
type RunIndex interface {
	Runs(ctx context.Context, req control.RunsRequest) (control.RunPage, error)
	Stats(ctx context.Context, req control.StatsRequest) (control.RunStats, error)
	Steps(ctx context.Context, run messages.Ref) (control.StepList, error)
	// Begun are those of some runs that have an event.
	Begun(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	Status(ctx context.Context) (control.IndexStatus, error)
}

// manyRuns are the requests about many runs.
func (s *Service) manyRuns() map[string]answerFunc {
	return map[string]answerFunc{
		control.SubjectRuns:     asked(s.indexedRuns),
		control.SubjectRunStats: asked(s.runStats),
		control.SubjectRunSteps: asked(s.runSteps),
		control.SubjectIndex:    asked(s.indexStatus),

		control.SubjectIndexRebuild: asked(s.rebuildIndex),
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
func indexed[Reply any](ctx context.Context, s *Service, ask func(RunIndex) (Reply, error)) (reply Reply, err error) {
	if s.cfg.Index == nil {
		return reply, noIndex("this dispatcher keeps no index of runs (LONGSHORE_INDEX)", false)
	}
	if reply, err = ask(s.cfg.Index); err == nil || isField(err) {
		return reply, err
	}
	s.cfg.Log.WarnContext(ctx, "ask the run index", "err", err)
	return reply, noIndex("the index of runs cannot be asked now", true)
}

func (s *Service) indexedRuns(ctx context.Context, req control.RunsRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	page, err := indexed(ctx, s, func(x RunIndex) (control.RunPage, error) { return x.Runs(ctx, req) })
	if err != nil {
		return nil, err
	}
	room := min(maxPageBytes, int(s.cfg.Conn.MaxPayload())-pageRoom)
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

func (s *Service) runStats(ctx context.Context, req control.StatsRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return indexed(ctx, s, func(x RunIndex) (control.RunStats, error) { return x.Stats(ctx, req) })
}

func (s *Service) runSteps(ctx context.Context, req control.RunRequest) (any, error) {
	ref, err := req.Ref()
	if err != nil {
		return nil, err
	}
	list, err := indexed(ctx, s, func(x RunIndex) (control.StepList, error) { return x.Steps(ctx, ref) })
	if err == nil && len(list.Steps) == 0 { // it has none yet, or nobody knows it
		_, err = s.task(ctx, ref, true)
	}
	return list, err
}

func (s *Service) indexStatus(ctx context.Context, _ struct{}) (any, error) {
	return indexed(ctx, s, func(x RunIndex) (control.IndexStatus, error) { return x.Status(ctx) })
}

// rebuildIndex begins the index anew. It takes as long as the deletion of what is in it.
func (s *Service) rebuildIndex(ctx context.Context, _ struct{}) (any, error) {
	x, ok := s.cfg.Index.(interface {
		Rebuild(ctx context.Context) error
	})
	if !ok {
		return nil, noIndex("this dispatcher keeps no index of runs (LONGSHORE_INDEX)", false)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), control.IndexRebuildTime)
	defer cancel()
	s.cfg.Log.InfoContext(ctx, "the run index is made again")
	return struct{}{}, x.Rebuild(ctx)
}

// stillQueued takes out of a page of queued tasks those that have begun, as far as an index knows.
func (s *Service) stillQueued(ctx context.Context, tenant string, list *control.QueuedList) {
	if s.cfg.Index == nil || len(list.Runs) == 0 {
		return
	}
	ids := make([]string, len(list.Runs))
	for i := range list.Runs {
		ids[i] = list.Runs[i].ID
	}
	begun, err := s.cfg.Index.Begun(ctx, tenant, ids)
	if err != nil { // who reads the events finds out, too
		s.cfg.Log.WarnContext(ctx, "ask the run index", "err", err)
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
