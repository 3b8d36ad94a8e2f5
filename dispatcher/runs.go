package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// MaxRuns bounds what Runs gathers: of more runs the oldest are forgotten.
const MaxRuns = 10_000

// RunFilter says which runs to list. Zero fields do not restrict.
type RunFilter struct {
	Tenant   string    // default "default"
	Since    time.Time // with an event since then; queued ones that were submitted since
	Until    time.Time // submitted before
	Statuses []messages.Status
	Agent    string
	Session  string
	Parent   string // to which this run delegated
	Labels   map[string]string
	Search   string        // in the id and the input; an index also looks into the error and what was done
	Code     messages.Code // why it failed
	ID       string        // this run alone
	Prefix   string        // whose id begins with it
	After    string        // the id after which a list continues, newest first
	Limit    int           // default MaxRuns
}

// RunList is what was found.
type RunList = control.RunList

// FilterOf returns the filter of a request.
func FilterOf(r *control.RunsRequest) RunFilter {
	f := RunFilter{
		Tenant: r.Tenant, Statuses: r.Statuses, Agent: r.Agent, Session: r.Session, Parent: r.Parent, Labels: r.Labels,
		Search: r.Search, Code: r.Code, ID: r.ID, Prefix: r.Prefix, After: r.After, Limit: r.Limit,
	}
	if r.Since != nil {
		f.Since = *r.Since
	}
	if r.Until != nil {
		f.Until = *r.Until
	}
	return f
}

