package traces

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/tracing"
)

// ending are the events that end a span, or more than one.
func ending() []string {
	return []string{
		messages.EventMessageEnd, messages.EventError, messages.EventToolExecutionEnd, messages.EventStepEnd,
		messages.EventRunResumed, messages.EventRunFinished,
	}
}

// spansOf are the spans that an event ends. They follow from the events of the run alone: the same event always has the
// same spans, ids included. The error is errNotYet when it is too early to say.
func spansOf(ctx context.Context, e *tracing.Event, h *history) ([]*tracepb.Span, error) {
	place := placeOf(e.Run, e.Traceparent)
	if !place.Sampled() {
		return nil, nil
	}
	m := making{e: e, history: h, place: place}
	switch e.Name() {
	case messages.EventMessageEnd:
		return from(&m, m.chat)
	case messages.EventError:
		return from(&m, m.failedChat)
	case messages.EventToolExecutionEnd:
		return from(&m, func(d *messages.ToolExecution) ([]*tracepb.Span, error) { return m.tool(ctx, d) })
	case messages.EventStepEnd:
		return from(&m, func(d *messages.Step) ([]*tracepb.Span, error) { return m.step(ctx, d) })
	case messages.EventRunResumed:
		return m.wait(ctx)
	case messages.EventRunFinished:
		return from(&m, func(d *messages.RunFinished) ([]*tracepb.Span, error) { return m.run(ctx, d) })
	default:
		return nil, nil
	}
}

// placeOf is the span of a run, as its events name it.
func placeOf(run messages.Ref, traceparent string) messages.Traceparent {
	if t, err := messages.ParseTraceparent(traceparent); err == nil {
		return t
	}
	return messages.RunTrace(run, "")
}

// from reads the data of the event.
func from[T any](m *making, do func(*T) ([]*tracepb.Span, error)) ([]*tracepb.Span, error) {
	data, err := read[T](&m.e.Event)
	if err != nil {
		return nil, err
	}
	return do(data)
}

func read[T any](e *messages.Event) (*T, error) {
	data := new(T)
	if err := json.Unmarshal(e.Data, data); err != nil { // not strict: a newer worker may tell more
		return nil, fmt.Errorf("read event %s: %w: %w", e.ID, errMalformed, err)
	}
	return data, nil
}

// making makes the spans of one event.
type making struct {
	e       *tracing.Event
	history *history
	place   messages.Traceparent // of the run
}

// part is what a span is called among those of its run.
type part string

func ofRun() part                    { return "run" }
func ofStep(n int) part              { return part("step." + strconv.Itoa(n)) }
func ofWait(begin uint64) part       { return part("wait." + strconv.FormatUint(begin, 10)) }
func ofEvent(e *messages.Event) part { return part("event." + e.Sequence) }
func (m *making) id(p part) []byte   { id := messages.SpanOf(m.e.Run, string(p)); return id[:] }
func (m *making) since(d int64) time.Time {
	return m.e.Time.Add(-time.Duration(max(0, min(d, maxMillis))) * time.Millisecond)
}

// maxMillis keeps a duration from overflowing.
const maxMillis = int64(365 * 24 * time.Hour / time.Millisecond)

const (
	flagHasRemote = uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	flagRemote    = uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
)

// span is one under another of the run, that ends with the event.
func (m *making) span(p, under part, name string, start time.Time, a attributes) *tracepb.Span {
	trace := m.place.Trace
	s := &tracepb.Span{
		TraceId: trace[:], SpanId: m.id(p), Name: name, Kind: tracepb.Span_SPAN_KIND_INTERNAL, Attributes: a,
		StartTimeUnixNano: nanos(start), EndTimeUnixNano: nanos(m.e.Time), Flags: uint32(m.place.Flags) | flagHasRemote,
	}
	s.StartTimeUnixNano = min(s.StartTimeUnixNano, s.EndTimeUnixNano) // clocks of two machines disagree
	if under != "" {
		s.ParentSpanId = m.id(under)
	}
	return s
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

// fail says what went wrong, by its code: a message may hold anything.
func fail(s *tracepb.Span, code messages.Code) {
	if code == "" {
		code = "_OTHER" // as the conventions call what has no name
	}
	(*attributes)(&s.Attributes).text(attrError, string(code))
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: string(code)}
}

func (m *making) base() attributes {
	var a attributes
	a.text(attrTenant, m.e.Run.Tenant)
	a.text(attrRun, m.e.Run.Run)
	return a
}

// turn is the span of the step that a model call is in.
func turn(stepID string) part {
	n, err := strconv.Atoi(strings.TrimPrefix(stepID, "step-"))
	if err != nil {
		return ofRun()
	}
	return ofStep(n)
}

