package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/control"
)

// Consumers that dispatchers share are recreated if they were removed, and deliver what was stored meanwhile.
func TestRemovedConsumersAreMadeAgain(t *testing.T) {
	t.Parallel()
	for consumer, tc := range map[string]struct {
		stream string
		run    func(ctx context.Context, b *bus.Bus, took chan<- string) error
		put    func(t *testing.T, b *bus.Bus, nc *nats.Conn, name string)
	}{
		"ends": {
			stream: bus.StreamEvents,
			run: func(ctx context.Context, b *bus.Bus, took chan<- string) error {
				return events.New(b).RunEnds(ctx, func(_ context.Context, e events.RunEnd) error { took <- e.Run.Run; return nil })
			},
			put: func(t *testing.T, _ *bus.Bus, nc *nats.Conn, name string) {
				t.Helper()
				run := messages.Ref{Tenant: "acme", Run: name}
				bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventRunFinished))
			},
		},
		"webhooks": {
			stream: bus.StreamWebhooks,
			run: func(ctx context.Context, b *bus.Bus, took chan<- string) error {
				return webhooks.New(b).Run(ctx, webhooks.Work{
					Together: 2, AckWait: time.Minute,
					Deliver: func(_ context.Context, d webhooks.Delivery) (time.Duration, bool) {
						took <- d.Name
						return 0, true
					},
				})
			},
			put: func(t *testing.T, b *bus.Bus, _ *nats.Conn, name string) {
				t.Helper()
				job := messages.RunWebhook(messages.Ref{Tenant: "acme", Run: name}, "https://example.com/", []byte(`{}`))
				if err := webhooks.New(b).Put(bustest.Context(t), &job, 0); err != nil {
					t.Fatal(err)
				}
			},
		},
		"schedules": { // what is none is passed over, and counted
			stream: bus.StreamTasks,
			run: func(ctx context.Context, b *bus.Bus, took chan<- string) error {
				go func() {
					for n := b.Skipped(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
						if now := b.Skipped(); now > n {
							n = now
							took <- ""
						}
					}
				}()
				return schedules.New(b).Dues(ctx, func(context.Context, control.Due) error { return nil })
			},
			put: func(t *testing.T, b *bus.Bus, nc *nats.Conn, name string) {
				t.Helper()
				subject := b.Partitions(bus.StreamTasks).SubjectIn(0, "sched.due.acme."+name)
				if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), subject, []byte(`{}`)); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(consumer, func(t *testing.T) {
			t.Parallel()
			b, nc := bustest.OpenNew(t)
			ctx, stop := context.WithCancel(bustest.Context(t))
			took, done := make(chan string, 10), make(chan error, 1)
			go func() { done <- tc.run(ctx, b, took) }()
			await := func(name string) {
				t.Helper()
				tc.put(t, b, nc, name)
				for got := "nothing"; got != name && got != ""; { // what was taken may come again
					select {
					case got = <-took:
					case <-ctx.Done():
						t.Fatalf("%s does not come", name)
					}
				}
			}
			await("before")
			name := b.Partitions(tc.stream).NameOf(messages.Ref{Tenant: "acme", Run: "after"})
			if tc.stream == bus.StreamTasks { // what is due is in the first
				name = b.Partitions(tc.stream).Name(0)
			}
			if err := bustest.NewJetStream(t, nc).DeleteConsumer(ctx, name, consumer); err != nil {
				t.Fatal(err)
			}
			await("after")
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
