package runner

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// unlessGone is the outcome of a claim. A run that no process can read, or of which nothing can be stored since the key of its tenant was
// destroyed, ends.
func (x *claimer) unlessGone(ctx context.Context, owned bool, outcome Outcome, err error) (bool, Outcome, error) {
	if owned || !record.IsGone(err) {
		return owned, outcome, err
	}
	if err := x.endGone(ctx, err); err != nil {
		return false, Return, err
	}
	x.voice.say(ctx, slog.LevelError, "run ended, for it can no longer be read", x.said("err", err.Error()))
	return false, Done, nil
}

func (x *claimer) endGone(ctx context.Context, why error) error {
	k := x.cfg.Controller
	_, ok, err := x.log.Last(ctx, x.run)
	switch {
	case err != nil:
		return fmt.Errorf("read log: %w", err)
	case ok:
		return k.EndGone(ctx, x.run)
	case x.ticket.After != 0: // purged meanwhile
		return nil
	}
	// A task that has no run yet. It can be sent again when the tenant has a key.
	told := messages.RunError{Code: messages.CodeInternal, Message: x.cfg.Redact(why.Error()) +
		fmt.Sprintf(": give the tenant a new key with `longshore keys renew %s`, then send the task again", x.run.Tenant)}
	if err := k.Queue.DeadLetter(ctx, x.run, x.unread().Task.Agent, messages.Dead{
		Error: told, Subject: x.run.TaskSubject(x.ticket.Priority), Task: x.ticket.Body, Attempts: x.ticket.Delivered, Time: x.now(),
	}); err != nil {
		return err
	}
	if _, err := k.Begin(ctx, x.run, x.unread(), record.Gone(x.run, x.now())); err != nil {
		return err
	}
	return k.SettleBare(ctx, x.run)
}

// handedBack is why the last owner handed a run back; empty: it did not, or that cannot be read.
func (x *claimer) handedBack(ctx context.Context, last *record.Entry) string {
	if !slices.Equal(last.Head.Kinds, []record.Kind{record.KindReleased}) { // anything else may be what kills workers
		return ""
	}
	for e, err := range x.log.Read(ctx, x.run, last.Seq-1, last.Seq) {
		if err == nil && e.Seq == last.Seq && len(e.Records) == 1 {
			if r, ok := e.Records[0].(*record.Released); ok {
				return r.Reason
			}
		}
		break
	}
	return ""
}
