package cli

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Columns of what a list shows of a run.
const (
	listedInput = 60
	listedToken = 64
)

// recentRun is a run as its events tell it. Started is nil when it began before the events that were read.
type recentRun struct {
	ID       string          `json:"id"`
	Agent    string          `json:"agent,omitempty"`
	Status   messages.Status `json:"status"`
	Steps    int             `json:"steps"`
	Queued   *time.Time      `json:"queuedAt,omitempty"`
	Started  *time.Time      `json:"startedAt,omitempty"`
	Finished *time.Time      `json:"finishedAt,omitempty"`
	Input    string          `json:"input,omitempty"` // its beginning
}

// recent gathers runs from events, oldest event first. It keeps at most limit runs.
type recent struct {
	limit     int
	runs      map[string]*recentRun
	order     []string // of their first events
	forgotten int
}

func newRecent(limit int) *recent { return &recent{limit: limit, runs: map[string]*recentRun{}} }

// add takes an event into account. What cannot be read of it is left out.
func (r *recent) add(e *messages.Event) {
	if !messages.ValidToken(e.Subject) || e.Subject == "_" { // events without a run
		return
	}
	run, ok := r.runs[e.Subject]
	if !ok {
		if r.forgotten > 0 && e.Number() > 1 {
			return // of a run that was forgotten, or began before the first event
		}
		run = r.begin(e.Subject)
	}
	run.apply(e)
}

func (r *recent) begin(id string) *recentRun {
	if len(r.order) == r.limit {
		delete(r.runs, r.order[0])
		r.order = r.order[1:]
		r.forgotten++
	}
	run := &recentRun{ID: id, Status: messages.StatusRunning}
	r.runs[id] = run
	r.order = append(r.order, id)
	return run
}

func (r *recentRun) apply(e *messages.Event) {
	if r.Finished != nil {
		return
	}
	switch e.Name() {
	case messages.EventRunQueued:
		var d messages.RunQueued
		if json.Unmarshal(e.Data, &d) == nil {
			r.Agent, r.Input = truncate(d.Agent, listedToken), truncate(visible(d.Input), listedInput)
			r.Queued = known(d.QueuedAt)
			r.Started = known(e.Time)
		}
	case messages.EventStepStart:
		var d messages.Step
		if json.Unmarshal(e.Data, &d) == nil {
			r.Steps = max(r.Steps, d.Step)
		}
	case messages.EventRunWaiting:
		r.Status = messages.StatusWaiting
	case messages.EventRunResumed:
		r.Status = messages.StatusRunning
	case messages.EventRunFinished:
		r.finish(e)
	default:
	}
}

func (r *recentRun) finish(e *messages.Event) {
	result := resultOf(e)
	if result == nil {
		result = &messages.AgentResult{Status: messages.StatusFailed, Steps: r.Steps} // it ended; more is not known
	}
	r.Status, r.Steps, r.Finished = result.Status, result.Steps, known(e.Time)
	if r.Started == nil {
		r.Started = known(result.StartedAt)
	}
	if p := result.Provenance; p != nil && r.Agent == "" {
		r.Agent = truncate(p.Agent, listedToken)
	}
	if !r.Status.Ended() {
		r.Status = messages.StatusFailed
	}
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// newestFirst are the runs of some statuses, or all, by when they began to be known.
func (r *recent) newestFirst(statuses []string) []*recentRun {
	var out []*recentRun
	for _, id := range slices.Backward(r.order) {
		run := r.runs[id]
		if len(statuses) == 0 || slices.Contains(statuses, string(run.Status)) {
			out = append(out, run)
		}
	}
	return out
}
