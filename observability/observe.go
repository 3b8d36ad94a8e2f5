package observability

import (
	"fmt"
	"math"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Observe counts an event. One that is not ours, or cannot be ours, is counted as such and changes nothing else. Again
// says that it may have been counted before.
func (m *Events) Observe(e messages.Event, again bool) {
	name := e.Name()
	if again {
		m.again.Inc()
	}
	m.seen.WithLabelValues(eventLabel(name)).Inc()
	if err := m.count(name, e); err != nil {
		m.malformed.Inc()
	}
}

func (m *Events) count(name string, e messages.Event) error {
	switch name {
	case messages.EventRunQueued:
		return decoded(e, func(d messages.RunQueued) error { return m.runQueued(e.Time, d) })
	case messages.EventRunStarted:
		return decoded(e, m.runStarted)
	case messages.EventRunWaiting:
		return decoded(e, m.runWaiting)
	case messages.EventRunResumed:
		return decoded(e, m.runResumed)
	case messages.EventApprovalRequested:
		m.requested.Inc()
		return nil
	case messages.EventApprovalDecided:
		return decoded(e, m.approvalDecided)
	case messages.EventBudgetWarning:
		return decoded(e, m.budgetWarning)
	case messages.EventMemoryRecalled:
		return decoded(e, m.memoryRecalled)
	case messages.EventHookFailed:
		m.hookFailures.Inc()
		return nil
	case messages.EventCancelRequested:
		return decoded(e, m.cancelRequested)
	case messages.EventMessageEnd:
		return decoded(e, m.messageEnd)
	case messages.EventError:
		return decoded(e, m.modelFailed)
	case messages.EventToolExecutionStart:
		return decoded(e, m.toolExecutionStart)
	case messages.EventToolExecutionEnd:
		return decoded(e, m.toolExecutionEnd)
	case messages.EventRunFinished:
		return decoded(e, m.runFinished)
	default:
		return nil
	}
}

func decoded[T any](e messages.Event, use func(T) error) error {
	var data T
	if err := strict.DecodePeer(e.Data, &data); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	return use(data)
}

// runQueued observes how long the task waited: the event is written by the worker that starts the run, together with
// run_started, and has its time. The clocks of two machines may disagree by a little.
func (m *Events) runQueued(started time.Time, d messages.RunQueued) error {
	if started.IsZero() || d.QueuedAt.IsZero() {
		return &messages.FieldError{Field: "queuedAt", Reason: "is missing, or the event's time is"}
	}
	m.firstEventSeconds.Observe(max(0, started.Sub(d.QueuedAt).Seconds()))
	return nil
}

func (m *Events) runStarted(d messages.RunStarted) error {
	m.started.WithLabelValues(m.agents.show(d.Agent)).Inc()
	return nil
}

func (m *Events) runWaiting(d messages.RunWaiting) error {
	m.waiting.WithLabelValues(m.reasons.show(d.Reason)).Inc()
	return nil
}

func (m *Events) runResumed(d messages.RunWaiting) error {
	m.resumed.WithLabelValues(m.reasons.show(d.Reason)).Inc()
	return nil
}

func (m *Events) approvalDecided(d messages.ApprovalDecided) error {
	m.decided.WithLabelValues(decisionLabel(d.Decision)).Inc()
	return nil
}

func (m *Events) budgetWarning(d messages.BudgetWarning) error {
	m.warnings.WithLabelValues(limitLabel(d.Limit)).Inc()
	return nil
}

// memoryRecalled counts the search with which a run begins.
func (m *Events) memoryRecalled(d messages.MemoryRecalled) error {
	if err := checkMillis(d.Millis); err != nil {
		return err
	}
	result := "hit"
	switch {
	case d.Error != "":
		result = "failed"
	case len(d.Memories) == 0:
		result = "miss"
	}
	m.recalls.WithLabelValues(result).Inc()
	m.recallSeconds.Observe(seconds(d.Millis))
	return nil
}

func (m *Events) cancelRequested(messages.CancelAsked) error {
	m.cancels.Inc()
	return nil
}

func (m *Events) messageEnd(d messages.MessageEnd) error {
	kinds := map[string]int64{
		"input": d.Usage.Input, "output": d.Usage.Output, "cache_read": d.Usage.CacheRead,
		"cache_write": d.Usage.CacheWrite, "reasoning": d.Usage.Reasoning,
	}
	for kind, n := range kinds {
		if n < 0 {
			return &messages.FieldError{Field: "usage." + kind, Reason: "is negative"}
		}
	}
	if err := checkMillis(min(d.Millis, d.FirstTokenMillis)); err != nil {
		return err
	}
	if c := d.Cost; c != nil && (*c < 0 || math.IsInf(*c, 0) || math.IsNaN(*c)) {
		return &messages.FieldError{Field: "cost", Reason: "is not a valid amount"}
	}
	provider, model := m.models.showPair(d.Provider, d.Model)
	m.modelCalls.WithLabelValues(provider, model, stopLabel(d.Stop)).Inc()
	if d.Cached {
		m.cached.WithLabelValues(provider, model).Inc()
		return nil // nothing was called, and nothing is paid
	}
	m.modelCallSeconds.WithLabelValues(provider, model).Observe(seconds(d.Millis))
	if d.FirstTokenMillis > 0 {
		m.firstTokenSeconds.WithLabelValues(provider, model).Observe(seconds(d.FirstTokenMillis))
	}
	if d.Cost == nil {
		m.unpriced.WithLabelValues(provider, model).Inc()
	} else {
		m.cost.WithLabelValues(provider, model).Add(*d.Cost)
	}
	for kind, n := range kinds {
		m.tokens.WithLabelValues(provider, model, kind).Add(float64(n))
	}
	return nil
}

func (m *Events) modelFailed(d messages.ErrorData) error {
	m.modelFailures.WithLabelValues(codeLabel(d.Code)).Inc()
	return nil
}

// toolExecutionStart learns the name of a tool: it exists, for it was started.
func (m *Events) toolExecutionStart(d messages.ToolExecution) error {
	m.tools.show(d.ToolName)
	return nil
}

// toolExecutionEnd has the name that the model wrote. A call that failed may be one of a tool that does not exist:
// names that a model makes up must not take the places of tools.
func (m *Events) toolExecutionEnd(d messages.ToolExecution) error {
	if err := checkMillis(d.Millis); err != nil {
		return err
	}
	var tool, outcome string
	switch {
	case !d.IsError:
		tool, outcome = m.tools.show(d.ToolName), "ok"
	case d.Code == "":
		tool, outcome = m.tools.recall(d.ToolName), "error"
	default:
		tool, outcome = m.tools.recall(d.ToolName), codeLabel(d.Code)
	}
	m.toolCalls.WithLabelValues(tool, outcome).Inc()
	if d.IsError && d.Code == messages.CodePolicy {
		m.blocks.WithLabelValues("tool").Inc()
	}
	m.toolSeconds.WithLabelValues(tool).Observe(seconds(d.Millis))
	return nil
}

func (m *Events) runFinished(d messages.RunFinished) error {
	r := d.Result
	took := r.FinishedAt.Sub(r.StartedAt)
	switch {
	case !r.Status.Ended():
		return &messages.FieldError{Field: "result.status", Reason: "is not the status of a run that ended"}
	case r.StartedAt.IsZero(), r.FinishedAt.IsZero():
		return &messages.FieldError{Field: "result.startedAt", Reason: "is missing, or finishedAt is"}
	case r.Steps < 0:
		return &messages.FieldError{Field: "result.steps", Reason: "is negative"}
	}
	agent, code := labelUnknown, labelNone
	if r.Provenance != nil {
		agent = m.agents.show(r.Provenance.Agent)
	}
	if r.Error != nil {
		code = codeLabel(r.Error.Code)
		if r.Error.Code == messages.CodePolicy {
			m.blocks.WithLabelValues("run").Inc()
		}
	}
	status := statusLabel(r.Status)
	m.finished.WithLabelValues(agent, status, code).Inc()
	m.runSeconds.WithLabelValues(status).Observe(max(0, took.Seconds()))
	m.runSteps.Observe(float64(r.Steps))
	return nil
}

func checkMillis(n int64) error {
	if n < 0 {
		return &messages.FieldError{Field: "millis", Reason: "is negative"}
	}
	return nil
}

func seconds(millis int64) float64 { return float64(millis) / 1000 }