func (m *making) chat(d *messages.MessageEnd) ([]*tracepb.Span, error) {
	a := m.base()
	a.text(attrOperation, opChat)
	a.text(attrProvider, providerName(d.Provider))
	a.text(attrModel, d.Model)
	a.list(attrFinish, string(d.Stop))
	a.usage(d.Usage)
	a.amount(attrCost, d.Cost)
	a.truth(attrCached, d.Cached)
	s := m.span(ofEvent(&m.e.Event), turn(d.StepID), named(opChat, d.Model), m.since(d.Millis), a)
	s.Kind = tracepb.Span_SPAN_KIND_CLIENT
	return []*tracepb.Span{s}, nil
}

// failedChat is a model call that failed for good. When it began no event says.
func (m *making) failedChat(d *messages.ErrorData) ([]*tracepb.Span, error) {
	a := m.base()
	a.text(attrOperation, opChat)
	a.text(attrFallback, d.Fallback)
	s := m.span(ofEvent(&m.e.Event), turn(d.StepID), opChat, m.e.Time, a)
	s.Kind = tracepb.Span_SPAN_KIND_CLIENT
	fail(s, d.Code)
	return []*tracepb.Span{s}, nil
}

func (m *making) tool(ctx context.Context, d *messages.ToolExecution) ([]*tracepb.Span, error) {
	begin, ok, err := m.history.before(ctx, m.e, messages.EventStepStart, func(e *messages.Event) bool {
		step, err := read[messages.Step](e)
		return err == nil && step.StepID == d.StepID
	})
	if err != nil {
		return nil, err
	}
	under := ofRun()
	if ok {
		step, _ := read[messages.Step](&begin) // as before
		under = ofStep(step.Step)
	}
	a := m.base()
	a.text(attrOperation, opTool)
	a.text(attrTool, d.ToolName)
	a.text(attrToolCall, d.CallID)
	is, start := ofEvent(&m.e.Event), m.since(d.Millis)
	delegated, err := m.delegated(ctx, d)
	if err != nil {
		return nil, err
	}
	if delegated != nil {
		is, start = ofDelegation(delegated.data), delegated.at
	}
	s := m.span(is, under, named(opTool, d.ToolName), start, a)
	if d.IsError {
		fail(s, d.Code)
	}
	return []*tracepb.Span{s}, nil
}

func (m *making) step(ctx context.Context, d *messages.Step) ([]*tracepb.Span, error) {
	begin, ok, err := m.history.before(ctx, m.e, messages.EventStepStart, func(e *messages.Event) bool {
		step, err := read[messages.Step](e)
		return err == nil && step.Step == d.Step
	})
	if err != nil && d.Status != messages.StepSkipped { // what is skipped need not have begun
		return nil, err
	}
	start := m.e.Time
	if ok {
		start = begin.Time
	}
	s := m.stepSpan(d, start, string(d.Status))
	if d.Status == messages.StepFailed {
		fail(s, "")
	}
	return []*tracepb.Span{s}, nil
}

func (m *making) stepSpan(d *messages.Step, start time.Time, status string) *tracepb.Span {
	a := m.base()
	a.count(attrStep, int64(d.Step))
	a.text(attrStepID, d.StepID)
	a.text(attrStepStatus, status)
	return m.span(ofStep(d.Step), ofRun(), named("step", strings.TrimPrefix(d.StepID, "step-")), start, a)
}

// wait is the time that the run held no worker. It begins after the run last continued: the wait before that has its span.
func (m *making) wait(ctx context.Context) ([]*tracepb.Span, error) {
	resumed, err := m.history.of(ctx, m.e.Run, messages.EventRunResumed, time.Time{})
	if err != nil {
		return nil, err
	}
	var after uint64
	for i := range resumed {
		if n := resumed[i].Number(); n < m.e.Number() {
			after = max(after, n)
		}
	}
	begin, ok, err := m.history.before(ctx, m.e, messages.EventRunWaiting, func(e *messages.Event) bool { return e.Number() > after })
	if err != nil || !ok {
		return nil, err
	}
	return m.waitSpan(&begin)
}

func (m *making) waitSpan(begin *messages.Event) ([]*tracepb.Span, error) {
	d, err := read[messages.RunWaiting](begin)
	if err != nil {
		return nil, err
	}
	a := m.base()
	a.text(attrReason, d.Reason)
	a.text(attrLimit, d.Limit)
	a.text(attrToolCall, d.CallID)
	return []*tracepb.Span{m.span(ofWait(begin.Number()), ofRun(), named("wait", d.Reason), begin.Time, a)}, nil
}

func named(operation, what string) string {
	return strings.TrimSpace(operation + " " + what)
}

func (a *attributes) usage(u messages.Usage) {
	a.count(attrInput, u.Input)
	a.count(attrOutput, u.Output)
	a.count(attrCacheRead, u.CacheRead)
	a.count(attrCacheWrite, u.CacheWrite)
	a.count(attrReasoning, u.Reasoning)
}
