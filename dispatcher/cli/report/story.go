package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// run is what is known of a run that is shown.
type run struct {
	id, name string
	depth    int // how far below the run that is watched
	began    time.Time
	seen     uint64 // number of the newest event
	step     int
	doing    string // now; may be hostile
	tokens   int64
	calls    []call // of this step that have not returned, in the model's order
	ended    bool
	written  messages.LiveReply  // the reply that is being written
	output   messages.LiveOutput // what the newest program of a tool writes
	told     int                 // the last step whose reply is known whole, or will not come
	failure  string              // the message of the last error that was shown
	failedIn int                 // the step of it
}

// tell takes an event into account and returns the line that it is worth.
func (r *run) tell(e *messages.Event) render.Line {
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
	case messages.EventPolicyViolation:
		return told(e, func(d messages.PolicyViolation) render.Line {
			return render.Line{Mark: render.Attention, Text: fmt.Sprintf("policy: %s %s: %s", d.Action, d.Point, d.Reason)}
		})
	case messages.EventMemoryWrite:
		return told(e, memoryWritten)
	case messages.EventMemoryRecalled:
		return told(e, memoryRecalled)
	case messages.EventSteered:
		return told(e, r.steered)
	case messages.EventDelegated:
		return told(e, func(d messages.DelegatedData) render.Line {
			line := render.Line{Mark: render.Info, Text: fmt.Sprintf("delegates to %d agents", len(d.Children))}
			for _, c := range d.Children[:min(len(d.Children), maxChildrenTold)] {
				line.Text += fmt.Sprintf("; %s: run %s", c.Agent, c.Run)
			}
			return line
		})
	case messages.EventChildEnded:
		return told(e, func(d messages.ChildEndedData) render.Line {
			if d.Status != messages.StatusCompleted {
				return render.Line{Mark: render.Attention, Text: fmt.Sprintf("child %s: %s", d.Run, d.Status)}
			}
			return render.Line{Mark: render.Info, Text: fmt.Sprintf("child %s: %s", d.Run, d.Status)}
		})
	case messages.EventRunFinished:
		return told(e, func(d messages.RunFinished) render.Line { return r.finished(&d.Result) })
	case nameOf(events.TypeEventsExpired):
		return told(e, func(g events.Gap) render.Line { return lacking(g, "are no longer kept") })
	case nameOf(events.TypeEventsMissing):
		return told(e, func(g events.Gap) render.Line { return lacking(g, "did not come in time") })
	default: // turn_end repeats what run_finished says; others are of a newer version
		return render.Line{}
	}
}

// maxChildrenTold bounds the runs that a line names.
const maxChildrenTold = 4

// told reads an event's data. It is not strict: a newer version may have added fields.
func told[T any](e *messages.Event, tell func(T) render.Line) render.Line {
	var d T
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return render.Line{Mark: render.Attention, Text: fmt.Sprintf("event %s (%s) cannot be read", e.Sequence, e.Name())}
	}
	return tell(d)
}

func nameOf(eventType string) string { e := messages.Event{Type: eventType}; return e.Name() }

func lacking(g events.Gap, why string) render.Line {
	return render.Line{Mark: render.Attention, Text: fmt.Sprintf("events %d to %d %s", g.First, g.Last, why)}
}

func (r *run) queued(d messages.RunQueued) render.Line {
	r.since(d.QueuedAt)
	return render.Line{Mark: render.Info, Text: fmt.Sprintf("%s for agent %s, priority %s: %s", r.id, d.Agent, d.Priority, d.Input)}
}

func (r *run) started(d messages.RunStarted) render.Line {
	r.doing = "starting"
	text := "started: at most " + render.Count(int64(d.MaxSteps), "step")
	if d.Model != "" {
		text += ", model " + d.Model
	}
	if len(d.Models) > 0 {
		text += ", models " + strings.Join(d.Models, " ")
	}
	if len(d.Tools) > 0 {
		text += ", tools " + strings.Join(d.Tools, " ")
	}
	return render.Line{Mark: render.Info, Text: text, Minor: true}
}

func (r *run) stepStarted(d messages.Step) render.Line {
	if ofPlan(&d) {
		r.step, r.doing = d.Step, "step "+render.Visible(d.StepID)
		return render.Line{}
	}
	r.step, r.doing, r.calls = d.Step, "calling the model", nil
	return render.Line{}
}

