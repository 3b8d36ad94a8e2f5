package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// ErrNoLetter means that there is no such dead letter, or it is somebody else's.
var ErrNoLetter = errors.New("no such dead letter")

// BuryWebhook puts a webhook that could not be delivered into the dead letters; one letter of each.
func (b *Bus) BuryWebhook(ctx context.Context, j *messages.WebhookJob, d messages.Dead) error {
	if err := j.Check(); err != nil {
		return err
	}
	return b.bury(ctx, j.DeadSubject(), d)
}

// StoredDead is a dead letter as the stream has it.
type StoredDead struct {
	Seq    uint64
	Stored time.Time
	Of     messages.DeadOf
	messages.Dead
}

// Dead yields dead letters, oldest first, that were stored after a sequence, or since a time if that is not nil: those
// of a tenant, or with an empty one those that name none. Of those stored a moment ago the newest may be missing.
func (b *Bus) Dead(ctx context.Context, tenant string, after uint64, since *time.Time) iter.Seq2[StoredDead, error] {
	return func(yield func(StoredDead, error) bool) {
		filter := messages.DeadUnaddressed
		if tenant != "" {
			if err := (messages.Ref{Tenant: tenant, Run: messages.NoRun}).Check(); err != nil {
				yield(StoredDead{}, err)
				return
			}
			filter = "dead." + tenant + ".>"
		}
		p := Page{Seq: after + 1, Next: filter, Batch: firstPage, Bytes: PageBytes}
		if since != nil && after == 0 {
			p.Seq, p.Since = 0, startTime(*since)
		}
		for m, err := range b.ScanPages(ctx, StreamDead, p) {
			if err != nil {
				yield(StoredDead{}, fmt.Errorf("read dead letters: %w", err))
				return
			}
			if d, ok := b.dead(m); ok && !yield(d, nil) {
				return
			}
		}
	}
}

// dead reads a letter; what is none is counted.
func (b *Bus) dead(m Message) (d StoredDead, ok bool) {
	d = StoredDead{Seq: m.Seq, Stored: m.Time}
	if d.Of, ok = messages.ParseDeadSubject(m.Subject); !ok || strict.Decode(m.Data, &d.Dead) != nil {
		b.Foreign()
		return d, false
	}
	return d, true
}

// DeadLetter reads a letter from the stream's leader: one of the tenant, or with an empty one a letter that names none.
func (b *Bus) DeadLetter(ctx context.Context, tenant string, seq uint64) (StoredDead, error) {
	m, ok, err := b.Get(ctx, StreamDead, Lookup{Seq: seq})
	if err != nil {
		return StoredDead{}, fmt.Errorf("read dead letter %d: %w", seq, err)
	}
	if !ok || seq == 0 {
		return StoredDead{}, ErrNoLetter
	}
	d, ok := b.dead(m)
	if !ok || d.Of.Tenant != tenant {
		return StoredDead{}, ErrNoLetter
	}
	return d, nil
}

// RemoveDead removes a letter; that it is gone already is a success.
func (b *Bus) RemoveDead(ctx context.Context, seq uint64) error {
	return b.Remove(ctx, StreamDead, seq)
}
