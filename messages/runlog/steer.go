package runlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// MaxSteers bounds the messages that one run is told.
const MaxSteers = 100

// Errors of Steer.
var (
	ErrTold    = errors.New("another message has this id")
	ErrTooMuch = fmt.Errorf("the run has received %d messages, which is the limit", MaxSteers)
)

// Steer appends a message to a run. It is idempotent by the message's id, also after the end of the run. It does not wake the run: a
// run that waits keeps waiting.
//
// It takes at most 4 s. ErrNotFound: there is no log. ErrEnded: the run can no longer read it. ErrTold and ErrTooMuch.
func (k *Controller) Steer(ctx context.Context, run messages.Ref, r *record.Steered) (record.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	told, seen := 0, uint64(0)
	for range maxConflicts {
		last, ok, err := k.Log.Last(ctx, run)
		switch {
		case err != nil:
			return record.Entry{}, fmt.Errorf("read %s: %w", run, err)
		case !ok:
			return record.Entry{}, ErrNotFound
		}
		n, done, err := k.told(ctx, run, seen, last.Seq, r)
		if done || err != nil {
			return last, err
		}
		told, seen = told+n, last.Seq
		switch {
		case last.Head.Phase == record.PhaseFinished:
			return last, ErrEnded
		case told >= MaxSteers:
			return last, ErrTooMuch
		}
		e, err := k.append(ctx, run, last, r)
		if !errors.Is(err, ErrConflict) {
			return e, err
		}
		if err := pause(ctx, time.Duration(rand.Int64N(int64(5*time.Millisecond)))); err != nil {
			return record.Entry{}, err
		}
	}
	return record.Entry{}, fmt.Errorf("append to %s: %w after %d tries", run, ErrConflict, maxConflicts)
}

// told counts the messages between two entries; done: this one is among them.
func (k *Controller) told(ctx context.Context, run messages.Ref, after, through uint64, r *record.Steered) (n int, done bool, err error) {
	var first, last uint64
	for e, err := range k.Log.Heads(ctx, run, after, through) {
		switch {
		case err != nil:
			return 0, false, fmt.Errorf("read %s: %w", run, err)
		case e.Seq > through || !e.Head.Has(record.KindSteered):
			continue
		case first == 0:
			first = e.Seq
		}
		last = e.Seq
	}
	if first == 0 { // nothing need be opened
		return 0, false, nil
	}
	for e, err := range k.Log.Read(ctx, run, first-1, last) {
		if err != nil {
			return 0, false, fmt.Errorf("read %s: %w", run, err)
		}
		if e.Seq > last {
			break
		}
		for _, old := range e.Records {
			old, ok := old.(*record.Steered)
			switch {
			case !ok:
				continue
			case old.ID == r.ID && old.Message != r.Message:
				return n, false, ErrTold
			case old.ID == r.ID:
				return n, true, nil
			}
			n++
		}
	}
	return n, false, nil
}
