package bus_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

func run1() messages.Ref { return messages.Ref{Tenant: "acme", Run: "run-1"} }

// pull takes n deliveries, from whatever lanes they are in.
func pull(tb testing.TB, b *bus.Bus, n int) []*bus.Delivery {
	tb.Helper()
	tasks := mustTasks(tb, b)
	var got []*bus.Delivery
	for ctx := ctxFor(tb); len(got) < n; {
		if _, _, err := b.MendLanes(ctx, tasks.AckWait); err != nil {
			tb.Fatal(err)
		}
		lanes, err := b.Lanes(ctx)
		if err != nil {
			tb.Fatalf("got %d deliveries, want %d: %v", len(got), n, err)
		}
		for _, l := range lanes {
			if len(got) < n {
				got = slices.AppendSeq(got, values(tb, tasks.Take(ctx, l.Lane, n-len(got))))
			}
		}
	}
	return got
}

// streamLength is how many messages a stream holds.
func streamLength(tb testing.TB, nc *nats.Conn, stream string) uint64 {
	tb.Helper()
	s, err := newJetStream(tb, nc).Stream(ctxFor(tb), stream)
	if err != nil {
		tb.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func TestSubmit(t *testing.T) {
	b, _ := openNew(t)
	task := newTask(run1())
	if dup, err := b.Submit(ctxFor(t), task, false); dup || err != nil {
		t.Fatalf("got %v, %v", dup, err)
	}
	for _, p := range []messages.Priority{messages.PriorityNormal, messages.PriorityHigh, messages.PriorityLow} {
		again := *task
		again.Priority = p
		if dup, err := b.Submit(ctxFor(t), &again, false); !dup || err != nil {
			t.Errorf("again with priority %s: got %v, %v, want a duplicate", p, dup, err)
		}
	}
	other := newTask(messages.Ref{Tenant: "other", Run: "run-1"})
	if dup, err := b.Submit(ctxFor(t), other, false); dup || err != nil {
		t.Errorf("the same id of another tenant: got %v, %v", dup, err)
	}
	q, ok, err := b.Queued(ctxFor(t), run1())
	if !ok || err != nil || q.Seq != 1 || time.Since(q.At) > time.Minute {
		t.Errorf("queued: got %+v, %v, %v", q, ok, err)
	}
	if diff := cmp.Diff(string(task.Encode()), string(q.Body)); diff != "" {
		t.Error(diff)
	}
	d := pull(t, b, 2)
	if p, ref, ok := messages.ParseTaskSubject(d[0].Subject); p != messages.PriorityNormal || ref != run1() || !ok || !strings.HasPrefix(d[0].Subject, "lanes.") {
		t.Errorf("got subject %s", d[0].Subject)
	}
	if d[0].Seq != 1 || d[0].Delivered != 1 || d[0].Scheduler != "" {
		t.Errorf("got %+v", d[0])
	}
}

func TestSubmitAfterTheWindowSeesTheQueue(t *testing.T) {
	b, nc := openNew(t)
	// Published without an id, as a client in another language may: only the queue itself knows it.
	if err := nc.Publish(run1().TaskSubject(messages.PriorityLow), newTask(run1()).Encode()); err != nil {
		t.Fatal(err)
	}
	if dup, err := b.Submit(ctxFor(t), newTask(run1()), false); !dup || err != nil {
		t.Errorf("got %v, %v, want a duplicate", dup, err)
	}
}

func TestSubmitErrors(t *testing.T) {
	b, nc := openNew(t)
	var fe *messages.FieldError
	for _, id := range []string{"", "*", ">", "a.b", "a b", "ü", strings.Repeat("a", 65)} {
		if _, err := b.Submit(ctxFor(t), newTask(messages.Ref{Tenant: "acme", Run: id}), false); !errors.As(err, &fe) || fe.Field != "id" {
			t.Errorf("id %q: got %v", id, err)
		}
	}
	large := newTask(run1())
	large.Context, _ = json.Marshal(map[string]string{"k": strings.Repeat("x", 200<<10)})
	large.Input = messages.TextInput(strings.Repeat("\x01", int(nc.MaxPayload())/6))
	if _, err := b.Submit(ctxFor(t), large, false); err == nil || !strings.Contains(err.Error(), "more than the server takes: raise its max_payload") {
		t.Errorf("got %v", err)
	}
	if n := streamLength(t, nc, bus.StreamTasks); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
}

func TestUnqueueIsOfOneRun(t *testing.T) {
	b, _ := openNew(t)
	others := []messages.Ref{{Tenant: "acme", Run: "run-2"}, {Tenant: "other", Run: "run-1"}}
	for _, r := range append(others, run1()) {
		if _, err := b.Submit(ctxFor(t), newTask(r), false); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []messages.Ref{{Tenant: "*", Run: "*"}, {Tenant: "acme", Run: ">"}} {
		if err := b.Unqueue(ctxFor(t), bad); err == nil {
			t.Errorf("unqueue %s: got no error", bad)
		}
	}
	if err := b.Unqueue(ctxFor(t), run1()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.Queued(ctxFor(t), run1()); ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	for _, r := range others {
		if _, ok, err := b.Queued(ctxFor(t), r); !ok || err != nil {
			t.Errorf("%s: got %v, %v", r, ok, err)
		}
	}
}

func TestWakeIsStoredOnceByName(t *testing.T) {
	b, nc := openNew(t)
	for _, after := range []uint64{7, 7, 9} {
		if err := b.Wake(ctxFor(t), run1(), after); err != nil {
			t.Fatal(err)
		}
	}
	var got []messages.Wake
	for _, d := range pull(t, b, 2) {
		var w messages.Wake
		if err := json.Unmarshal(d.Data, &w); err != nil {
			t.Fatal(err)
		}
		got = append(got, w)
	}
	if diff := cmp.Diff([]messages.Wake{{After: 7}, {After: 9}}, got); diff != "" {
		t.Error(diff)
	}
	if n := streamLength(t, nc, bus.StreamTasks); n != 2 {
		t.Errorf("got %d messages, want 2", n)
	}
}

func TestTimersOfTwoParksBothFire(t *testing.T) {
	b, nc := openNew(t)
	soon := time.Now().Add(300 * time.Millisecond)
	for _, park := range []uint64{3, 8, 3} { // the last is there already
		if err := b.Timer(ctxFor(t), run1(), park, soon); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Net(ctxFor(t), run1(), "control-1", soon); err != nil {
		t.Fatal(err)
	}
	if n := streamLength(t, nc, bus.StreamTasks); n != 3 {
		t.Errorf("got %d schedules, want 3", n)
	}
	got := map[string]messages.Wake{}
	for _, d := range pull(t, b, 3) {
		if p, ref, ok := messages.ParseTaskSubject(d.Subject); !ok || ref != run1() || p != "wake" {
			t.Errorf("got subject %s", d.Subject)
		}
		var w messages.Wake
		if err := json.Unmarshal(d.Data, &w); err != nil {
			t.Fatal(err)
		}
		got[d.Scheduler] = w
		if early := soon.Sub(d.Queued); early > 10*time.Millisecond {
			t.Errorf("fired %v early", early)
		}
		if err := d.Ack(ctxFor(t)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]messages.Wake{
		run1().TimerSubject(3):         {After: 3, Errand: messages.ErrandTimer},
		run1().TimerSubject(8):         {After: 8, Errand: messages.ErrandTimer},
		run1().NetSubject("control-1"): {Errand: messages.ErrandNet},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := streamLength(t, nc, bus.StreamTasks); n != 0 {
		t.Errorf("got %d messages left", n)
	}
}

func TestCancelTimer(t *testing.T) {
	b, nc := openNew(t)
	for _, park := range []uint64{1, 11} {
		if err := b.Timer(ctxFor(t), run1(), park, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.CancelTimer(ctxFor(t), run1(), 1); err != nil {
		t.Fatal(err)
	}
	if n := streamLength(t, nc, bus.StreamTasks); n != 1 {
		t.Errorf("got %d schedules, want that of the other park", n)
	}
}

func TestHolds(t *testing.T) {
	b, _ := openNew(t)
	if _, err := b.Submit(ctxFor(t), newTask(run1()), false); err != nil {
		t.Fatal(err)
	}
	holds := func(seq uint64) bool {
		t.Helper()
		ok, err := b.Holds(ctxFor(t), seq)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	d := pull(t, b, 1)[0]
	if !holds(d.Seq) || holds(0) || holds(d.Seq+1) {
		t.Error("want the delivered message alone")
	}
	if err := d.Ack(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if holds(d.Seq) {
		t.Error("want nothing after the ack")
	}
}

func TestBury(t *testing.T) {
	b, nc := openNew(t)
	letter := messages.Dead{Subject: "tasks.normal.acme.run-1", Task: []byte("not\xffJSON"), Attempts: 5, Error: messages.RunError{Code: messages.CodePoison}}
	for range 2 {
		if err := b.Bury(ctxFor(t), run1(), "not.an.agent", letter); err != nil {
			t.Fatal(err)
		}
		if err := b.BuryRaw(ctxFor(t), "tasks.normal.*.>", letter); err != nil {
			t.Fatal(err)
		}
	}
	if n := streamLength(t, nc, bus.StreamDead); n != 2 {
		t.Errorf("got %d letters, want 2", n)
	}
	s, err := newJetStream(t, nc).Stream(ctxFor(t), bus.StreamDead)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(ctxFor(t), "dead.acme._.run-1")
	if err != nil {
		t.Fatal(err)
	}
	var got messages.Dead
	if err := json.Unmarshal(m.Data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(letter, got); diff != "" {
		t.Error(diff)
	}
}
