package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// The tests of this file show what the server does that the protocol has to live with.

func TestAckIsNoFence(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: 200 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(bustest.Run()), false); err != nil {
		t.Fatal(err)
	}
	zombie, owner := bustest.Pull(t, b, 1)[0], bustest.Pull(t, b, 1)[0]
	if zombie.Seq != owner.Seq || owner.Delivered != 2 {
		t.Fatalf("got %+v, want the same message again", owner)
	}
	if err := zombie.Ack(bustest.Context(t)); err != nil {
		t.Fatalf("a stale ack: %v", err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 0 {
		t.Errorf("got %d messages, want the task gone with its owner still working", n)
	}
	if err := owner.Ack(bustest.Context(t)); err != nil {
		t.Errorf("the owner's ack: %v", err)
	}
}

// A wake-up must not expect an empty subject, nor have the id of the submit.
func TestWakeUpWouldBeSwallowed(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(bustest.Run()), false); err != nil {
		t.Fatal(err)
	}
	ticket := bustest.Pull(t, b, 1)[0]
	js := bustest.NewJetStream(t, nc)
	_, err := js.Publish(bustest.Context(t), bustest.QueueAt(b, bustest.Run(), bustest.Run().WakeSubject()), nil, jetstream.WithExpectLastSequenceForSubject(0, bustest.Run().QueuedFilter()))
	if err == nil {
		t.Error("expecting 0 while the old ticket is unacked: got no refusal")
	}
	ack, err := js.Publish(bustest.Context(t), bustest.QueueAt(b, bustest.Run(), bustest.Run().WakeSubject()), nil, jetstream.WithMsgID(bustest.Run().MsgID()))
	if err != nil || !ack.Duplicate {
		t.Errorf("with the id of the submit: got %+v, %v", ack, err)
	}
	if err := taskqueue.New(b).Wake(bustest.Context(t), bustest.Run(), 5); err != nil { // ours is stored
		t.Fatal(err)
	}
	if err := ticket.Ack(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 1 {
		t.Errorf("got %d messages, want the wake-up", n)
	}
}

func TestHostileSubjectsReachTheConsumerAsTheyCame(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	subjects := []string{"tasks.normal.acme.*", "tasks.normal.>", "tasks.a.b.c.d.e", "tasks.x"}
	for _, s := range subjects {
		if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), s, []byte("{}")); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	for _, d := range bustest.Pull(t, b, len(subjects)) {
		if _, _, ok := messages.ParseTaskSubject(d.Subject); ok {
			t.Errorf("%s was taken for a run", d.Subject)
		}
		if err := deadletters.New(b).PutRaw(bustest.Context(t), d.Subject, messages.Dead{Subject: d.Subject, Task: d.Data}); err != nil {
			t.Error(err)
		}
		if err := d.Term("not a run"); err != nil {
			t.Error(err)
		}
	}
	if n := bustest.StreamLength(t, nc, bus.StreamDead); n != uint64(len(subjects)) {
		t.Errorf("got %d dead letters, want %d", n, len(subjects))
	}
}
