package embed

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Approve approves a call that the run waits with, and Run continues. ErrNotWaiting: the run does not wait for an approval of this
// call, or it was decided already.
func (s *Session) Approve(ctx context.Context, call string) error {
	return s.decide(ctx, call, false, "", nil)
}

// ApproveWith approves a call with other arguments, an object, with which it is then made. Only a call whose approval_requested says
// that it is editable may have others: another one is ErrNotWaiting. Arguments that the tool does not take, or a rule forbids, are
// refused as those of a model are.
func (s *Session) ApproveWith(ctx context.Context, call string, arguments json.RawMessage) error {
	if err := messages.CheckObject("arguments", arguments, messages.MaxEdited); err != nil {
		return err
	}
	return s.decide(ctx, call, false, "", arguments)
}

// Deny has such a call answered by a refusal. The model sees the reason, which may be empty. Errors are those of
// Approve.
func (s *Session) Deny(ctx context.Context, call, reason string) error {
	return s.decide(ctx, call, true, reason, nil)
}

func (s *Session) decide(ctx context.Context, call string, denied bool, reason string, arguments json.RawMessage) error {
	seq, park, err := s.parked(ctx)
	if err != nil {
		return err
	}
	if park.Approval == nil || park.Call != call {
		return fmt.Errorf("call %s: %w", strict.Clip(call, 128), ErrNotWaiting)
	}
	d := &record.Decided{
		ID: s.controller.NewID(), Park: seq, Step: park.Approval.Step, Call: call, Hash: park.Approval.Hash,
		Denied: denied, Reason: reason, Until: park.Until,
	}
	if len(arguments) > 0 {
		d.Arguments, d.Asked, d.Hash = string(arguments), d.Hash, messages.HashArguments(string(arguments))
	}
	if !d.Matches(park) {
		return fmt.Errorf("call %s may only be approved as it is: %w", strict.Clip(call, 128), ErrNotWaiting)
	}
	_, err = s.controller.Control(ctx, s.run, d)
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
