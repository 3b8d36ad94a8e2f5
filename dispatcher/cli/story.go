package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// run is what is known of a run that is shown.
type run struct {
	id, name string
	began    time.Time
	seen     uint64 // number of the newest event
	step     int
	doing    string // now; may be hostile
	tokens   int64
	calls    []call // of this step that have not returned, in the model's order
	ended    bool
	written  messages.LiveReply // the reply that is being written
	told     int                // the last step whose reply is known whole, or will not come
	failure  string             // the message of the last error that was shown
	failedIn int                // the step of it
}

// tell takes an event into account and returns the line that it is worth.
func (r *run) tell(e *messages.Event) line {
	r.since(e.Time)
	switch e.Name() {
	case messages.EventRunQueued:
		return told(e, r.queued)
	case messages.EventRunStarted:
		return told(e, r.started)
	case messages.EventStepStart:
		return told(e, r.stepStarted)
	case messages.EventMessageEnd:
		return told(e, r.replied)
	case messages.EventToolExecutionStart:
		return told(e, r.toolStarted)
	case messages.EventToolExecutionEnd:
		return told(e, r.toolEnded)
	case messages.EventStepEnd:
		return told(e, r.stepEnded)
	case messages.EventRunWaiting:
		return told(e, r.waits)
	case messages.EventRunResumed:
		return told(e, r.resumed)
	case messages.EventCancelRequested:
		return told(e, r.cancelAsked)
	case messages.EventError:
		return told(e, r.modelFailed)
	case messages.EventPlan:
		return told(e, r.planned)
	case messages.EventBudgetWarning:
		return told(e, r.budgetWarned)
	case messages.EventHookFailed:
		return told(e, r.hookFailed)
	case messages.EventSteered:
		return told(e, r.steered)
	case messages.EventRunFinished:
		return told(e, func(d messages.RunFinished) line { return r.finished(&d.Result) })
	case nameOf(bus.TypeEventsExpired):
		return told(e, func(g bus.Gap) line { return lacking(g, "are no longer kept") })
	case nameOf(bus.TypeEventsMissing):
		return told(e, func(g bus.Gap) line { return lacking(g, "did not come in time") })
	default: // turn_end repeats what run_finished says; others are of a newer version
		return line{}
	}
}

// told reads an event's data. It is not strict: a newer version may have added fields.
func told[T any](e *messages.Event, tell func(T) line) line {
	var d T
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return line{mark: attention, text: fmt.Sprintf("event %s (%s) cannot be read", e.Sequence, e.Name())}
	}
	return tell(d)
}

func nameOf(eventType string) string { e := messages.Event{Type: eventType}; return e.Name() }

func lacking(g bus.Gap, why string) line {
	return line{mark: attention, text: fmt.Sprintf("events %d to %d %s", g.First, g.Last, why)}
}

func (r *run) queued(d messages.RunQueued) line {
	r.since(d.QueuedAt)
	return line{mark: info, text: fmt.Sprintf("%s for agent %s, priority %s: %s", r.id, d.Agent, d.Priority, d.Input)}
}

func (r *run) started(d messages.RunStarted) line {
	r.doing = "starting"
	text := "started: at most " + count(int64(d.MaxSteps), "step")
	if d.Model != "" {
		text += ", model " + d.Model
	}
	if len(d.Models) > 0 {
		text += ", models " + strings.Join(d.Models, " ")
	}
	if len(d.Tools) > 0 {
		text += ", tools " + strings.Join(d.Tools, " ")
	}
	return line{mark: info, text: text, minor: true}
}

func (r *run) stepStarted(d messages.Step) line {
	if ofPlan(&d) {
		r.step, r.doing = d.Step, "step "+visible(d.StepID)
		return line{}
	}
	r.step, r.doing, r.calls = d.Step, "calling the model", nil
	return line{}
}

func (r *run) replied(d messages.MessageEnd) line {
	r.whole(r.step)
	used := d.Usage.Total
	if used == 0 {
		used = d.Usage.Input + d.Usage.Output
	}
	r.tokens += max(used, 0)
	for _, c := range d.ToolCalls {
		r.begin(c.ID, describe(c))
	}
	r.doing = r.working()
	if len(d.ToolCalls) == 0 {
		r.doing = "finishing"
	}
	text := d.Text
	if calls := listed(d.ToolCalls); calls != "" {
		text = strings.TrimSpace(text + " → " + calls)
	}
	if text == "" {
		text = "(an empty reply)"
	}
	l := line{mark: fine, text: r.inStep(text), note: tokens(used) + ", " + millis(d.Millis)}
	switch d.Stop {
	case messages.StopLength, messages.StopContentFilter, messages.StopRefusal, messages.StopError:
		l.mark, l.note = attention, "stopped: "+string(d.Stop)+", "+l.note
	case messages.StopEnd, messages.StopToolCalls:
	default:
	}
	return l
}

