package messages

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Sizes of what an event may show, in bytes; the log has the whole.
const (
	maxEventText = 8 << 10
	maxEventArgs = 1 << 10
	maxEventList = 16
)

// Events derives what the world may see of an entry. Pure: the same entry always gives the same events, ids and
// running numbers included, so whoever finds an entry may publish them again.
func Events(run Ref, e Entry) []Event {
	if e.Head.Events == 0 {
		return nil
	}
	out := make([]Event, 0, e.Head.Events)
	for _, r := range e.Records {
		eventsOf(run, r, func(name string, data any) {
			n := strconv.FormatUint(e.Head.FirstEvent+uint64(len(out)), 10) //nolint:gosec // a count
			raw, err := json.Marshal(data)
			if err != nil {
				raw = []byte(`{}`) // our own data types always encode
			}
			out = append(out, Event{
				SpecVersion: "1.0", ID: run.Run + "." + n, Source: "/tenants/" + run.Tenant,
				Type: typePrefix + name + typeSuffix, Subject: run.Run, Time: e.Head.Time,
				DataContentType: "application/json", Sequence: n, Data: raw,
			})
		})
	}
	return out
}

func countEvents(r Record) int {
	n := 0
	eventsOf(Ref{}, r, func(string, any) { n++ })
	return n
}

// eventsOf is the one place that says which events a record has.
func eventsOf(run Ref, r Record, emit func(name string, data any)) {
	switch r := r.(type) {
	case *Started:
		in, _ := clip(r.Task.Input.Text(), maxEventArgs)
		emit(EventRunQueued, RunQueued{
			Agent: r.Task.Agent, Priority: r.Task.Priority, Session: r.Task.Session, Labels: r.Task.Labels,
			Input: in, QueuedAt: r.QueuedAt,
		})
		emit(EventRunStarted, RunStarted{
			Agent: r.Agent.Name, Revision: r.Agent.Revision, Model: r.Agent.Model, Tools: r.Agent.Tools,
			MaxSteps: r.Agent.MaxSteps,
		})
	case *Claimed:
		if r.Resumes != "" {
			emit(EventRunResumed, RunWaiting{Reason: r.Resumes})
		}
	case *StepStarted:
		emit(EventStepStart, Step{StepID: stepID(r.Step), Step: r.Step})
	case *ModelReplied:
		emit(EventMessageEnd, messageEnd(r))
	case *ModelFailed:
		emit(EventError, ErrorData{stepID(r.Step), r.Error.Message, r.Error.Code, r.Error.Code.Retryable()})
	case *ToolStarted:
		args, cut := clip(r.Call.Arguments, maxEventText)
		emit(EventToolExecutionStart, ToolExecution{
			StepID: stepID(r.Step), CallID: r.Call.ID, ToolName: r.Call.Name, Arguments: args, Truncated: cut,
		})
	case *ToolReturned:
		m := Message{Content: r.Result.Content}
		text, cut := clip(m.Text(), maxEventText)
		emit(EventToolExecutionEnd, ToolExecution{
			StepID: stepID(r.Step), CallID: r.Result.CallID, ToolName: r.Name, Result: text,
			IsError: r.Result.IsError, Code: r.Code, Millis: r.Millis, Truncated: cut,
		})
	case *StepEnded:
		emit(EventStepEnd, Step{StepID: stepID(r.Step), Step: r.Step, Status: r.Status})
	case *Parked:
		emit(EventRunWaiting, RunWaiting{Reason: r.Reason, CallID: r.Call, Until: r.Until})
	case *CancelRequested:
		emit(EventCancelRequested, CancelAsked{r.By, r.Reason})
	case *Finished:
		emit(EventTurnEnd, TurnEnd{r.Result.Steps, r.Result.TokenUsage})
		emit(EventRunFinished, RunFinished{r.Result.short(run)})
	}
}

func stepID(n int) string { return "step-" + strconv.Itoa(n) }

func messageEnd(r *ModelReplied) MessageEnd {
	m := MessageEnd{
		StepID: stepID(r.Step), Role: r.Message.Role, Stop: r.Stop, Usage: r.Usage,
		Provider: r.Provider, Model: r.Model, Millis: r.Millis,
	}
	m.Text, m.Truncated = clip(r.Message.Text(), maxEventText)
	for _, c := range r.Message.Calls() {
		if len(m.ToolCalls) == maxEventList {
			m.Truncated = true
			break
		}
		args, cut := clip(c.Arguments, maxEventArgs)
		m.ToolCalls = append(m.ToolCalls, ToolCall{c.ID, c.Name, args})
		m.Truncated = m.Truncated || cut
	}
	return m
}

// short is the copy of a result that fits an event.
func (r AgentResult) short(run Ref) AgentResult {
	var cut bool
	if s, ok := r.Result.(string); ok {
		r.Result, cut = clip(s, maxEventText)
	}
	if r.Error != nil {
		e := *r.Error
		e.Message, _ = clip(e.Message, maxEventArgs)
		e.Info = nil
		r.Error = &e
	}
	r.Truncated = cut || len(r.Actions) > 0 || len(r.ModelCalls) > 0
	r.Actions, r.ModelCalls = nil, nil
	if run != (Ref{}) {
		r.EventStream = run.EventFilter()
	}
	return r
}

// clip shortens s to at most n bytes at a rune boundary, and says that and by how much.
func clip(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:cut], len(s)-cut), true
}
