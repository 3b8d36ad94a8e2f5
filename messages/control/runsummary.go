package control

import (
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// RunSummary is a run in a list, as its events tell it.
type RunSummary struct {
	Tenant    string            `json:"tenant"`
	ID        string            `json:"id"`
	Agent     string            `json:"agent,omitempty"`
	Status    messages.Status   `json:"status"`
	Priority  messages.Priority `json:"priority,omitempty"`
	Session   string            `json:"sessionId,omitempty"`
	Parent    string            `json:"parent,omitempty"` // the run that delegated to it
	Labels    map[string]string `json:"labels,omitempty"`
	Steps     int               `json:"steps"`
	Waits     string            `json:"waits,omitempty"` // what a waiting run waits for
	Queued    *time.Time        `json:"queuedAt,omitempty"`
	NotBefore *time.Time        `json:"notBefore,omitempty"` // when a delayed task comes to the queue
	Started   *time.Time        `json:"startedAt,omitempty"` // absent when it began before the events that were read
	Finished  *time.Time        `json:"finishedAt,omitempty"`
	Code      messages.Code     `json:"code,omitempty"`  // why it failed, or why it waits for its model
	Input     string            `json:"input,omitempty"` // its beginning
	Usage     messages.Usage    `json:"tokenUsage"`

	// What only an index tells.
	Updated    *time.Time `json:"updatedAt,omitempty"` // the newest event
	Model      string     `json:"model,omitempty"`     // that answered last, as provider/model
	ModelCalls int        `json:"modelCalls,omitempty"`
	ToolCalls  int        `json:"toolCalls,omitempty"`
	ToolErrors int        `json:"toolErrors,omitempty"`
	Cost       *float64   `json:"cost,omitempty"`    // US dollars; absent: not known
	Error      string     `json:"error,omitempty"`   // why it failed, or why it waits for its model, in words
	Summary    string     `json:"summary,omitempty"` // what it made: the beginning
}

// NewRunSummary is the summary of a run of which no event has been applied.
func NewRunSummary(run messages.Ref) *RunSummary {
	return &RunSummary{Tenant: run.Tenant, ID: run.Run, Status: messages.StatusRunning}
}

// Apply takes an event of the run into account. What cannot be read of it is left out. Events may come in any order, but
// for those that begin and end waits; after the end only what the run began with counts.
func (r *RunSummary) Apply(e *messages.Event) {
	switch e.Name() {
	case messages.EventRunQueued:
		r.begin(e)
	case messages.EventRunStarted:
		var d messages.RunStarted
		if json.Unmarshal(e.Data, &d) == nil && d.Parent != nil {
			r.Parent = d.Parent.Run
		}
	default:
	}
	if r.Finished != nil {
		return
	}
	switch e.Name() {
	case messages.EventStepStart:
		var d messages.Step
		if json.Unmarshal(e.Data, &d) == nil {
			r.Steps = max(r.Steps, d.Step)
		}
	case messages.EventMessageEnd:
		var d messages.MessageEnd
		if json.Unmarshal(e.Data, &d) == nil {
			r.Usage = r.Usage.Add(d.Usage)
		}
	case messages.EventRunWaiting:
		var d messages.RunWaiting
		_ = json.Unmarshal(e.Data, &d) // it waits, for whatever
		r.Status, r.Waits, r.Code, r.Error = messages.StatusWaiting, d.Reason, "", ""
		if d.Cause != nil {
			r.Code, r.Error = d.Cause.Code, d.Cause.Message
		}
		if d.Reason == queue.ParkWorker {
			r.Error = d.Question
		}
	case messages.EventRunResumed:
		r.Status, r.Waits, r.Code, r.Error = messages.StatusRunning, "", "", ""
	case messages.EventRunFinished:
		r.finish(e)
	default:
	}
}

func (r *RunSummary) begin(e *messages.Event) {
	var d messages.RunQueued
	if json.Unmarshal(e.Data, &d) == nil {
		r.Agent, r.Priority, r.Session, r.Labels, r.Input = d.Agent, d.Priority, d.Session, d.Labels, d.Input
		r.Queued, r.Started = known(d.QueuedAt), known(e.Time)
	}
}

func (r *RunSummary) finish(e *messages.Event) {
	var d messages.RunFinished
	if json.Unmarshal(e.Data, &d) != nil || d.Result.ID == "" {
		d.Result = messages.AgentResult{Status: messages.StatusFailed, Steps: r.Steps, TokenUsage: r.Usage} // it ended; more is not known
	}
	res := &d.Result
	r.Code, r.Error = "", ""
	r.Status, r.Waits, r.Steps, r.Finished, r.Usage = res.Status, "", res.Steps, known(e.Time), res.TokenUsage
	if r.Started == nil {
		r.Started = known(res.StartedAt)
	}
	if res.Provenance != nil && r.Agent == "" {
		r.Agent = res.Provenance.Agent
	}
	if res.Error != nil {
		r.Code = res.Error.Code
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
