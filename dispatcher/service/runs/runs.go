// Package runs finds runs, and answers the requests about one of them: its status, its result, a cancel, a message to it.
package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is what Runs works with.
type Config struct {
	Endings    *events.Endings                          // nil: nothing waits for the end of a run
	Events     *events.Store                            // likewise
	Removed    func(context.Context, messages.Ref) bool // reports whether a run without a log is known to have had one; likewise
	Queue      *taskqueue.Queue
	Controller *runlog.Controller
	Webhooks   *webhooks.Queue
	Logs       *logentries.Store
	Files      *files.Store
	Room       request.Room
	Log        *slog.Logger
}

// Runs finds runs, in their logs or in the queue, and answers the requests about one of them.
type Runs struct{ cfg Config }

// New returns Runs.
func New(cfg Config) *Runs { return &Runs{cfg} }

// Handlers are the requests about one run.
func (rs *Runs) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectStatus: rs.status,
		control.SubjectResult: request.Read(rs.result),
		control.SubjectCancel: request.Read(rs.cancel),
		control.SubjectSteer:  request.Read(rs.steer),
	}
}

// Task is what a run was asked to do: from its log, or else from the queue.
func (rs *Runs) Task(ctx context.Context, ref messages.Ref, again bool) (*messages.Task, error) {
	for e, err := range rs.cfg.Controller.Log.Read(ctx, ref, 0, 1) {
		if err != nil {
			return nil, err
		}
		started, ok := e.Records[0].(*record.Started)
		if !ok {
			return nil, fmt.Errorf("the log of %s does not begin with its task", ref)
		}
		return &started.Task, nil
	}
	q, ok, err := rs.queued(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return messages.DecodeTaskFor(ref, q.Priority, q.Body)
	case again:
		return rs.Task(ctx, ref, false) // it may have begun between the two looks
	default:
		return nil, runlog.ErrNotFound
	}
}

// Queued is a task that no worker has begun.
type Queued struct {
	Priority messages.Priority
	Body     []byte
	At       time.Time
	Later    *time.Time // when it comes to the queue; nil: it is there
}

// queued looks for a run's start ticket in the queue, and then among those that wait for their time.
func (rs *Runs) queued(ctx context.Context, ref messages.Ref) (Queued, bool, error) {
	q, ok, err := rs.cfg.Queue.Queued(ctx, ref)
	if err != nil {
		return Queued{}, false, err
	}
	if ok {
		p, _, ok := messages.ParseTaskSubject(q.Subject)
		return Queued{Priority: p, Body: q.Body, At: q.At}, ok && !p.Wakes(), nil
	}
	q, ok, err = rs.cfg.Queue.Delayed(ctx, ref)
	if err != nil || !ok {
		return Queued{}, false, err
	}
	p, _, ok := messages.ParseTaskSubject(q.Subject)
	return Queued{p, q.Body, q.At, &q.Later}, ok && !p.Wakes(), nil
}

func (rs *Runs) status(ctx context.Context, body []byte) (any, error) {
	ref, err := request.RunOf(body)
	if err != nil {
		return nil, err
	}
	last, q, err := rs.Find(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case q != nil:
		return control.RunStatus{Tenant: ref.Tenant, ID: ref.Run, Status: messages.StatusQueued, Updated: q.At, NotBefore: q.Later}, nil
	default:
		st, err := rs.StatusOf(ctx, ref, last)
		if err == nil && last.Head.Webhook && last.Head.Phase == record.PhaseFinished {
			st.Webhook, err = rs.webhookOf(ctx, ref, st.Status)
		}
		return st, err
	}
}

// Find returns the newest entry of a run's log or, if it has none, its queued task. With neither it is
// runlog.ErrNotFound.
func (rs *Runs) Find(ctx context.Context, ref messages.Ref) (last record.Entry, q *Queued, err error) {
	for range 2 { // a short run may begin and end between the two looks
		last, ok, err := rs.cfg.Controller.Log.Last(ctx, ref)
		if err != nil || ok {
			return last, nil, err
		}
		q, ok, err := rs.queued(ctx, ref)
		if err != nil || ok {
			return last, &q, err
		}
	}
	return last, nil, runlog.ErrNotFound
}

// StatusOf reads a status off the newest entry.
func (rs *Runs) StatusOf(ctx context.Context, ref messages.Ref, last record.Entry) (control.RunStatus, error) {
	h := last.Head
	st := control.RunStatus{
		Tenant: ref.Tenant, ID: ref.Run, Attempt: h.Attempt, Updated: h.Time, Waits: h.Waits, Status: messages.StatusRunning,
		Sequence: h.FirstEvent + uint64(h.Events) - 1,
		Cancel:   h.Cancel && h.Phase != record.PhaseFinished,
		Ignored:  h.Has(record.KindUnverified),
	}
	if h.Children != nil {
		st.Delegations = h.Children.Number
	}
	switch {
	case h.Phase == record.PhaseFinished && h.Status.Ended():
		st.Status = h.Status
	case h.Phase == record.PhaseFinished: // by an earlier version, which had it in the result alone
		r, err := rs.ResultOf(ctx, ref, last)
		if err != nil {
			return st, err
		}
		st.Status = r.Status
	case h.Waits != "":
		st.Status = messages.StatusWaiting
		if h.Waits == queue.ParkChildren {
			st.WaitsFor = WaitsForChildren(ref, &h)
		}
		if (h.Waits == queue.ParkModel || h.Waits == queue.ParkWorker || h.Waits == queue.ParkRate) && h.Phase == record.PhaseParked {
			p, _, err := rs.cfg.Controller.Park(ctx, ref, last)
			if err != nil {
				return st, err
			}
			if p != nil {
				st.Until, st.Cause = p.Until, p.Cause
				if h.Waits != queue.ParkModel {
					st.WaitsFor = p.Question
				}
			}
		}
	case h.ClaimSeq == 0 && h.Phase == record.PhaseReady:
		st.Status = messages.StatusQueued // a fork that no worker has taken up
	}
	return st, nil
}

// webhookOf is what became of the webhook of a run that has ended; nil when that end is not announced.
func (rs *Runs) webhookOf(ctx context.Context, run messages.Ref, status messages.Status) (*control.WebhookState, error) {
	task, err := rs.Task(ctx, run, false)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // its log has gone in this moment
		return nil, nil
	case err != nil:
		return nil, err
	case !task.Webhook.Wants(string(status)):
		return nil, nil
	}
	return rs.cfg.Webhooks.State(ctx, run)
}

// HasLog returns runlog.ErrNotFound or a conflict unless the run has a log.
func (rs *Runs) HasLog(ctx context.Context, ref messages.Ref) error {
	switch _, q, err := rs.Find(ctx, ref); {
	case err != nil:
		return err
	case q != nil:
		return request.Conflict("the run has not begun")
	default:
		return nil
	}
}

// maxChildrenNamed bounds the children that a status names.
const maxChildrenNamed = 8

// WaitsForChildren says which children a run waits for: "2 of 3 children: a, b".
func WaitsForChildren(ref messages.Ref, h *record.Head) string {
	left := h.Children.Left(ref)
	if len(left) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d children: %s", len(left), h.Children.Of, strings.Join(left[:min(len(left), maxChildrenNamed)], ", "))
	if len(left) > maxChildrenNamed {
		text += fmt.Sprintf(" and %d more", len(left)-maxChildrenNamed)
	}
	return text
}
