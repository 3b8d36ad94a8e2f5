package record

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxEventList is how many things of a kind an event shows.
const maxEventList = 16

// MaxMeta bounds what a tool says about a result, in bytes of JSON.
const MaxMeta = 4 << 10

// Events derives what the world may see of an entry. Pure: the same entry always gives the same events, ids and
// running numbers included, so any reader of an entry may publish them again.
func Events(run messages.Ref, e Entry) []messages.Event {
	return slices.Collect(EachEvent(run, &e, func(string) bool { return true }))
}

// EachEvent is Events, one after the other, of those whose names are wanted; the others are not even made.
func EachEvent(run messages.Ref, e *Entry, wanted func(name string) bool) iter.Seq[messages.Event] {
	return kinds().each(run, e, wanted)
}

func (all table) each(run messages.Ref, e *Entry, wanted func(name string) bool) iter.Seq[messages.Event] {
	return func(yield func(messages.Event) bool) {
		if e.Head.Events == 0 {
			return
		}
		d := deriving{
			envelope: newEnvelope(run, &e.Head), next: e.Head.FirstEvent, buf: make([]byte, 0, usual), wanted: wanted,
			yield: yield,
		}
		for _, r := range e.Records {
			var seen Record // once, for all events of the record
			all.events(r, func(of *eventOf) {
				if !d.skips(of.name) {
					if seen == nil {
						seen = all.shown(r, e.Head.Shown)
					}
					d.emit(of, seen)
				}
			})
		}
	}
}

// FinishedEvent is run_finished: the last event of the entry that ends a run, whose head and last record are given.
func FinishedEvent(run messages.Ref, h *Head, end *Finished) messages.Event {
	of := newEnvelope(run, h)
	last := h.FirstEvent + uint64(max(1, h.Events)) - 1
	return of.event(messages.EventRunFinished, strconv.FormatUint(last, 10), appendData(make([]byte, 0, usual), end.data(run, h)))
}

// envelope is what the events of an entry have in common.
type envelope struct {
	run           messages.Ref
	head          *Head
	source, trace string
}

func newEnvelope(run messages.Ref, h *Head) envelope {
	of := envelope{run: run, head: h, source: messages.EventSource(run.Tenant)}
	if h.Trace != "" {
		of.trace = messages.RunTrace(run, h.Trace).String()
	}
	return of
}

func (of *envelope) event(name, n string, data json.RawMessage) messages.Event {
	return messages.Event{
		SpecVersion: "1.0", ID: of.run.Run + "." + n, Source: of.source,
		Type: messages.EventType(name), Subject: of.run.Run, Time: of.head.Time,
		DataContentType: "application/json", Sequence: n, Traceparent: of.trace, Data: data,
	}
}

// deriving is how far the events of an entry are derived.
type deriving struct {
	envelope

	next   uint64 // the number of the next event
	buf    []byte // of all data
	wanted func(name string) bool
	yield  func(messages.Event) bool
	over   bool // no more are wanted
}

// skips counts an event and reports whether it is not wanted.
func (d *deriving) skips(name string) bool {
	d.next++
	return d.over || !d.wanted(name)
}

// emit makes the event that was counted last.
func (d *deriving) emit(of *eventOf, r Record) {
	n, name := strconv.FormatUint(d.next-1, 10), of.name
	data := of.data(r)
	switch of := data.(type) {
	case *messages.RunQueued:
		of.Traceparent = d.head.Trace
	case *Finished:
		data = of.data(d.run, d.head)
	}
	from := len(d.buf)
	d.buf = appendData(d.buf, data)
	d.over = !d.yield(d.event(name, n, d.buf[from:len(d.buf):len(d.buf)]))
}

func (r *Claimed) resumed() any {
	return &messages.RunWaiting{Reason: strict.Brief(r.Resumes, messages.MaxEventArgs)}
}

func (r *StepStarted) data() any {
	return &messages.Step{StepID: stepIn(r.Step, r.StepID), Step: r.Step}
}

func (r *StepEnded) data() any {
	return &messages.Step{StepID: stepIn(r.Step, r.StepID), Step: r.Step, Status: r.Status, Reason: strict.Brief(r.Reason, messages.MaxEventArgs)}
}

func (r *Parked) waits() any {
	return &messages.RunWaiting{
		Reason: strict.Brief(r.Reason, messages.MaxEventArgs), CallID: named(r.Call), Until: r.Until, Limit: named(r.Limit), Question: strict.Brief(r.Question, messages.MaxEventArgs),
		Cause: r.Cause.Shown(),
	}
}

func (r *Expired) data() any {
	return &messages.ApprovalDecided{CallID: named(r.Call), Decision: messages.Lapsed}
}

func (r *CancelRequested) data() any {
	return &messages.CancelAsked{By: strict.Brief(r.By, messages.MaxEventArgs), Reason: strict.Brief(r.Reason, messages.MaxEventArgs)}
}

func (r *BudgetWarned) data() any {
	return &messages.BudgetWarning{Limit: named(r.Limit), Spent: r.Spent, Allowed: r.Allowed}
}

