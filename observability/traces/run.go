package traces

import (
	"cmp"
	"context"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/longshore-run/longshore/messages"
)

// run returns the span of the run, and those of operations that were still open when it ended: no other event closes them.
func (m *making) run(ctx context.Context, d *messages.RunFinished) ([]*tracepb.Span, error) {
	open, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 && m.e.Delivered <= patientTimes {
		return nil, errNotYet // the end of it may be stored later
	}
	root, err := m.root(ctx, d)
	if err != nil {
		return nil, err
	}
	return append(open, root), nil
}

func (m *making) root(ctx context.Context, d *messages.RunFinished) (*tracepb.Span, error) {
	queued, _, err := first[messages.RunQueued](ctx, m, messages.EventRunQueued)
	if err != nil {
		return nil, err
	}
	started, at, err := first[messages.RunStarted](ctx, m, messages.EventRunStarted)
	if err != nil {
		return nil, err
	}
	if at.IsZero() {
		at = d.Result.StartedAt
	}
	r := &d.Result
	name, revision := started.Agent, started.Revision
	if p := r.Provenance; p != nil {
		name, revision = cmp.Or(name, p.Agent), cmp.Or(revision, p.Revision)
	}
	a := m.base()
	a.text(attrOperation, opAgent)
	a.text(attrAgent, name)
	if revision > 0 {
		a.text(attrAgentVersion, strconv.FormatUint(revision, 10))
	}
	a.text(attrConversation, cmp.Or(r.SessionID, queued.Session, m.e.Run.Run))
	a.text(attrModel, started.Model)
	a.usage(r.TokenUsage)
	a.amount(attrCost, r.CostEstimate)
	a.text(attrStatus, string(r.Status))
	a.count(attrSteps, int64(r.Steps))
	if !queued.QueuedAt.IsZero() {
		a.count(attrQueued, max(0, at.Sub(queued.QueuedAt).Milliseconds()))
	}
	s := m.span(ofRun(), "", named(opAgent, name), at, a)
	if parent, err := messages.ParseTraceparent(queued.Traceparent); err == nil && parent.Trace == m.place.Trace {
		s.ParentSpanId = parent.Span[:]
		s.Flags |= flagRemote
	}
	if r.Error != nil {
		fail(s, r.Error.Code)
	}
	if started.ForkedFrom != nil {
		link, err := m.forkedFrom(ctx, started.ForkedFrom)
		if err != nil {
			return nil, err
		}
		s.Links = append(s.Links, link)
	}
	return s, nil
}

// first returns the data of the only event with a name, or the zero value if the stream no longer has it.
func first[T any](ctx context.Context, m *making, name string) (*T, time.Time, error) {
	e, ok, err := m.history.first(ctx, m.e.Run, name)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case ok:
		d, err := read[T](&e)
		return d, e.Time, err
	case m.e.Delivered <= patientTimes:
		return nil, time.Time{}, errNotYet
	default:
		return new(T), time.Time{}, nil
	}
}

// forkedFrom links the run that this one continues from. That has a trace of its own.
func (m *making) forkedFrom(ctx context.Context, from *messages.Origin) (*tracepb.Span_Link, error) {
	origin := messages.Ref{Tenant: m.e.Run.Tenant, Run: from.Run}
	if err := origin.Check(); err != nil {
		return nil, errMalformed
	}
	begin, _, err := m.history.first(ctx, origin, messages.EventRunStarted)
	if err != nil {
		return nil, err
	}
	place := placeOf(origin, begin.Traceparent)
	var a attributes
	a.text(attrLink, "forked_from")
	a.text(attrRun, origin.Run)
	a.count(attrFromStep, int64(from.Step))
	return &tracepb.Span_Link{TraceId: place.Trace[:], SpanId: place.Span[:], Attributes: a, Flags: uint32(place.Flags) | flagHasRemote | flagRemote}, nil
}

// open are steps, a wait and delegations that the run's end has cut off: of a run that was given up, or cancelled while it waited.
func (m *making) open(ctx context.Context) ([]*tracepb.Span, error) {
	var all [4][]messages.Event
	for i, name := range []string{messages.EventStepStart, messages.EventStepEnd, messages.EventRunWaiting, messages.EventRunResumed} {
		var err error
		if all[i], err = m.history.of(ctx, m.e.Run, name, time.Time{}); err != nil {
			return nil, err
		}
	}
	begun, ended, waits, resumed := all[0], all[1], all[2], all[3]
	done := map[int]bool{}
	for _, e := range ended {
		if d, err := read[messages.Step](&e); err == nil {
			done[d.Step] = true
		}
	}
	var open []*tracepb.Span
	for _, e := range begun {
		if d, err := read[messages.Step](&e); err == nil && !done[d.Step] {
			open, done[d.Step] = append(open, m.stepSpan(d, e.Time, "unfinished")), true
		}
	}
	if n := len(waits); n > 0 && (len(resumed) == 0 || resumed[len(resumed)-1].Number() < waits[n-1].Number()) {
		wait, err := m.waitSpan(&waits[n-1])
		if err != nil {
			return nil, err
		}
		open = append(open, wait...)
	}
	calls, err := m.openDelegations(ctx)
	return append(open, calls...), err
}
