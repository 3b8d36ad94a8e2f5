package taskqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// harbour is an owner that works one run.
type harbour struct {
	run    messages.Ref
	claim  string
	taken  chan *taskqueue.Delivery
	asked  chan struct{}
	refuse bool // to take
}

func (h *harbour) Works(run messages.Ref, claim string, _ uint64) bool {
	h.asked <- struct{}{}
	return run == h.run && claim == h.claim
}

func (h *harbour) Take(_ messages.Ref, d *taskqueue.Delivery) bool {
	if !h.refuse {
		h.taken <- d
	}
	return !h.refuse
}

func (h *harbour) Room(messages.Ref, uint64) bool { return !h.refuse }

func (h *harbour) Adopt(d *taskqueue.Delivery) bool {
	h.taken <- d
	return true
}

// serveOwner answers for a life until the test ends, and waits until it does.
func serveOwner(t *testing.T, b *bus.Bus, nc *nats.Conn, life string, ackWait time.Duration) *harbour {
	t.Helper()
	h := &harbour{
		run: messages.Ref{Tenant: "acme", Run: "run-0"}, claim: life + "-1",
		taken: make(chan *taskqueue.Delivery, 8), asked: make(chan struct{}, 8),
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- taskqueue.New(b).ServeOwner(ctx, life, ackWait, h) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for { // until it listens
		_, err := nc.Request(messages.KeepPrefix+life, []byte(`{"tenant":"acme","run":"probe","claim":"x","ticket":1}`), time.Second)
		if err == nil {
			<-h.asked
			return h
		}
		if t.Context().Err() != nil || !errors.Is(err, nats.ErrNoResponders) {
			t.Fatal(err)
		}
	}
}

func TestHandOver(t *testing.T) {
	t.Parallel()
	const ackWait = time.Minute
	b, nc := bustest.OpenNew(t)
	submitMany(t, b, 0, 1)
	d := bustest.Pull(t, b, 1)[0]
	h := serveOwner(t, b, nc, "life", ackWait)
	for name, tt := range map[string]struct {
		run   messages.Ref
		claim string
	}{
		"another run":   {messages.Ref{Tenant: "acme", Run: "other"}, h.claim},
		"another claim": {h.run, "life-2"},
	} {
		if kept, err := d.HandOver(bustest.Context(t), "life", tt.run, tt.claim); kept || err != nil {
			t.Errorf("%s: kept %v, %v", name, kept, err)
		}
		<-h.asked
	}
	if kept, err := d.HandOver(bustest.Context(t), "unknown", h.run, h.claim); kept || !errors.Is(err, taskqueue.ErrSilent) {
		t.Errorf("a dead owner: kept %v, %v", kept, err)
	}
	kept, err := d.HandOver(bustest.Context(t), "life", h.run, h.claim)
	if !kept || err != nil {
		t.Fatalf("the owner: kept %v, %v", kept, err)
	}
	taken := <-h.taken
	if l := taken.Lease(); l <= 0 || l > ackWait/2 {
		t.Errorf("the delivery has a lease of %v, want half the ack wait at most", l)
	}
	if err := taken.Ack(bustest.Context(t)); err != nil { // it is the same message
		t.Error(err)
	}
	if left := bustest.StreamLength(t, nc, bus.StreamTasks); left != 0 {
		t.Errorf("%d messages are left", left)
	}
}

// An owner publishes to the subject that it is given, so only that of a delivery of the same message will do.
func TestHandOverOfForeignSubjects(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	h := serveOwner(t, b, nc, "life", time.Minute)
	said, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{
		"longshore.approve", "$KV.KEYS.admin", "tasks.high.acme.x", "$JS.API.STREAM.PURGE.RUNS",
		"$JS.ACK.TASKS.workers.1.8.1.1700000000000000000.0", // of another message
		"$JS.ACK.RUNS.workers.1.7.1.1700000000000000000.0", "$JS.ACK.TASKS.schedules.1.7.1.1700000000000000000.0",
		"$JS.ACK.TASKS.>", "$JS.ACK.TASKS.workers.1.7.1.1700000000000000000.0.x.y.z", " ", "a\r\nPUB x 0\r\n\r\n",
	} {
		body, err := json.Marshal(map[string]any{"tenant": "acme", "run": "run-0", "claim": h.claim, "ticket": 7})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Request(messages.KeepPrefix+"life", body, time.Second); err != nil { // it is promised
			t.Fatal(err)
		}
		<-h.asked
		body = fmt.Appendf(nil, `{"tenant":"acme","run":"run-0","claim":%q,"ticket":7,"reply":%q}`, h.claim, reply)
		if m, err := nc.Request(messages.KeepPrefix+"life", body, 100*time.Millisecond); err == nil {
			t.Errorf("%q is answered with %s", reply, m.Data)
		}
	}
	for {
		m, err := said.NextMsg(100 * time.Millisecond)
		if err != nil {
			break
		}
		if string(m.Data) == "+WPI" || string(m.Data) == "+ACK" || string(m.Data) == "-NAK" {
			t.Errorf("%s: %q", m.Subject, m.Data)
		}
	}
	if len(h.taken) != 0 {
		t.Errorf("%d deliveries were taken", len(h.taken))
	}
}

// A renewal in time begins the lease anew; one that is too late does not, although the queue says yes.
func TestLease(t *testing.T) {
	t.Parallel()
	const ackWait = 500 * time.Millisecond
	b, nc := bustest.OpenNew(t)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: ackWait}); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 0, 1)
	d := bustest.Pull(t, b, 1)[0]
	if l := d.Lease(); l > ackWait/2 {
		t.Errorf("a lease of %v, want at most %v", l, ackWait/2)
	}
	lapse := time.NewTicker(10 * time.Millisecond)
	defer lapse.Stop()
	for !d.Lapsed() {
		if d.Lease() > 0 && d.Lapsed() {
			t.Error("a lease without a ticket")
		}
		<-lapse.C
	}
	if err := d.Renew(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if l := d.Lease(); l > 0 || !d.Lapsed() {
		t.Errorf("renewed too late, and a lease of %v", l)
	}
	again := bustest.Pull(t, b, 1)[0]
	if err := again.Renew(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if again.Delivered != 2 || again.Lapsed() {
		t.Errorf("delivery %d, lapsed %v", again.Delivered, again.Lapsed())
	}
}
