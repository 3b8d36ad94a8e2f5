package taskqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/queue"
)

const (
	hintGroup = "workers"   // one of the workers gets each hint
	maxSpill  = 200         // lanes in one message
	hintDrain = time.Second // bounds the wait for hints that were on their way to a worker that stops
)

// Hints calls stored for messages that the queue has stored, with their lanes and sequences, each message for one of
// those who listen; and spilled for lanes that another worker has seen work in and no slot for. Both are called until
// ctx ends and Hints has returned, from different goroutines; listening is called once they will be. Hints may be lost,
// and any client with the permission may make them up.
//
// A message whose priority or tenant is none is in no lane: for it stored is called with a Lane that has neither.
func (tq *Queue) Hints(ctx context.Context, stored func(l queue.Lane, seq uint64), spilled func(l queue.Lane), listening func()) error {
	closed, tasks := make(chan struct{}, 2), tq.tasks()
	var subs []*nats.Subscription
	for subject, f := range map[string]nats.MsgHandler{
		queue.HintSubjects: func(m *nats.Msg) {
			seq, _ := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64) // 0: not known
			l, _ := queue.LaneOfHint(m.Subject)
			if in, ok := tasks.Index(m.Header.Get(jetstream.StreamHeader)); ok {
				stored(l.In(in), seq)
			} else if !tasks.Divided() { // not known
				stored(l, seq)
			}
		},
		queue.SpillSubject: func(m *nats.Msg) {
			lines := strings.SplitN(string(m.Data), "\n", maxSpill+1)
			for _, line := range lines[:min(maxSpill, len(lines))] {
				if l, ok := queue.ParseLane(line); ok && l.Partition < tasks.Number() {
					spilled(l)
				}
			}
		},
	} {
		group := ""
		if subject == queue.HintSubjects {
			group = hintGroup
		}
		sub, err := tq.bus.Conn().QueueSubscribe(subject, group, f)
		if err != nil {
			return fmt.Errorf("subscribe to hints: %w", err)
		}
		sub.SetClosedHandler(func(string) { closed <- struct{}{} })
		subs = append(subs, sub)
	}
	flush, cancel := context.WithTimeout(ctx, tq.bus.Answer())
	err := tq.bus.Conn().FlushWithContext(flush)
	cancel()
	if err != nil && ctx.Err() == nil {
		tq.bus.Log().WarnContext(ctx, "subscribe to hints", "err", err) // once the connection is back it is subscribed
	}
	listening()
	<-ctx.Done()
	timer := time.NewTimer(hintDrain)
	defer timer.Stop()
	for _, sub := range subs {
		if sub.Drain() != nil { // the connection is gone
			continue
		}
		select {
		case <-closed:
		case <-timer.C:
			return nil
		}
	}
	return nil
}

// Spill tells all workers that lanes have work. It is not stored and may be lost.
func (tq *Queue) Spill(lanes []queue.Lane) error {
	for len(lanes) > 0 {
		n := min(maxSpill, len(lanes))
		var text strings.Builder
		for i, l := range lanes[:n] {
			if i > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(l.String())
		}
		if err := tq.bus.Conn().Publish(queue.SpillSubject, []byte(text.String())); err != nil {
			return fmt.Errorf("tell of lanes: %w", err)
		}
		lanes = lanes[n:]
	}
	return nil
}