func (r *run) replied(d messages.MessageEnd) render.Line {
	r.whole(r.step)
	used := d.Usage.Total
	if used == 0 {
		used = d.Usage.Input + d.Usage.Output
	}
	r.tokens += max(used, 0)
	for _, c := range d.ToolCalls {
		r.begin(c.ID, Describe(c))
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
	l := render.Line{Mark: render.Fine, Text: r.inStep(text), Note: render.Tokens(used) + ", " + render.Millis(d.Millis)}
	switch d.Stop {
	case messages.StopLength, messages.StopContentFilter, messages.StopRefusal, messages.StopError:
		l.Mark, l.Note = render.Attention, "stopped: "+string(d.Stop)+", "+l.Note
	case messages.StopEnd, messages.StopToolCalls:
	default:
	}
	return l
}

func (r *run) toolStarted(d messages.ToolExecution) render.Line {
	text := Describe(messages.ToolCall{Name: d.ToolName, Arguments: d.Arguments})
	r.begin(d.CallID, text)
	r.doing = text
	return render.Line{Mark: render.Info, Text: r.inStep(text + " begins"), Minor: true}
}

func (r *run) toolEnded(d messages.ToolExecution) render.Line {
	text, ok := r.end(d.CallID)
	if !ok {
		text = render.Visible(d.ToolName)
	}
	r.doing = r.working()
	if r.output.CallID == d.CallID {
		r.output.Text = ""
	}
	l := render.Line{Mark: render.Fine, Text: r.inStep(text + ": " + d.Result), Note: render.Millis(d.Millis)}
	if d.IsError {
		l.Mark, l.Text, l.Note = render.Bad, r.inStep(text+" failed: "+d.Result), joined(string(d.Code), l.Note)
	}
	return l
}

func (r *run) stepEnded(d messages.Step) render.Line {
	if ofPlan(&d) {
		return planStepEnded(&d)
	}
	r.whole(d.Step)
	r.doing, r.calls = "between steps", nil
	if d.Status == messages.StepCompleted || d.Status == messages.StepFailed && d.Step == r.failedIn { // it was told why
		return render.Line{}
	}
	return render.Line{Mark: render.Attention, Text: fmt.Sprintf("step %d %s", d.Step, d.Status)}
}

func (r *run) waits(d messages.RunWaiting) render.Line {
	r.doing = "waiting for " + d.Reason
	for _, c := range r.calls {
		if c.id == d.CallID {
			r.doing += " of " + c.text
		}
	}
	l := render.Line{Mark: render.Waiting, Text: r.doing}
	if d.Question != "" {
		l.Text += ": " + d.Question
	}
	if d.Cause != nil {
		l.Text += fmt.Sprintf(", attempt %d failed: %s", d.Cause.Attempt, d.Cause.Text())
	}
	if d.Until != nil {
		l.Note = "until " + render.At(*d.Until, r.began)
		if d.Cause != nil {
			l.Note = "next attempt at " + render.At(*d.Until, r.began)
		}
	}
	return l
}

func (r *run) resumed(d messages.RunWaiting) render.Line {
	r.doing = r.working()
	return render.Line{Mark: render.Info, Text: "resumed after waiting for " + d.Reason}
}

func (r *run) budgetWarned(d messages.BudgetWarning) render.Line {
	spent, allowed := amount(d.Limit, d.Spent), amount(d.Limit, d.Allowed)
	return render.Line{Mark: render.Attention, Text: fmt.Sprintf("budget: %s is at %s of %s", d.Limit, spent, allowed)}
}

// amount is how much of a budget: dollars, seconds or a count.
func amount(limit string, n float64) string {
	switch limit {
	case messages.CapCost:
		return messages.Money(n)
	case messages.CapWallTime:
		return render.Took(time.Duration(n * float64(time.Second)))
	default:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
}

func (r *run) hookFailed(d messages.HookFailure) render.Line {
	l := render.Line{Mark: render.Attention, Text: fmt.Sprintf("hook %s at %s failed: %s", d.Hook, d.On, d.Reason)}
	if d.Fatal {
		l.Mark = render.Bad
	}
	return l
}

func (r *run) cancelAsked(d messages.CancelAsked) render.Line {
	r.doing = "stopping"
	text := "asked to stop"
	if d.By != "" {
		text += " by " + d.By
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return render.Line{Mark: render.Attention, Text: text}
}

func (r *run) modelFailed(d messages.ErrorData) render.Line {
	r.whole(r.step)
	r.doing = "ending after an error"
	if d.Fallback != "" {
		r.doing = "continuing after an error: " + d.Fallback
	}
	r.failure, r.failedIn = d.Message, r.step
	return render.Line{Mark: render.Bad, Text: r.inStep("the model call failed: " + d.Message), Note: string(d.Code), Whole: true}
}

func (r *run) finished(result *messages.AgentResult) render.Line {
	r.ended, r.calls, r.doing = true, nil, string(result.Status)
	r.written, r.output.Text = messages.LiveReply{}, ""
	l := render.Line{Mark: render.Fine}
	if !result.Success {
		l.Mark = render.Bad
	}
	l.Text, l.Note = render.Outcome(result.Status, result.Error)
	l.Whole = result.Error != nil
	if result.Error != nil && result.Error.Message == r.failure { // the line above has it
		l.Text = string(result.Status)
	}
	l.Note = joined(l.Note, render.Count(int64(result.Steps), "step"))
	if result.TokenUsage.Total > 0 {
		l.Note = joined(l.Note, render.Tokens(result.TokenUsage.Total))
	}
	if usd := result.CostEstimate; usd != nil && *usd > 0 {
		l.Note = joined(l.Note, messages.Money(*usd))
	}
	l.Note = joined(l.Note, render.Took(result.FinishedAt.Sub(result.StartedAt)))
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

func (r *run) steered(d messages.SteeredData) render.Line {
	text := "told"
	if d.By != "" {
		text += " by " + d.By
	}
	return render.Line{Mark: render.Info, Text: text + ": " + d.Message}
}
