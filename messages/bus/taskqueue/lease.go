package taskqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Lease is for how much longer this delivery may be relied upon: half the ack wait since the newest renewal that certainly
// reached the queue in time, or since the message was asked for. While it is positive the queue has given the message to
// no one else, and the other half is left for what begins now to get under way. Once the ack wait is over it stays at
// zero or below, whatever Renew says: only a newer delivery has a lease again.
//
// It is measured by this machine's monotonic clock and its wall clock, whichever went further: the first stands still
// while a virtual machine is suspended. Neither is compared with the server's.
func (d *Delivery) Lease() time.Duration { return d.ackWait/2 - d.unrenewed() }

// Lapsed reports whether the queue may have given the message to someone else.
func (d *Delivery) Lapsed() bool { return d.unrenewed() >= d.ackWait }

func (d *Delivery) unrenewed() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return elapsed(d.since)
}

// Renew keeps the message for another ack wait, and waits until the queue has said so. It asks once. On a delivery whose
// ack wait is over it changes nothing: the queue says yes all the same, and gives the message to the next worker that asks.
func (d *Delivery) Renew(ctx context.Context) error {
	asked := time.Now()
	m := &nats.Msg{Subject: d.reply, Data: []byte("+WPI")}
	if err := d.queue.bus.Confirm(ctx, m); err != nil {
		return fmt.Errorf("keep message %d: %w", d.Seq, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if elapsed(d.since) < d.ackWait { // the queue knew even earlier
		d.since = asked
	}
	return nil
}

// elapsed is how long ago a moment of time.Now was.
func elapsed(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
