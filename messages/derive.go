package messages

import (
	"github.com/longshore-run/longshore/messages/strict"
	"iter"
	"slices"
	"strconv"
)

// Sizes of what an event may show, in bytes as JSON, so that no event exceeds MaxPayload; the log has the whole.
const (
	maxEventText = 8 << 10
	maxEventArgs = 1 << 10
	maxEventName = 256 // what others named: a tool, a call, a model
	maxEventList = 16
)

// MaxMeta bounds what a tool says about a result, in bytes of JSON.
const MaxMeta = 4 << 10

// Events derives what the world may see of an entry. Pure: the same entry always gives the same events, ids and
// running numbers included, so whoever finds an entry may publish them again.
func Events(run Ref, e Entry) []Event {
	return slices.Collect(EachEvent(run, &e, func(string) bool { return true }))
}

// EachEvent is Events, one after the other, of those whose names are wanted; the others are not even made.
func EachEvent(run Ref, e *Entry, wanted func(name string) bool) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if e.Head.Events == 0 {
			return
		}
		d := deriving{
			envelope: newEnvelope(run, &e.Head), next: e.Head.FirstEvent, buf: make([]byte, 0, roomFor(e.Records, wanted)), wanted: wanted,
			yield: yield,
		}
		for _, r := range e.Records {
			eventsOf(r, func(of *eventOf) { d.emit(of, r) })
		}
	}
}

// FinishedEvent is run_finished: the last event of the entry that ends a run, whose head and last record are given.
func FinishedEvent(run Ref, h *Head, end *Finished) Event {
	of := newEnvelope(run, h)
	last := h.FirstEvent + uint64(max(1, h.Events)) - 1
	return of.event(EventRunFinished, strconv.FormatUint(last, 10), appendData(make([]byte, 0, end.room()), end.data(run, h)))
}

// envelope is what the events of an entry have in common.
type envelope struct {
	run           Ref
	head          *Head
	source, trace string
}

func newEnvelope(run Ref, h *Head) envelope {
	of := envelope{run: run, head: h, source: sourcePrefix + run.Tenant}
	if h.Trace != "" {
		of.trace = RunTrace(run, h.Trace).String()
	}
	return of
}

func (of *envelope) event(name, n string, data []byte) Event {
	return Event{
		SpecVersion: "1.0", ID: of.run.Run + "." + n, Source: of.source,
		Type: typePrefix + name + typeSuffix, Subject: of.run.Run, Time: of.head.Time,
		DataContentType: "application/json", Sequence: n, Traceparent: of.trace, Data: data,
	}
}

// deriving is how far the events of an entry are derived.
type deriving struct {
	envelope

	next   uint64 // the number of the next event
	buf    []byte // of all data
	wanted func(name string) bool
	yield  func(Event) bool
	over   bool // no more are wanted
}

func (d *deriving) emit(of *eventOf, r Record) {
	n, name := strconv.FormatUint(d.next, 10), of.name
	d.next++
	if d.over || !d.wanted(name) {
		return
	}
	data := of.data(r)
	switch of := data.(type) {
	case *RunQueued:
		of.Traceparent = d.head.Trace
	case *Finished:
		data = of.data(d.run, d.head)
	}
	from := len(d.buf)
	d.buf = appendData(d.buf, data)
	d.over = !d.yield(d.event(name, n, d.buf[from:len(d.buf):len(d.buf)]))
}

// room is about how long the data of run_finished is.
func (r *Finished) room() int {
	const most = 640
	text, _ := r.Result.Result.(string)
	return most + min(len(text), maxEventText)
}

func textRoom(content []Block) int {
	n := 0
	for _, b := range content {
		n += len(b.Text)
		if b.ToolCall != nil {
			n += min(len(b.ToolCall.Arguments), maxEventArgs)
		}
	}
	return min(n, maxEventText)
}

func (r *Claimed) resumed() any { return &RunWaiting{Reason: strict.Brief(r.Resumes, maxEventArgs)} }

func (r *StepStarted) data() any { return &Step{StepID: stepIn(r.Step, r.StepID), Step: r.Step} }

func (r *StepEnded) data() any {
	return &Step{StepID: stepIn(r.Step, r.StepID), Step: r.Step, Status: r.Status, Reason: strict.Brief(r.Reason, maxEventArgs)}
}

func (r *Parked) waits() any {
	return &RunWaiting{
		Reason: strict.Brief(r.Reason, maxEventArgs), CallID: named(r.Call), Until: r.Until, Limit: named(r.Limit), Question: strict.Brief(r.Question, maxEventArgs),
		Cause: r.Cause.Shown(),
	}
}

func (r *Expired) data() any { return &ApprovalDecided{CallID: named(r.Call), Decision: Lapsed} }

func (r *CancelRequested) data() any {
	return &CancelAsked{strict.Brief(r.By, maxEventArgs), strict.Brief(r.Reason, maxEventArgs)}
}

func (r *BudgetWarned) data() any {
	return &BudgetWarning{Limit: named(r.Limit), Spent: r.Spent, Allowed: r.Allowed}
}

func (r *Finished) turn() any {
	return &TurnEnd{r.Result.Steps, r.Result.TokenUsage, r.Result.CostEstimate}
}