func (r *Finished) turn() any {
	return &messages.TurnEnd{Steps: r.Result.Steps, Usage: r.Result.TokenUsage, Cost: r.Result.CostEstimate}
}

func (r *Started) queued() any {
	return &messages.RunQueued{
		Agent: r.Task.Agent, Priority: r.Task.Priority, Session: r.Task.Session, Labels: r.Task.Labels,
		Input: strict.Brief(r.Task.Input.Shown(), messages.MaxEventArgs), QueuedAt: r.QueuedAt, By: named(r.Task.By),
	}
}

func (r *Started) begun() any {
	planner := r.Agent.Planner
	if planner == messages.PlannerTools {
		planner = ""
	}
	var parent *messages.ParentRef
	if r.Parent != nil {
		parent = &messages.ParentRef{Run: named(r.Parent.Run), CallID: named(r.Parent.Call)}
	}
	return &messages.RunStarted{
		Parent: parent, Planner: planner, Agent: r.Agent.Name, Revision: r.Agent.Revision, Model: r.Agent.Model, Models: r.Agent.Models, Tools: r.Agent.Tools,
		MaxSteps: r.Agent.Steps(r.Task.Limits), ForkedFrom: r.ForkedFrom,
	}
}

func (r *ModelFailed) data() any {
	return &messages.ErrorData{
		StepID: stepID(r.Step), Message: strict.Brief(r.Error.Message, messages.MaxEventArgs),
		Code: r.Error.Code, Retryable: r.Error.Code.Retryable(), Fallback: r.Fallback,
		Provider: named(r.Provider),
	}
}

func (r *ToolStarted) data() any {
	args, cut := strict.Fit(r.Call.Arguments, messages.MaxEventText)
	return &messages.ToolExecution{
		StepID: stepIn(r.Step, r.StepID), CallID: named(r.Call.ID), ToolName: named(r.Call.Name), Arguments: args, Truncated: cut,
	}
}

func (r *ToolReturned) data() any {
	text, cut := strict.Fit(r.Result.Shown(), messages.MaxEventText)
	meta := r.Meta
	if len(meta) > MaxMeta { // no worker writes it
		meta, cut = nil, true
	}
	return &messages.ToolExecution{
		StepID: stepIn(r.Step, r.StepID), CallID: named(r.Result.CallID), ToolName: named(r.Name), Result: text,
		IsError: r.Result.IsError, Code: r.Code, Millis: r.Millis, Truncated: cut, Meta: meta,
	}
}

// data is that of run_finished, without what must not be shown.
func (r *Finished) data(run messages.Ref, h *Head) any {
	d := &messages.RunFinished{Result: h.Shown.ofEnd(r).Result, Webhook: h.Webhook}
	d.Result.Shorten(run)
	return d
}

func (r *HookFailed) data() any {
	f := &messages.HookFailure{On: r.On, Hook: named(r.Hook), CallID: named(r.Call), Reason: strict.Brief(r.Reason, messages.MaxEventArgs), Fatal: r.Fatal}
	if r.Step > 0 {
		f.StepID = stepID(r.Step)
	}
	return f
}

func (r *PolicyApplied) data() any {
	v := &messages.PolicyViolation{
		Point: r.Point, Action: r.Action, Rule: named(r.Rule), Source: named(r.Source), ToolName: named(r.Tool), CallID: named(r.Call),
		Reason: strict.Brief(r.Reason, messages.MaxEventArgs),
	}
	if r.Step > 0 {
		v.StepID = stepIn(r.Step, r.StepID)
	}
	return v
}

func stepID(n int) string { return "step-" + strconv.Itoa(n) }

// stepIn is the id of the plan's step, or that of the turn.
func stepIn(n int, plan string) string {
	if plan != "" {
		return named(plan)
	}
	return stepID(n)
}

func (r *ModelReplied) data() any {
	m := &messages.MessageEnd{
		StepID: stepID(r.Step), Role: r.Message.Role, Stop: r.Stop, Usage: r.Usage,
		Provider: named(r.Provider), Model: named(r.Model), Millis: r.Millis, Cached: r.Cached, Cost: r.Cost,
		FirstTokenMillis: r.FirstTokenMillis,
	}
	m.Text, m.Truncated = strict.Fit(r.Message.Text(), messages.MaxEventText)
	var cut bool
	m.Reasoning, cut = strict.Fit(r.Message.ReasoningText(), messages.MaxEventText)
	m.Truncated = m.Truncated || cut
	for _, c := range r.Message.Calls() {
		if len(m.ToolCalls) == maxEventList {
			m.Truncated = true
			break
		}
		args, cut := strict.Fit(c.Arguments, messages.MaxEventArgs)
		m.ToolCalls = append(m.ToolCalls, messages.ToolCall{ID: named(c.ID), Name: named(c.Name), Arguments: args})
		m.Truncated = m.Truncated || cut
	}
	return m
}

func named(s string) string { return strict.Brief(s, messages.MaxEventName) }
