package traces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/tracing"
)

// recently is how far back the begin of a span is looked for, before everything that is stored is read.
const recently = time.Hour

// patientTimes is how often an event comes again before a span goes without what another event would tell: a replica of
// the stream may not have it yet. What retention has removed never comes.
const patientTimes = 3

// errNotYet means that another event is needed which is not there.
var errNotYet = errors.New("the event that a span begins with is not stored yet")

// history reads earlier events of runs. It remembers what it read, and lives as long as a batch of events.
type history struct {
	bus  *bus.Bus
	read map[string]reading
}

type reading struct {
	since  time.Time
	events []messages.Event // by running number
}

func newHistory(b *bus.Bus) *history { return &history{b, map[string]reading{}} }

// of returns the events of a run that have a name, from a time on.
func (h *history) of(ctx context.Context, run messages.Ref, name string, since time.Time) ([]messages.Event, error) {
	subject := run.EventSubject(name)
	if known, ok := h.read[subject]; ok && !since.Before(known.since) {
		return known.events, nil
	}
	r := reading{since: since}
	subjects := []string{subject}
	if messages.Bundled(name) {
		subjects = append(subjects, run.EventSubject(messages.NameBundle))
	}
	for _, of := range subjects {
		for e, err := range events.New(h.bus).Events(ctx, of, since) {
			if err != nil {
				return nil, fmt.Errorf("read %s of %s: %w", name, run, err)
			}
			if e.Name() == name {
				r.events = append(r.events, e)
			}
		}
	}
	slices.SortStableFunc(r.events, func(a, b messages.Event) int { return cmp.Compare(a.Number(), b.Number()) })
	h.read[subject] = r
	return r.events, nil
}

// before finds the last event with a name before another one that is the one; ok is false when there is none.
func (h *history) before(ctx context.Context, e *tracing.Event, name string, is func(*messages.Event) bool) (found messages.Event, ok bool, err error) {
	for _, since := range []time.Time{e.Stored.Add(-recently), {}} {
		all, err := h.of(ctx, e.Run, name, since)
		if err != nil {
			return messages.Event{}, false, err
		}
		for _, old := range slices.Backward(all) {
			if old.Number() < e.Number() && is(&old) {
				return old, true, nil
			}
		}
	}
	if e.Delivered <= patientTimes {
		return messages.Event{}, false, errNotYet
	}
	return messages.Event{}, false, nil
}

// first is the only event of a run with a name.
func (h *history) first(ctx context.Context, run messages.Ref, name string) (messages.Event, bool, error) {
	all, err := h.of(ctx, run, name, time.Time{})
	if err != nil || len(all) == 0 {
		return messages.Event{}, false, err
	}
	return all[0], true, nil
}
