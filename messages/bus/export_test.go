package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// Appending makes it look as if so many appends were on their way.
func (b *Bus) Appending(n int64) { b.lull.appends.Add(n) }

// FewAppends is how many appends hold nothing back.
const FewAppends = fewAppends

// Unanswered makes it look as if so many events were on their way to a server that has just acknowledged one.
func (b *Bus) Unanswered(n uint64) {
	b.acks.mu.Lock()
	defer b.acks.mu.Unlock()
	b.acks.heard = time.Now()
	b.acks.flights += int(n)
	for i := range n {
		b.acks.waiting[1<<63+i] = &flight{box: &outbox{landed: make(chan struct{}, 1)}}
	}
}

// MaxFlying is how many events on their way let no more go that are held back.
const MaxFlying = maxFlying

// AckSilence is how long they may do so after the last acknowledgement.
const AckSilence = ackSilence

// Ask makes a request as appends and acknowledgements do.
func (b *Bus) Ask(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	return b.acks.ask(ctx, m, wait)
}

// SendAgain sends an event so many times.
func (b *Bus) SendAgain(subject string, times int) {
	f := &flight{box: &outbox{landed: make(chan struct{}, 1), header: nats.Header{}}, letter: letter{subject: subject, id: "1"}}
	for range times {
		b.acks.send(f)
	}
}

// Flying is how many events are on their way.
func (b *Bus) Flying() int {
	b.acks.mu.Lock()
	defer b.acks.mu.Unlock()
	return b.acks.flights
}

// Abandon makes it look as if all were sent long ago.
func (b *Bus) Abandon() {
	b.acks.mu.Lock()
	defer b.acks.mu.Unlock()
	for _, w := range b.acks.waiting {
		if f, ok := w.(*flight); ok {
			f.sent = f.sent.Add(-2 * abandoned)
		}
	}
}

// SweepEvery is the number of events after which unacknowledged ones are dropped.
const SweepEvery = sweepEvery

// Rest waits between two attempts.
func (b *Bus) Rest(ctx context.Context, d time.Duration) error { return b.rest(ctx, d) }
