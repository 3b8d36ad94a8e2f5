package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// handBackTimeout bounds the append of a release and the flush of its events, when everything else must stop.
const handBackTimeout = 5 * time.Second

// handBack releases the claim, which proves that the run is still ours, so that the ticket may be given back at once.
// A worker that stops gives the attempt back too; after a failure it is spent.
func (x *execution) handBack(ctx context.Context, cause error) (Outcome, error) {
	stopped := errors.Is(cause, ErrShutdown) || errors.Is(context.Cause(ctx), ErrShutdown)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBackTimeout)
	defer cancel()
	r := &record.Released{Reason: strict.Clip(cause.Error(), maxReason), Spent: !stopped}
	at, head := x.state.Seq, &x.state.Head
	if at == 0 { // claimed, and not folded yet
		at, head = x.tip.Seq, &x.tip.Head
	}
	for {
		_, err := x.append(ctx, at, head, r)
		if errors.Is(err, runlog.ErrConflict) && x.state.Seq != 0 {
			if err = x.catchUp(ctx, true); err == nil {
				at, head = x.state.Seq, &x.state.Head
				continue
			}
		}
		if err != nil { // fenced, or no log to be had: the ticket comes back by itself
			return Lost, errors.Join(cause, err)
		}
		break
	}
	x.r.count(func(s *Stats) { s.Released++ })
	x.say(ctx, slog.LevelInfo, "run handed back", x.said("reason", r.Reason), slog.Bool("attempt_spent", r.Spent))
	if err := x.out.Flush(ctx); err != nil {
		cause = errors.Join(cause, err) // the next owner publishes them again
	}
	if stopped {
		cause = ErrShutdown
	}
	return Return, cause
}

const maxReason = 256
