package runlog

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// A run that waits for a person stands in the line messages.PeopleLine while it does, so that those who wait are found
// without a look at all runs. The log remains the truth: a run may stand there for a moment after its park has ended.

// AsksPerson reports whether a run is parked until a person decides or answers.
func AsksPerson(h messages.Head) bool {
	return h.Phase == messages.PhaseParked && (h.Waits == messages.ParkApproval || h.Waits == messages.ParkAnswer)
}

// Ask lists a run whose owner has just parked it until a person decides or answers, before the world hears of that. It
// gets a new position even if an earlier park of it is still listed: who takes that one out at this moment must not take
// out this one. After an error Close sees to it.
func (k *Keeper) Ask(ctx context.Context, run messages.Ref, h messages.Head) error {
	if k.Asks == nil || !AsksPerson(h) {
		return nil
	}
	at, err := k.Asks.Waiting(ctx, messages.PeopleLine, run)
	if err == nil && at != 0 {
		err = k.Asks.Unwait(ctx, messages.PeopleLine, run, at)
	}
	if err == nil {
		err = k.Asks.Wait(ctx, messages.PeopleLine, run)
	}
	return listed(err, run)
}

// settleAsk lists a run that waits for a person unless it is listed.
func (k *Keeper) settleAsk(ctx context.Context, run messages.Ref, h messages.Head) error {
	if k.Asks == nil || !AsksPerson(h) {
		return nil
	}
	at, err := k.Asks.Waiting(ctx, messages.PeopleLine, run)
	if err == nil && at == 0 {
		err = k.Asks.Wait(ctx, messages.PeopleLine, run)
	}
	return listed(err, run)
}

func listed(err error, run messages.Ref) error {
	if err != nil {
		return fmt.Errorf("list %s among the runs that wait for a person: %w", run, err)
	}
	return nil
}

// asked is where a run that waits for a person stands; 0: nowhere that matters. It must be asked before the record
// that ends the park is appended: the next park may be listed right after.
func (k *Keeper) asked(ctx context.Context, run messages.Ref, h messages.Head) uint64 {
	if k.Asks == nil || !AsksPerson(h) {
		return 0
	}
	at, err := k.Asks.Waiting(ctx, messages.PeopleLine, run)
	if err != nil {
		return 0 // the next list finds that the run no longer waits
	}
	return at
}

// unask takes out a run that no longer waits. What it leaves behind the next list takes out.
func (k *Keeper) unask(ctx context.Context, run messages.Ref, at uint64) {
	if at != 0 {
		_ = k.Asks.Unwait(ctx, messages.PeopleLine, run, at)
	}
}

// AsksAt is the newest entry of a run that stands at a position of messages.PeopleLine, without its records; ok is false
// for a run that no longer waits for a person, which is taken out of the line.
func (k *Keeper) AsksAt(ctx context.Context, run messages.Ref, at uint64) (last messages.Entry, ok bool, err error) {
	last, ok, err = k.Log.Last(ctx, run)
	if err != nil {
		return last, false, fmt.Errorf("read %s: %w", run, err)
	}
	if ok && AsksPerson(last.Head) {
		return last, true, nil
	}
	k.unask(ctx, run, at)
	return last, false, nil
}
