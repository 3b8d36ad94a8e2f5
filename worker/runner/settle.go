package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// settlement releases a ticket whose run has ended or parked, or is handed back.
type settlement struct {
	*job

	journal *journal
	voice   *voice
}

// handBackTimeout bounds the append of a release and the flush of its events after everything else has been stopped.
const handBackTimeout = 5 * time.Second

const maxReason = 256

// handBack releases the claim. The append proves that the run is still ours, so the ticket may be handed back at once. A worker that
// stops, or lacks a key of the log or the memory that others may have, does not use up the attempt; a failure does.
func (x *settlement) handBack(ctx context.Context, cause error) (Outcome, error) {
	stopped := errors.Is(cause, ErrShutdown) || errors.Is(context.Cause(ctx), ErrShutdown)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBackTimeout)
	defer cancel()
	others := errors.Is(cause, record.ErrNoKey) && !errors.Is(cause, record.ErrKeyMissing) || errors.Is(cause, ErrNoMemory)
	r := &record.Released{Reason: strict.Clip(cause.Error(), maxReason), Spent: !stopped && !others}
	at, head := x.journal.state.Seq, &x.journal.state.Head
	if at == 0 { // claimed, and not folded yet
		at, head = x.journal.tip.Seq, &x.journal.tip.Head
	}
	for {
		_, err := x.journal.append(ctx, at, head, r)
		if errors.Is(err, runlog.ErrConflict) && x.journal.state.Seq != 0 {
			if err = x.journal.catchUp(ctx, true); err == nil {
				at, head = x.journal.state.Seq, &x.journal.state.Head
				continue
			}
		}
		if err != nil { // fenced, or the log cannot be read: the ticket is redelivered
			return Lost, errors.Join(cause, err)
		}
		break
	}
	x.r.count(func(s *Stats) { s.Released++ })
	x.voice.say(ctx, slog.LevelInfo, "run handed back", x.said("reason", r.Reason), slog.Bool("attempt_spent", r.Spent))
	if err := x.journal.out.Flush(ctx); err != nil {
		cause = errors.Join(cause, err) // the next owner publishes them again
	}
	if stopped {
		cause = ErrShutdown
	}
	return Return, cause
}

// settled settles a run for an owner that ended or parked it and may have died before it was settled. With bare the log is not read
// in full, since that may be what killed the owner.
func (x *settlement) settled(ctx context.Context, bare bool) (bool, Outcome, error) {
	settle := x.cfg.Controller.Settle
	if bare {
		settle = x.cfg.Controller.SettleBare
	}
	if err := settle(ctx, x.run); err != nil {
		outcome, err := x.unsettled(ctx, fmt.Errorf("settle: %w", err))
		return false, outcome, err
	}
	return false, Done, nil
}

// unsettled is the outcome for a run that has ended or parked and could not be settled. Any worker may settle it, so its ticket is
// redelivered. When the stream refuses its events for as long as it has attempts, they are left out.
func (x *settlement) unsettled(ctx context.Context, why error) (Outcome, error) {
	if !errors.Is(why, runlog.ErrUnpublished) || ctx.Err() != nil || x.ticket.Delivered < x.cfg.MaxAttempts {
		return Return, why
	}
	if err := x.cfg.Controller.SettleMute(ctx, x.run, x.ticket.Delivered, why); err != nil {
		return Return, errors.Join(why, err)
	}
	x.voice.say(ctx, slog.LevelError, "run is let go without its events, see its dead letter", x.said("err", why.Error()))
	return Done, nil
}