func (r *Started) queued() any {
	return &RunQueued{
		Agent: r.Task.Agent, Priority: r.Task.Priority, Session: r.Task.Session, Labels: r.Task.Labels,
		Input: strict.Brief(r.Task.Input.Text(), maxEventArgs), QueuedAt: r.QueuedAt, By: named(r.Task.By),
	}
}

func (r *Started) begun() any {
	planner := r.Agent.Planner
	if planner == PlannerTools {
		planner = ""
	}
	return &RunStarted{
		Planner: planner, Agent: r.Agent.Name, Revision: r.Agent.Revision, Model: r.Agent.Model, Models: r.Agent.Models, Tools: r.Agent.Tools,
		MaxSteps: r.Agent.Steps(r.Task.Limits), ForkedFrom: r.ForkedFrom,
	}
}

func (r *ModelFailed) data() any {
	return &ErrorData{
		StepID: stepID(r.Step), Message: strict.Brief(r.Error.Message, maxEventArgs),
		Code: r.Error.Code, Retryable: r.Error.Code.Retryable(), Fallback: r.Fallback,
		Provider: named(r.Provider),
	}
}

func (r *ToolStarted) data() any {
	args, cut := strict.Fit(r.Call.Arguments, maxEventText)
	return &ToolExecution{
		StepID: stepIn(r.Step, r.StepID), CallID: named(r.Call.ID), ToolName: named(r.Call.Name), Arguments: args, Truncated: cut,
	}
}

func (r *ToolReturned) data() any {
	text, cut := strict.Fit(r.Result.Shown(), maxEventText)
	meta := r.Meta
	if len(meta) > MaxMeta { // no worker writes it
		meta, cut = nil, true
	}
	return &ToolExecution{
		StepID: stepIn(r.Step, r.StepID), CallID: named(r.Result.CallID), ToolName: named(r.Name), Result: text,
		IsError: r.Result.IsError, Code: r.Code, Millis: r.Millis, Truncated: cut, Meta: meta,
	}
}

func (r *Finished) data(run Ref, h *Head) any {
	d := &RunFinished{Result: r.Result, Webhook: h.Webhook}
	d.Result.shorten(run)
	return d
}

func (r *HookFailed) data() any {
	f := &HookFailure{On: r.On, Hook: named(r.Hook), CallID: named(r.Call), Reason: strict.Brief(r.Reason, maxEventArgs), Fatal: r.Fatal}
	if r.Step > 0 {
		f.StepID = stepID(r.Step)
	}
	return f
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
	m := &MessageEnd{
		StepID: stepID(r.Step), Role: r.Message.Role, Stop: r.Stop, Usage: r.Usage,
		Provider: named(r.Provider), Model: named(r.Model), Millis: r.Millis, Cached: r.Cached, Cost: r.Cost,
		FirstTokenMillis: r.FirstTokenMillis,
	}
	m.Text, m.Truncated = strict.Fit(r.Message.Text(), maxEventText)
	var cut bool
	m.Reasoning, cut = strict.Fit(r.Message.reasoning(), maxEventText)
	m.Truncated = m.Truncated || cut
	for _, c := range r.Message.Calls() {
		if len(m.ToolCalls) == maxEventList {
			m.Truncated = true
			break
		}
		args, cut := strict.Fit(c.Arguments, maxEventArgs)
		m.ToolCalls = append(m.ToolCalls, ToolCall{named(c.ID), named(c.Name), args})
		m.Truncated = m.Truncated || cut
	}
	return m
}

// shorten makes a copy of a result fit an event.
func (r *AgentResult) shorten(run Ref) {
	var cut bool
	if s, ok := r.Result.(string); ok {
		r.Result, cut = strict.Fit(s, maxEventText)
	} else if r.Result != nil && strict.Larger(r.Result, maxEventText) {
		r.Result, cut = nil, true
	}
	if r.Error != nil {
		r.Error = &RunError{Message: strict.Brief(r.Error.Message, maxEventArgs), Code: r.Error.Code}
	}
	if m := r.Metrics; m != nil && strict.Larger(m.ToolLatencyMs, maxEventText) {
		r.Metrics, cut = &Metrics{DurationMs: m.DurationMs}, true
	}
	if s, shortened := strict.Fit(r.Summary, maxEventText); shortened {
		r.Summary, cut = s, true
	}
	if len(r.Outputs) > 0 && strict.Larger(r.Outputs, maxEventText) {
		r.Outputs, cut = nil, true
	}
	if len(r.Output) > maxEventText {
		r.Output, cut = nil, true
	}
	if p := r.Provenance; p != nil && strict.Larger(p, maxEventText) {
		r.Provenance, cut = &Provenance{Agent: named(p.Agent), Revision: p.Revision, Planner: named(p.Planner)}, true
	}
	r.Truncated = cut || len(r.Actions) > 0 || len(r.ModelCalls) > 0
	// Not the last two: an event is the same whoever was killed.
	r.Actions, r.ModelCalls, r.Attachments, r.Transcript, r.RetryInfo, r.Diagnostics = nil, nil, nil, nil, nil, nil
	if run != (Ref{}) {
		r.EventStream = run.EventFilter()
	}
}

func named(s string) string { return strict.Brief(s, maxEventName) }
