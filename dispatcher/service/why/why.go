// Package why says what a run waits for, or what it does.
package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is what Why works with.
type Config struct {
	Quotas     *quotas.Quotas
	Controller *runlog.Controller
	Workers    *roster.Fleet
	Sessions   *sessions.Store
	Semaphores *semaphores.Store
	Runs       *runs.Runs
}

// Why says what a run waits for, or what it does.
type Why struct{ cfg Config }

// New returns a Why.
func New(cfg Config) *Why { return &Why{cfg} }

// Handlers are the requests that ask why.
func (w *Why) Handlers() request.Handlers {
	return request.Handlers{control.SubjectWhy: w.why}
}

// maxAhead is how many runs that wait before one are counted, maxBelow how many below one are looked at.
const (
	maxAhead = 1000
	maxBelow = 32
)

// why says what a run waits for, or what it does.
func (w *Why) why(ctx context.Context, body []byte) (any, error) {
	ref, err := request.RunOf(body)
	if err != nil {
		return nil, err
	}
	room := maxBelow
	return w.of(ctx, ref, &room)
}

// of is why for one run. Room is how many runs below it may be looked at.
func (w *Why) of(ctx context.Context, ref messages.Ref, room *int) (*control.Why, error) {
	last, q, err := w.cfg.Runs.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	y := &control.Why{Tenant: ref.Tenant, ID: ref.Run}
	if q != nil {
		return y, w.whyQueued(ctx, y, ref, q)
	}
	st, err := w.cfg.Runs.StatusOf(ctx, ref, last)
	if err != nil {
		return nil, err
	}
	y.Status, y.Waits, y.Attempt, y.Since = st.Status, st.Waits, st.Attempt, st.Updated
	h := last.Head
	switch {
	case h.Phase == record.PhaseFinished:
		return y, w.whyEnded(ctx, y, ref, last)
	case h.Phase == record.PhaseActive:
		return y, w.whyWorks(ctx, y, ref, last)
	case h.Phase == record.PhaseReady && h.Cancel:
		y.Text = "It was asked to stop, and waits for a worker that ends it."
		return y, nil
	case h.Phase == record.PhaseReady && h.Waits == "":
		y.Text = "It waits for a worker that takes it up."
		return y, nil
	case h.Phase == record.PhaseReady:
		y.Text = fmt.Sprintf("Its wait (%s) is over, and it waits for a worker to resume it.", h.Waits)
		return y, nil
	default:
		return y, w.whyParked(ctx, y, ref, last, room)
	}
}

func (w *Why) whyQueued(ctx context.Context, y *control.Why, ref messages.Ref, q *runs.Queued) error {
	y.Status, y.Since = messages.StatusQueued, q.At
	if q.Later != nil {
		y.Until, y.Text = q.Later, "It is scheduled, and comes to the queue at "+stamp(*q.Later)+"."
		return nil
	}
	y.Text = "It is in the queue, and waits for a free worker."
	of := []queue.QuotaRef{{Kind: queue.QuotaTenant, Name: ref.Tenant}}
	if t, err := messages.DecodeTaskFor(ref, q.Priority, q.Body); err == nil {
		of = append(of, queue.QuotaRef{Kind: queue.QuotaAgent, Name: t.Agent})
	}
	for _, of := range of {
		p, err := w.pausedThing(ctx, of)
		if err != nil {
			return err
		}
		if p != nil {
			y.Paused, y.Text = p, "It is in the queue: "+pausedText(p)
			return nil
		}
	}
	workers, err := w.cfg.Workers.Workers(ctx)
	if err == nil && len(workers) == 0 { // else the text says enough
		y.Text = "It is in the queue, and no worker answers that could take it."
	}
	if name := shortOfMemory(workers, ref); name != "" {
		y.Worker, y.Text = name, "It waits for memory of worker "+name+", whose other runs hold as much as they may."
	}
	return nil
}

// shortOfMemory names the worker for whose memory a run waits; empty: none says so.
func shortOfMemory(workers []messages.WorkerStatus, ref messages.Ref) string {
	for i := range workers {
		if workers[i].Waits(ref) {
			return workers[i].Name
		}
	}
	return ""
}

func (w *Why) pausedThing(ctx context.Context, of queue.QuotaRef) (*control.PausedThing, error) {
	q, _, err := w.cfg.Quotas.Quota(ctx, of)
	if err != nil || q.Paused == nil {
		return nil, err
	}
	return &control.PausedThing{QuotaRef: of, Pause: *q.Paused}, nil
}

