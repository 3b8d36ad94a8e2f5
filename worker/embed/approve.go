package embed

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Approve approves a call that the run waits with, and Run continues. ErrNotWaiting: the run does not wait for an approval of this
// call, or it was decided already.
func (s *Session) Approve(ctx context.Context, call string) error {
	return s.decide(ctx, call, false, "")
}

// Deny has such a call answered by a refusal. The model sees the reason, which may be empty. Errors are those of
// Approve.
func (s *Session) Deny(ctx context.Context, call, reason string) error {
	return s.decide(ctx, call, true, reason)
}

func (s *Session) decide(ctx context.Context, call string, denied bool, reason string) error {
	seq, park, err := s.parked(ctx)
	if err != nil {
		return err
	}
	if park.Approval == nil || park.Call != call {
		return fmt.Errorf("call %s: %w", strict.Clip(call, 128), ErrNotWaiting)
	}
	_, err = s.controller.Control(ctx, s.run, &record.Decided{
		ID: s.controller.NewID(), Park: seq, Step: park.Approval.Step, Call: call, Hash: park.Approval.Hash,
		Denied: denied, Reason: reason, Until: park.Until,
	})
	return err
}

// parked is what the run waits for, and its sequence. ErrNotWaiting: it waits for nothing.
func (s *Session) parked(ctx context.Context) (uint64, *record.Parked, error) {
	last, ok, err := s.log.Last(ctx, s.run)
	if err != nil {
		return 0, nil, err
	}
	if !ok || last.Head.Phase != record.PhaseParked {
		return 0, nil, ErrNotWaiting
	}
	park, _, err := s.controller.Park(ctx, s.run, last)
	if err == nil && park == nil {
		err = ErrNotWaiting
	}
	return last.Head.ParkSeq, park, err
}
