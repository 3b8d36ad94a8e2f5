package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// echo answers what it is asked, but for "late", which it answers when it is asked the next time.
func echo(t *testing.T, nc *nats.Conn) string {
	t.Helper()
	subject := nc.NewInbox()
	var late *nats.Msg
	if _, err := nc.Subscribe(subject, func(m *nats.Msg) {
		if late != nil {
			_ = late.Respond(late.Data)
		}
		if late = nil; string(m.Data) == "late" {
			late = m
			return
		}
		_ = m.Respond(m.Data)
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return subject
}

// Each of many requests gets its own answer.
func TestAsk(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	subject := echo(t, nc)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 100 {
				what := fmt.Sprint(i, ".", n)
				m, err := b.Ask(bustest.Context(t), &nats.Msg{Subject: subject, Data: []byte(what)}, time.Minute)
				if err != nil || string(m.Data) != what {
					t.Errorf("asked %s: %v, %v", what, m, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// An answer that comes too late belongs to no request.
func TestAskInVain(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	subject := echo(t, nc)
	late := func() *nats.Msg { return &nats.Msg{Subject: subject, Data: []byte("late")} }
	if _, err := b.Ask(bustest.Context(t), late(), time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: %v", err)
	}
	if m, err := b.Ask(bustest.Context(t), &nats.Msg{Subject: subject, Data: []byte("next")}, time.Minute); err != nil || string(m.Data) != "next" {
		t.Errorf("the next: %v, %v", m, err)
	}
	if _, err := b.Ask(bustest.Context(t), &nats.Msg{Subject: nc.NewInbox()}, time.Minute); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("no responder: %v", err)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
	cancel()
	unasked, err := nc.SubscribeSync("unasked")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ask(ctx, &nats.Msg{Subject: "unasked"}, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := unasked.NextMsg(0); err == nil {
		t.Errorf("cancelled, and asked all the same: %v", m)
	}
	asked, failed := make(chan struct{}), make(chan error)
	if _, err := nc.Subscribe("nowhere", func(*nats.Msg) { close(asked) }); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := b.Ask(bustest.Context(t), &nats.Msg{Subject: "nowhere"}, time.Minute)
		failed <- err
	}()
	<-asked
	nc.Close()
	if err := <-failed; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("connection closed: %v", err)
	}
	if _, err := b.Ask(bustest.Context(t), late(), time.Minute); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("connection gone: %v", err)
	}
}