// List lists runs by the dispatcher's index, and before those the ones that are only queued, or wait for their time:
// MaxRuns of them at most, the next to be begun. Without an index it reads the events itself: of MaxRuns runs.
func (of Runs) List(ctx context.Context, f RunFilter) (*RunList, error) {
	if f.Tenant == "" {
		f.Tenant = messages.DefaultTenant
	}
	if of.client.remote != nil {
		return of.client.listed(ctx, f)
	}
	list, err := of.client.indexed(ctx, &f)
	if errors.Is(err, ErrNoIndex) || errors.Is(err, ErrUnavailable) {
		return of.client.scanned(ctx, f)
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return list, nil
}

// scanned is Runs by the events.
func (c *Client) scanned(ctx context.Context, f RunFilter) (*RunList, error) {
	queued, err := c.queued(ctx, &f)
	if err != nil {
		return nil, fmt.Errorf("read the queue: %w", err)
	}
	all := newRecent(f.Tenant, MaxRuns)
	for e, err := range c.Runs().Recent(ctx, f.Tenant, f.Since) {
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		queued.begun(&e)
		all.add(&e)
	}
	queued.addTo(all)
	list := all.list(f)
	list.MoreQueued = queued.more
	return list, nil
}

func (f *RunFilter) matches(r *control.RunSummary) bool {
	if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.Status) ||
		f.ID != "" && r.ID != f.ID || !strings.HasPrefix(r.ID, f.Prefix) ||
		f.Code != "" && r.Code != f.Code || f.Search != "" && !contains(r, f.Search) ||
		f.Agent != "" && r.Agent != f.Agent || f.Session != "" && r.Session != f.Session || f.Parent != "" && r.Parent != f.Parent {
		return false
	}
	if from := cmp.Or(r.Queued, r.Started); from != nil && !f.Until.IsZero() && !from.Before(f.Until) {
		return false
	}
	for k, v := range f.Labels {
		if got, ok := r.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// recent gathers runs from events, oldest event first. It keeps at most limit runs.
type recent struct {
	tenant    string
	limit     int
	runs      map[string]*control.RunSummary
	waits     map[string]uint64 // the number of the newest event that begins or ends a wait, of runs that have one
	order     []string          // of their first events
	forgotten int
}

func newRecent(tenant string, limit int) *recent {
	return &recent{tenant: tenant, limit: limit, runs: map[string]*control.RunSummary{}, waits: map[string]uint64{}}
}

// add takes an event into account.
func (r *recent) add(e *messages.Event) {
	if !strict.ValidToken(e.Subject) || e.Subject == "_" { // events without a run
		return
	}
	run, ok := r.runs[e.Subject]
	if !ok {
		if r.forgotten > 0 && e.Number() > 1 {
			return // of a run that was forgotten, or began before the first event
		}
		run = r.begin(e.Subject)
	}
	if n := e.Name(); n == messages.EventRunWaiting || n == messages.EventRunResumed {
		if e.Number() < r.waits[e.Subject] {
			return // it was stored after a newer one
		}
		r.waits[e.Subject] = e.Number()
	}
	run.Apply(e)
}

func (r *recent) begin(id string) *control.RunSummary {
	if len(r.order) == r.limit {
		delete(r.runs, r.order[0])
		delete(r.waits, r.order[0])
		r.order = r.order[1:]
		r.forgotten++
	}
	run := control.NewRunSummary(messages.Ref{Tenant: r.tenant, Run: id})
	r.runs[id] = run
	r.order = append(r.order, id)
	return run
}

// list is the newest runs that fit, by when they began to be known.
func (r *recent) list(f RunFilter) *RunList {
	out := &RunList{Runs: []*control.RunSummary{}, Forgotten: r.forgotten}
	on := f.After == "" || r.runs[f.After] == nil
	for _, id := range slices.Backward(r.order) {
		run := r.runs[id]
		if !on {
			on = id == f.After
			continue
		}
		if !f.matches(run) {
			continue
		}
		out.Found++
		if f.Limit > 0 && len(out.Runs) == f.Limit {
			out.Next = out.Runs[len(out.Runs)-1].ID
			continue
		}
		out.Runs = append(out.Runs, run)
	}
	return out
}

// Why tells what a run waits for, or what it does. ErrNotFound: there is no such run.
func (of Runs) Why(ctx context.Context, run messages.Ref) (*control.Why, error) {
	return ask[control.Why](ctx, of.client, control.SubjectWhy, control.RunRequest{Tenant: run.Tenant, ID: run.Run})
}

// AddFeedback stores feedback on a run, also after its end; the run does not change. F.Tenant and f.ID are set from run; f.Control
// makes it idempotent. ErrConflict: that id belongs to other feedback.
func (of Runs) AddFeedback(ctx context.Context, run messages.Ref, f control.FeedbackRequest) (*control.Feedback, error) {
	f.Tenant, f.ID = run.Tenant, run.Run
	return ask[control.Feedback](ctx, of.client, control.SubjectFeedback, f)
}

// Feedback lists the newest feedback on a run, for as long as events are kept.
func (of Runs) Feedback(ctx context.Context, run messages.Ref) (*control.FeedbackList, error) {
	return ask[control.FeedbackList](ctx, of.client, control.SubjectFeedbackList, control.RunRequest{Tenant: run.Tenant, ID: run.Run})
}

// WatchTree yields the events of a run and of all runs below it: those of each run as Watch does, and after the event with which its
// parent delegated. There is no other order among the events of different runs. It ends when all of these runs have ended, or with an
// error when ctx ends. A run below of which no event is kept is an event of type longshore.events_expired.v1.
func (of Runs) WatchTree(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	if of.client.remote != nil {
		return of.client.remote.watchTree(ctx, run)
	}
	return events.Tree{Watch: of.client.Watch, Over: of.Over}.Events(ctx, run)
}

// Over reports whether a run has ended, or is gone.
func (of Runs) Over(ctx context.Context, run messages.Ref) (bool, error) {
	s, err := of.client.Status(ctx, run)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return err == nil && s.Status.Ended(), err
}

// Recent yields the stored events of all runs of a tenant since a time, oldest first, up to now.
func (of Runs) Recent(ctx context.Context, tenant string, since time.Time) iter.Seq2[messages.Event, error] {
	if err := (messages.Ref{Tenant: tenant, Run: "_"}).Check(); err != nil {
		return func(yield func(messages.Event, error) bool) { yield(messages.Event{}, err) }
	}
	if of.client.remote != nil {
		return func(yield func(messages.Event, error) bool) { yield(messages.Event{}, ErrOverHTTP) }
	}
	return of.client.events.EventsOf(ctx, tenant, since)
}

// ResultWithTranscript is Client.Result with a page of what was said in the run: from the beginning, or after Transcript.Next of
// the page before. Texts of a message that is too long for a page are shortened, and it says so.
func (of Runs) ResultWithTranscript(ctx context.Context, run messages.Ref, after string) (*messages.AgentResult, error) {
	return of.client.resultOf(ctx, control.ResultRequest{Tenant: run.Tenant, ID: run.Run, Transcript: true, After: after})
}

// TaskResult returns the result of a run that has ended in short, with what processes logged about it.
func (of Runs) TaskResult(ctx context.Context, run messages.Ref) (*control.TaskResult, error) {
	var r control.TaskResult
	req := control.ResultRequest{Tenant: run.Tenant, ID: run.Run, Format: control.FormatTaskResult}
	if err := of.client.request(ctx, control.SubjectResult, req, &r); err != nil {
		return nil, err
	}
	return &r, nil
}
