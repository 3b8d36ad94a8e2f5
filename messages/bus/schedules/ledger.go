package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// headerOccurrences has what a Ledger holds besides the state. It stands in a header, not in the body, so that it changes
// with the state in one step and dispatchers that do not know it can still read the state.
const headerOccurrences = "Longshore-Occurrences"

// Ledger is what became of the occurrences of a schedule.
type Ledger struct {
	State   *control.ScheduleState `json:"-"`                 // of the last one, or of a run that was asked for; nil: there was none
	Taken   time.Time              `json:"taken"`             // the newest occurrence that a dispatcher has taken; zero: none
	Pending bool                   `json:"pending,omitempty"` // it is not known yet whether its task is in the queue
	Refused string                 `json:"refused,omitempty"` // why that one could not be submitted when it was last tried
	Skipped []control.Skipped      `json:"skipped,omitempty"` // oldest first, control.MaxSkipped at most
}

// Ledger reads what became of the occurrences of a schedule, and the ledger's revision; 0 when there is none.
func (sc *Store) Ledger(ctx context.Context, ref control.ScheduleRef) (l Ledger, revision uint64, err error) {
	m, ok, err := sc.bus.Stream(bus.StreamSchedules).Get(ctx, bus.Lookup{Last: statePrefix + scheduleKey(ref)})
	switch {
	case err != nil:
		return l, 0, fmt.Errorf("read the state of schedule %s: %w", ref, err)
	case !ok:
		return l, 0, nil
	}
	var st control.ScheduleState
	if strict.Decode(m.Data, &st) != nil {
		return l, m.Seq, nil //nolint:nilerr // the next occurrence writes it anew
	}
	// Not strictly: a newer dispatcher may write fields that this one does not know.
	if json.Unmarshal([]byte(m.Header.Get(headerOccurrences)), &l) != nil {
		own := st.Outcome == control.OutcomeSubmitted && st.Run == ref.Run(st.At).Run
		l = Ledger{Taken: st.At, Pending: own} // an older dispatcher wrote it
	}
	l.State = &st
	return l, m.Seq, nil
}

// PutLedger stores a ledger in place of the one with a revision, as a whole or not at all; ErrScheduleMoved. Of
// the skipped occurrences it keeps the newest. Its State must not be nil.
func (sc *Store) PutLedger(ctx context.Context, ref control.ScheduleRef, l Ledger, revision uint64) (uint64, error) {
	l.Skipped = l.Skipped[max(0, len(l.Skipped)-control.MaxSkipped):]
	body, err := json.Marshal(l.State)
	if err != nil {
		return 0, fmt.Errorf("encode state: %w", err)
	}
	occurrences, err := json.Marshal(l)
	if err != nil {
		return 0, fmt.Errorf("encode occurrences: %w", err)
	}
	m := &nats.Msg{Subject: statePrefix + scheduleKey(ref), Header: nats.Header{headerOccurrences: {string(occurrences)}}, Data: body}
	bus.Expect(m, revision)
	r, err := sc.bus.Store(ctx, m)
	switch {
	case bus.Refused(err, bus.CodeWrongLast):
		return 0, ErrScheduleMoved
	case err != nil:
		return 0, fmt.Errorf("store the state of schedule %s: %w", ref, err)
	}
	return r.Seq, nil
}

// Stored is when the newest revision of a schedule was stored, by the clock of the server; ErrNoSchedule.
func (sc *Store) Stored(ctx context.Context, ref control.ScheduleRef) (time.Time, error) {
	m, ok, err := bus.SchedulesBucket.At(ctx, sc.bus, scheduleKey(ref), 0)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("read schedule %s: %w", ref, err)
	case !ok:
		return time.Time{}, ErrNoSchedule
	default:
		return m.Time, nil
	}
}