func pausedText(p *control.PausedThing) string {
	text := p.String() + " was paused"
	if p.By != "" {
		text += " by " + p.By
	}
	text += " at " + stamp(p.At)
	if p.Reason != "" {
		text += " because: " + p.Reason
	}
	return text + "."
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (w *Why) whyEnded(ctx context.Context, y *control.Why, ref messages.Ref, last record.Entry) error {
	if y.Status == messages.StatusCompleted { // its result may be large, and says no more
		y.Text = "It has ended: completed."
		return nil
	}
	r, err := w.cfg.Runs.ResultOf(ctx, ref, last)
	if err != nil {
		return err
	}
	how := string(r.Status)
	if r.Error != nil {
		if text := strings.TrimSuffix(r.Error.Message, "."); strings.HasPrefix(text, how) { // as that of a cancelled run does
			how = text
		} else {
			how += ", " + text
		}
	}
	y.Text = "It has ended: " + how + "."
	return nil
}

// whyWorks names the worker of the last claim, and the step that was begun last.
func (w *Why) whyWorks(ctx context.Context, y *control.Why, ref messages.Ref, last record.Entry) error {
	steps := uint64(0)
	for e, err := range w.cfg.Controller.Log.Heads(ctx, ref, 0, runlog.Tail) {
		if err != nil {
			return err
		}
		if e.Head.Has(record.KindStepStarted) {
			steps = e.Seq
		}
	}
	err := w.each(ctx, ref, last.Head.ClaimSeq, func(r record.Record, at time.Time) {
		if r, ok := r.(*record.Claimed); ok {
			y.Worker, y.Since = r.Worker, at
		}
	})
	if err == nil && steps != 0 {
		err = w.each(ctx, ref, steps, func(r record.Record, at time.Time) {
			if r, ok := r.(*record.StepStarted); ok {
				y.Step = r.Step
				if steps > last.Head.ClaimSeq {
					y.Since = at
				}
			}
		})
	}
	y.Text = "Worker " + y.Worker + " works it"
	if y.Step > 0 {
		y.Text += fmt.Sprintf(", in step %d", y.Step)
	}
	if y.Attempt > 1 {
		y.Text += fmt.Sprintf(", attempt %d", y.Attempt)
	}
	y.Text += ", since " + stamp(y.Since) + "."
	if workers, err := w.cfg.Workers.Workers(ctx); err == nil && shortOfMemory(workers, ref) != "" { // else the text says enough
		y.Text += " It waits for memory there: the other runs of the worker hold as much as they may."
	}
	return err
}

// each hands out the records of one entry.
func (w *Why) each(ctx context.Context, ref messages.Ref, seq uint64, do func(r record.Record, at time.Time)) error {
	for e, err := range w.cfg.Controller.Log.Read(ctx, ref, seq-1, seq) {
		if err != nil {
			return err
		}
		if e.Seq == seq {
			for _, r := range e.Records {
				do(r, e.Head.Time)
			}
		}
		break
	}
	return nil
}

func (w *Why) whyParked(ctx context.Context, y *control.Why, ref messages.Ref, last record.Entry, room *int) error {
	p, since, err := w.cfg.Controller.Park(ctx, ref, last)
	if err != nil {
		return err
	}
	if p == nil {
		p = &record.Parked{Reason: last.Head.Waits}
	}
	y.Until, y.Call = p.Until, p.Call
	if !since.IsZero() {
		y.Since = since
	}
	y.Text = queue.ParkReasonOf(p.Reason).Text
	switch p.Reason {
	case queue.ParkSession:
		err = w.whySession(ctx, y, ref, last.Head.Session)
	case queue.ParkSemaphore:
		err = w.whySemaphore(ctx, y, ref, p.Semaphore)
	case queue.ParkPaused:
		err = w.whyPaused(ctx, y, p.Semaphore)
	case queue.ParkApproval:
		y.Text += " of call " + p.Call
		if p.Approval != nil {
			y.Tool = p.Approval.Tool
			y.Text += " of " + p.Approval.Tool
		}
	case queue.ParkChildren:
		if text := runs.WaitsForChildren(ref, &last.Head); text != "" {
			y.Text = "It waits for " + text
		}
		err = w.whyChildren(ctx, y, ref, &last.Head, room)
	case queue.ParkModel:
		if y.Cause = p.Cause; p.Cause != nil {
			y.Text += fmt.Sprintf("; attempt %d failed: %s", p.Cause.Attempt, p.Cause.Text())
		}
	default:
		if y.Question = p.Question; p.Question != "" {
			y.Text += ": " + p.Question
		}
	}
	if y.Text = strings.TrimSuffix(y.Text, "."); p.Until != nil {
		if p.Reason == queue.ParkModel {
			y.Text += "; the next attempt is at " + stamp(*p.Until)
		} else {
			y.Text += ", until " + stamp(*p.Until) + " at most"
		}
	}
	y.Text += "."
	return err
}

// whyChildren says of each child that a run waits for what that one waits for. A child of which there is no log, for it is gone or has just
// been made, is left out.
func (w *Why) whyChildren(ctx context.Context, y *control.Why, ref messages.Ref, h *record.Head, room *int) error {
	for _, id := range h.Children.Left(ref) {
		if *room == 0 {
			return nil
		}
		*room--
		child, err := w.of(ctx, messages.Ref{Tenant: ref.Tenant, Run: id}, room)
		switch {
		case errors.Is(err, runlog.ErrNotFound):
		case err != nil:
			return err
		default:
			y.Children = append(y.Children, *child)
		}
	}
	return nil
}

func (w *Why) whySession(ctx context.Context, y *control.Why, ref messages.Ref, name string) error {
	found, _, err := w.cfg.Sessions.Session(ctx, ref.Tenant, name)
	if err != nil {
		return err
	}
	y.Session = name
	y.Text += " in session " + name
	y.Ahead = max(slices.Index(found.Runs, ref.Run), 0)
	if len(found.Runs) > 0 && found.Runs[0] != ref.Run {
		y.Turn = found.Runs[0]
		y.Text += ", which run " + y.Turn + " has"
	}
	switch {
	case y.Ahead == 2:
		y.Text += "; 1 other waits before it"
	case y.Ahead > 2:
		y.Text += fmt.Sprintf("; %d others wait before it", y.Ahead-1)
	}
	return nil
}

func (w *Why) whySemaphore(ctx context.Context, y *control.Why, ref messages.Ref, name string) error {
	sem, _, err := w.cfg.Semaphores.Semaphore(ctx, name)
	if err != nil {
		return err
	}
	y.Line, y.Taken, y.Places = name, len(sem.Permits), sem.Limit
	if workspace, ok := queue.WorkspaceOfSemaphore(name); ok {
		return w.whyWorkspace(ctx, y, ref, workspace, &sem)
	}
	var paused *queue.Pause // of what the semaphore belongs to: no run is given a permit meanwhile
	what := "concurrency key " + name[strings.LastIndexByte(name, '.')+1:]
	if of, ok := queue.QuotaOfSemaphore(name); ok {
		q, _, err := w.cfg.Quotas.Quota(ctx, of)
		if err != nil {
			return err
		}
		y.Places, what, paused = q.MaxRunning, of.String(), q.Paused
	}
	if y.Ahead, y.AheadMore, err = w.cfg.Semaphores.Ahead(ctx, name, ref, maxAhead); err != nil {
		return err
	}
	y.Text += fmt.Sprintf(": %s has %d of %d taken, and %s before it", what, y.Taken, y.Places, waiting(y))
	if of, _ := queue.QuotaOfSemaphore(name); paused != nil {
		y.Paused = &control.PausedThing{QuotaRef: of, Pause: *paused}
		y.Text += "; " + pausedText(y.Paused)
	}
	return nil
}

// waiting says how many runs wait before one.
func waiting(y *control.Why) string {
	switch {
	case y.AheadMore:
		return fmt.Sprintf("more than %d runs wait", y.Ahead)
	case y.Ahead == 1:
		return "1 run waits"
	default:
		return fmt.Sprintf("%d runs wait", y.Ahead)
	}
}

// whyWorkspace says which run has the workspace.
func (w *Why) whyWorkspace(ctx context.Context, y *control.Why, ref messages.Ref, name string, sem *queue.Semaphore) (err error) {
	y.Places, y.Workspace = 1, name
	y.Text = "It waits for workspace " + name
	if len(sem.Permits) > 0 {
		if holder := sem.Permits[0].Ref().Run; holder != messages.NoRun { // that is a request to remove it
			y.Turn = holder
			y.Text += ", which run " + holder + " has"
		}
	}
	if y.Ahead, y.AheadMore, err = w.cfg.Semaphores.Ahead(ctx, y.Line, ref, maxAhead); err != nil {
		return err
	}
	if y.Ahead > 0 {
		y.Text += "; " + waiting(y) + " before it"
	}
	return nil
}

func (w *Why) whyPaused(ctx context.Context, y *control.Why, name string) error {
	text := y.Text
	y.Text = "What kept it was resumed, and it is about to be woken"
	of, ok := queue.QuotaOfSemaphore(name)
	if !ok {
		return nil
	}
	p, err := w.pausedThing(ctx, of)
	if err != nil || p == nil {
		return err
	}
	y.Paused, y.Text = p, text+": "+pausedText(p)
	return nil
}
