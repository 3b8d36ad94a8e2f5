package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Fork creates, in one append, the log of a run that begins with the history of another, and publishes the wake-up that names it. If
// the process dies in between, the net or the sweep sends the wake-up. Fork is idempotent: for a fork that exists, duplicate is
// true and the wake-up is published again. ErrConflict: the id belongs to another run.
//
// It takes at most 4 s.
func (k *Controller) Fork(ctx context.Context, run messages.Ref, started *record.Started) (duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if err := k.Queue.Net(ctx, run, k.NewID(), k.Now().Add(netDelay)); err != nil {
		return false, fmt.Errorf("schedule net of %s: %w", run, err)
	}
	e, err := k.Begin(ctx, run, started)
	switch {
	case errors.Is(err, ErrConflict):
		return true, k.forkedAgain(ctx, run, started)
	case err != nil:
		return false, err
	}
	return false, k.wakeIfReady(ctx, run, &e)
}

// forkedAgain wakes a run that was forked before, if it is the same fork.
func (k *Controller) forkedAgain(ctx context.Context, run messages.Ref, started *record.Started) error {
	first, err := k.first(ctx, run)
	if err != nil {
		return err
	}
	was, ok := first.Records[0].(*record.Started)
	if !ok || !sameFork(was, started) {
		return ErrConflict
	}
	last, _, err := k.Log.Last(ctx, run)
	if err != nil {
		return fmt.Errorf("read %s: %w", run, err)
	}
	return k.wakeIfReady(ctx, run, &last)
}

// sameFork reports whether two forks have the same origin, task and agent. What was kept follows from the origin.
func sameFork(a, b *record.Started) bool {
	if a.ForkedFrom == nil || b.ForkedFrom == nil || *a.ForkedFrom != *b.ForkedFrom || a.Task.Fingerprint() != b.Task.Fingerprint() {
		return false
	}
	one, err := json.Marshal(a.Agent)
	other, err2 := json.Marshal(b.Agent)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}
