package taskqueue_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

// takeAllIn runs Intake until nothing is left to take in.
func takeAllIn(t *testing.T, b *bus.Bus, nc *nats.Conn) {
	t.Helper()
	ctx, stop := context.WithCancel(bustest.Context(t))
	done := make(chan error, 1)
	go func() { done <- taskqueue.New(b).Intake(ctx) }()
	for bustest.StreamLength(t, nc, bus.StreamIntake) > 0 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("tasks are left in INTAKE")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Intake passes body, trace and id on in the order of the stream, with a hint, and no other header.
func TestIntake(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	hints, err := nc.SubscribeSync(queue.HintSubjects)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	bustest.Hand(t, nc, "intake.high.acme.r0", "0", nats.Header{
		messages.HeaderTraceparent: {trace}, "Nats-Msg-Id": {"acme.r0"}, "Nats-Trace-Dest": {"runs.acme.r.log"}, "Foo": {"bar"},
		"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {"lanes.*.*.acme.r0"},
	})
	for i := 1; i < 600; i++ { // more than are taken at once
		bustest.Hand(t, nc, fmt.Sprintf("intake.normal.acme.r%d", i), strconv.Itoa(i), nil)
	}
	takeAllIn(t, b, nc)
	for i, d := range bustest.Pull(t, b, 600) {
		p, run, ok := messages.ParseTaskSubject(d.Subject)
		if i == 0 && (p != messages.PriorityHigh || d.Trace != trace) {
			t.Errorf("the first is %+v", d)
		}
		if want := strconv.Itoa(i); !ok || run != (messages.Ref{Tenant: "acme", Run: "r" + want}) || string(d.Data) != want {
			t.Fatalf("%d. is %s: %s", i, d.Subject, d.Data)
		}
		if _, err := hints.NextMsgWithContext(bustest.Context(t)); err != nil {
			t.Fatalf("no hint: %v", err)
		}
	}
	stream, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamTasks)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(bustest.Context(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Nats-Stream", "Nats-Sequence", "Nats-Subject", "Nats-Time-Stamp"} {
		m.Header.Del(name) // the stream's own, which sends hints
	}
	if diff := cmp.Diff(nats.Header{"Nats-Msg-Id": {"acme.r0"}, messages.HeaderTraceparent: {trace}}, m.Header); diff != "" {
		t.Errorf("headers: %s", diff)
	}
}

// No header does something to other messages, of INTAKE or of TASKS, or to this one.
func TestIntakeObeysNoHeader(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	submitMany(t, b, 0, 3)
	bustest.Hand(t, nc, "intake.normal.harbour.r", "{}", nil)
	for name, header := range map[string]nats.Header{
		"rollup all":         {"Nats-Rollup": {"all"}},
		"rollup sub":         {"Nats-Rollup": {"sub"}},
		"ttl":                {"Nats-TTL": {"1s"}},
		"schedule":           {"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"intake.normal.harbour.r"}},
		"schedule into":      {"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"tasks.wake.harbour.r"}},
		"end of a schedule":  {"Nats-Schedule-Next": {"purge"}, "Nats-Scheduler": {"sched.sweep"}},
		"scheduler":          {"Nats-Scheduler": {"sched.sweep"}},
		"source":             {"Nats-Stream-Source": {"TASKS 1 > > tasks.normal.harbour.r"}},
		"last sequence":      {"Nats-Expected-Last-Sequence": {"77"}},
		"stream":             {"Nats-Expected-Stream": {"TASKS"}},
		"counter":            {"Nats-Incr": {"1"}},
		"batch":              {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}},
		"rollup and expects": {"Nats-Rollup": {"all"}, "Nats-Expected-Last-Sequence": {"1"}},
	} {
		answer, err := nc.RequestMsgWithContext(bustest.Context(t), &nats.Msg{Subject: "intake.normal.acme.evil", Data: []byte("{}"), Header: header})
		if err != nil || !strings.Contains(string(answer.Data), `"error"`) {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
	if n := bustest.StreamLength(t, nc, bus.StreamIntake); n != 1 {
		t.Errorf("INTAKE has %d messages, want that of the other tenant", n)
	}
	takeAllIn(t, b, nc)
	bustest.Pull(t, b, 4)
}

// What a tenant names as its id keeps away nothing of others, in the queue.
func TestIntakeKeepsIDsApart(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	task := bustest.NewTask(messages.Ref{Tenant: "harbour", Run: "r"})
	for i, id := range []string{"harbour.r", "other", strings.Repeat("x", 30_000)} {
		bustest.Hand(t, nc, fmt.Sprintf("intake.normal.acme.r%d", i), "{}", nats.Header{"Nats-Msg-Id": {id}, messages.HeaderTraceparent: {id}})
	}
	if ack := bustest.Hand(t, nc, "intake.normal.acme.again", "{}", nats.Header{"Nats-Msg-Id": {"other"}}); !ack.Duplicate {
		t.Errorf("the same id again: %+v", ack)
	}
	takeAllIn(t, b, nc)
	if dup, err := taskqueue.New(b).Submit(bustest.Context(t), task, true); dup || err != nil {
		t.Errorf("submit for the other tenant: %t, %v", dup, err)
	}
	bustest.Pull(t, b, 4)
}

// A dispatcher that dies between the queue's acknowledgement and its own takes the task in again, and it is there once. A
// restart of the server loses nothing.
func TestIntakeIsTakenInOnceOverARestart(t *testing.T) {
	dir := t.TempDir()
	s := embeddedtest.Start(t, embedded.Config{NoRedis: true, Dir: dir})
	nc := bustest.Connect(t, s)
	bustest.OpenOver(t, nc, bus.Config{})
	bustest.Hand(t, nc, "intake.normal.acme.named", "{}", nats.Header{"Nats-Msg-Id": {"acme.named"}})
	bustest.Hand(t, nc, "intake.normal.acme.bare", "{}", nil)
	bustest.Hand(t, nc, "intake.low.acme.late", "{}", nil)
	nc.Close()
	s.Stop()

	b, nc := bustest.Open(t, embeddedtest.Start(t, embedded.Config{NoRedis: true, Dir: dir}), bus.Config{})
	stream, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamIntake)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := stream.GetMsg(bustest.Context(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	for run, id := range map[string]string{"named": "acme.named", "bare": fmt.Sprintf("intake/%d.2", bare.Time.UnixNano())} {
		subject := bustest.QueueAt(b, messages.Ref{Tenant: "acme", Run: run}, "tasks.normal.acme."+run)
		m := &nats.Msg{Subject: subject, Data: []byte("{}"), Header: nats.Header{"Nats-Msg-Id": {id}}}
		if _, err := nc.RequestMsgWithContext(bustest.Context(t), m); err != nil {
			t.Fatal(err)
		}
	}
	takeAllIn(t, b, nc)
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 3 {
		t.Errorf("TASKS has %d messages, want 3", n)
	}
	bustest.Pull(t, b, 3)
}

// A task as large as a message may be has no room for headers, and is taken in without.
func TestIntakeOfTheLargest(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	largest := strings.Repeat("x", int(nc.MaxPayload()))
	if err := nc.Publish("intake.normal.acme.large", []byte(largest)); err != nil {
		t.Fatal(err)
	}
	bustest.Hand(t, nc, "intake.normal.acme.after", "{}", nil)
	takeAllIn(t, b, nc)
	if d := bustest.Pull(t, b, 2)[0]; string(d.Data) != largest {
		t.Errorf("%s has %d bytes", d.Subject, len(d.Data))
	}
}

// An INTAKE that obeys rollups is refused; a missing one is made next to streams of earlier versions.
func TestSetupOfIntake(t *testing.T) {
	_, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	s, err := js.Stream(bustest.Context(t), bus.StreamIntake)
	if err != nil {
		t.Fatal(err)
	}
	has := s.CachedInfo().Config
	has.AllowRollup = true
	if _, err := js.UpdateStream(bustest.Context(t), has); err != nil {
		t.Fatal(err)
	}
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err == nil || !strings.Contains(err.Error(), "allow_rollup_hdrs") {
		t.Errorf("set up: %v", err)
	}
	if err := js.DeleteStream(bustest.Context(t), bus.StreamIntake); err != nil {
		t.Fatal(err)
	}
	b, _ := bustest.OpenOver(t, nc, bus.Config{})
	bustest.Hand(t, nc, "intake.normal.acme.r", "{}", nil)
	takeAllIn(t, b, nc)
	bustest.Pull(t, b, 1)
}