func (r *run) toolStarted(d messages.ToolExecution) line {
	text := describe(messages.ToolCall{Name: d.ToolName, Arguments: d.Arguments})
	r.begin(d.CallID, text)
	r.doing = text
	return line{mark: info, text: r.inStep(text + " begins"), minor: true}
}

func (r *run) toolEnded(d messages.ToolExecution) line {
	text, ok := r.end(d.CallID)
	if !ok {
		text = visible(d.ToolName)
	}
	r.doing = r.working()
	l := line{mark: fine, text: r.inStep(text + ": " + d.Result), note: millis(d.Millis)}
	if d.IsError {
		l.mark, l.text, l.note = bad, r.inStep(text+" failed: "+d.Result), joined(string(d.Code), l.note)
	}
	return l
}

func (r *run) stepEnded(d messages.Step) line {
	if ofPlan(&d) {
		return planStepEnded(&d)
	}
	r.whole(d.Step)
	r.doing, r.calls = "between steps", nil
	if d.Status == messages.StepCompleted || d.Status == messages.StepFailed && d.Step == r.failedIn { // it was told why
		return line{}
	}
	return line{mark: attention, text: fmt.Sprintf("step %d %s", d.Step, d.Status)}
}

func (r *run) waits(d messages.RunWaiting) line {
	r.doing = "waiting for " + d.Reason
	for _, c := range r.calls {
		if c.id == d.CallID {
			r.doing += " of " + c.text
		}
	}
	l := line{mark: waiting, text: r.doing}
	if d.Question != "" {
		l.text += ": " + d.Question
	}
	if d.Cause != nil {
		l.text += fmt.Sprintf(", attempt %d failed: %s", d.Cause.Attempt, d.Cause.Text())
	}
	if d.Until != nil {
		l.note = "until " + d.Until.UTC().Format(time.RFC3339)
		if d.Cause != nil {
			l.note = "next attempt at " + d.Until.UTC().Format(time.RFC3339)
		}
	}
	return l
}

func (r *run) resumed(d messages.RunWaiting) line {
	r.doing = r.working()
	return line{mark: info, text: "goes on after waiting for " + d.Reason}
}

func (r *run) budgetWarned(d messages.BudgetWarning) line {
	spent, allowed := amount(d.Limit, d.Spent), amount(d.Limit, d.Allowed)
	return line{mark: attention, text: fmt.Sprintf("budget: %s is at %s of %s", d.Limit, spent, allowed)}
}

// amount is how much of a budget: dollars, seconds or a count.
func amount(limit string, n float64) string {
	switch limit {
	case messages.CapCost:
		return messages.Money(n)
	case messages.CapWallTime:
		return took(time.Duration(n * float64(time.Second)))
	default:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
}

func (r *run) hookFailed(d messages.HookFailure) line {
	l := line{mark: attention, text: fmt.Sprintf("hook %s at %s failed: %s", d.Hook, d.On, d.Reason)}
	if d.Fatal {
		l.mark = bad
	}
	return l
}

func (r *run) cancelAsked(d messages.CancelAsked) line {
	r.doing = "stopping"
	text := "asked to stop"
	if d.By != "" {
		text += " by " + d.By
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return line{mark: attention, text: text}
}

func (r *run) modelFailed(d messages.ErrorData) line {
	r.whole(r.step)
	r.doing = "ending after an error"
	if d.Fallback != "" {
		r.doing = "going on after an error: " + d.Fallback
	}
	r.failure, r.failedIn = d.Message, r.step
	return line{mark: bad, text: r.inStep("the model call failed: " + d.Message), note: string(d.Code), whole: true}
}

func (r *run) finished(result *messages.AgentResult) line {
	r.ended, r.calls, r.doing = true, nil, string(result.Status)
	r.written = messages.LiveReply{}
	l := line{mark: fine}
	if !result.Success {
		l.mark = bad
	}
	l.text, l.note = outcome(result.Status, result.Error)
	l.whole = result.Error != nil
	if result.Error != nil && result.Error.Message == r.failure { // the line above has it
		l.text = string(result.Status)
	}
	l.note = joined(l.note, count(int64(result.Steps), "step"))
	if result.TokenUsage.Total > 0 {
		l.note = joined(l.note, tokens(result.TokenUsage.Total))
	}
	if usd := result.CostEstimate; usd != nil && *usd > 0 {
		l.note = joined(l.note, messages.Money(*usd))
	}
	l.note = joined(l.note, took(result.FinishedAt.Sub(result.StartedAt)))
	return l
}

func (r *run) inStep(text string) string {
	if r.step == 0 {
		return text
	}
	return fmt.Sprintf("step %d: %s", r.step, text)
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

func (r *run) steered(d messages.SteeredData) line {
	text := "told"
	if d.By != "" {
		text += " by " + d.By
	}
	return line{mark: info, text: text + ": " + d.Message}
}
