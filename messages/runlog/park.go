package runlog

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Park is the last park of a run, and when it began; nil: it never parked. Last is the run's newest entry, or any
// later than the park.
func (k *Controller) Park(ctx context.Context, run messages.Ref, last record.Entry) (p *record.Parked, since time.Time, err error) {
	if last.Head.ParkSeq == 0 {
		return nil, since, nil
	}
	e := last
	if e.Seq != last.Head.ParkSeq || e.Records == nil {
		if e, err = k.entry(ctx, run, last.Head.ParkSeq); err != nil {
			return nil, since, err
		}
	}
	for _, r := range e.Records {
		if p, ok := r.(*record.Parked); ok {
			return p, e.Head.Time, nil
		}
	}
	return nil, since, nil
}

// Answer is the record that ended a park: *Answered, *Decided, *Expired or *CancelRequested, and when it was written.
// Nil: the park continues.
func (k *Controller) Answer(ctx context.Context, run messages.Ref, park uint64) (by record.Record, at time.Time, err error) {
	for e, err := range k.Log.Read(ctx, run, park, Tail) {
		if err != nil {
			return nil, at, fmt.Errorf("read %s: %w", run, err)
		}
		for _, r := range e.Records {
			if record.Ends(r, park) {
				return r, e.Head.Time, nil
			}
		}
		if e.Head.ParkSeq != park || e.Head.Phase == record.PhaseActive || e.Head.Phase == record.PhaseFinished {
			break
		}
	}
	return nil, at, nil
}

// Decision is the newest decision about a call of a run; nil: there is none. It reads the whole log.
func (k *Controller) Decision(ctx context.Context, run messages.Ref, call string) (d *record.Decided, at time.Time, err error) {
	for e, err := range k.Log.Heads(ctx, run, 0, Tail) {
		switch {
		case err != nil:
			return nil, at, fmt.Errorf("read %s: %w", run, err)
		case !e.Head.Has(record.KindDecided):
			continue
		}
		whole, err := k.entry(ctx, run, e.Seq)
		if err != nil {
			return nil, at, err
		}
		for _, r := range whole.Records {
			if r, ok := r.(*record.Decided); ok && r.Call == call {
				d, at = r, e.Head.Time
			}
		}
	}
	return d, at, nil
}
