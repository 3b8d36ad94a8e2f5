package taskqueue_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

func TestSubmit(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	task := bustest.NewTask(bustest.Run())
	if dup, err := taskqueue.New(b).Submit(bustest.Context(t), task, false); dup || err != nil {
		t.Fatalf("got %v, %v", dup, err)
	}
	for _, p := range []messages.Priority{messages.PriorityNormal, messages.PriorityHigh, messages.PriorityLow} {
		again := *task
		again.Priority = p
		if dup, err := taskqueue.New(b).Submit(bustest.Context(t), &again, false); !dup || err != nil {
			t.Errorf("again with priority %s: got %v, %v, want a duplicate", p, dup, err)
		}
	}
	other := bustest.NewTask(messages.Ref{Tenant: "other", Run: "run-1"})
	if dup, err := taskqueue.New(b).Submit(bustest.Context(t), other, false); dup || err != nil {
		t.Errorf("the same id of another tenant: got %v, %v", dup, err)
	}
	q, ok, err := taskqueue.New(b).Queued(bustest.Context(t), bustest.Run())
	if !ok || err != nil || q.Seq != 1 || time.Since(q.At) > time.Minute {
		t.Errorf("queued: got %+v, %v, %v", q, ok, err)
	}
	if diff := cmp.Diff(string(task.Encode()), string(q.Body)); diff != "" {
		t.Error(diff)
	}
	d := bustest.Pull(t, b, 2)
	if strings.HasSuffix(d[1].Subject, "."+bustest.Run().Tenant+"."+bustest.Run().Run) { // of another partition
		slices.Reverse(d)
	}
	if p, ref, ok := messages.ParseTaskSubject(d[0].Subject); p != messages.PriorityNormal || ref != bustest.Run() || !ok || !strings.HasPrefix(d[0].Subject, "lanes.") {
		t.Errorf("got subject %s", d[0].Subject)
	}
	if d[0].Seq != 1 || d[0].Delivered != 1 || d[0].Scheduler != "" {
		t.Errorf("got %+v", d[0])
	}
}

func TestSubmitAfterTheWindowSeesTheQueue(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	// Published without an id, as a client in another language may: only the queue itself knows it.
	if err := nc.Publish(bustest.Run().TaskSubject(messages.PriorityLow), bustest.NewTask(bustest.Run()).Encode()); err != nil {
		t.Fatal(err)
	}
	if dup, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(bustest.Run()), false); !dup || err != nil {
		t.Errorf("got %v, %v, want a duplicate", dup, err)
	}
}

func TestSubmitErrors(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	var fe *messages.FieldError
	for _, id := range []string{"", "*", ">", "a.b", "a b", "ü", strings.Repeat("a", 65)} {
		if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(messages.Ref{Tenant: "acme", Run: id}), false); !errors.As(err, &fe) || fe.Field != "id" {
			t.Errorf("id %q: got %v", id, err)
		}
	}
	large := bustest.NewTask(bustest.Run())
	large.Context, _ = json.Marshal(map[string]string{"k": strings.Repeat("x", 200<<10)})
	large.Input = messages.TextInput(strings.Repeat("\x01", int(nc.MaxPayload())/6))
	if _, err := taskqueue.New(b).Submit(bustest.Context(t), large, false); err == nil || !strings.Contains(err.Error(), "more than the server takes: raise its max_payload") {
		t.Errorf("got %v", err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
}

func TestUnqueueIsOfOneRun(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	others := []messages.Ref{{Tenant: "acme", Run: "run-2"}, {Tenant: "other", Run: "run-1"}}
	for _, r := range append(others, bustest.Run()) {
		if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(r), false); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []messages.Ref{{Tenant: "*", Run: "*"}, {Tenant: "acme", Run: ">"}} {
		if err := taskqueue.New(b).Unqueue(bustest.Context(t), bad); err == nil {
			t.Errorf("unqueue %s: got no error", bad)
		}
	}
	if err := taskqueue.New(b).Unqueue(bustest.Context(t), bustest.Run()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := taskqueue.New(b).Queued(bustest.Context(t), bustest.Run()); ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	for _, r := range others {
		if _, ok, err := taskqueue.New(b).Queued(bustest.Context(t), r); !ok || err != nil {
			t.Errorf("%s: got %v, %v", r, ok, err)
		}
	}
}

func TestWakeIsStoredOnceByName(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	for _, after := range []uint64{7, 7, 9} {
		if err := taskqueue.New(b).Wake(bustest.Context(t), bustest.Run(), after); err != nil {
			t.Fatal(err)
		}
	}
	var got []messages.Wake
	for _, d := range bustest.Pull(t, b, 2) {
		var w messages.Wake
		if err := json.Unmarshal(d.Data, &w); err != nil {
			t.Fatal(err)
		}
		got = append(got, w)
	}
	if diff := cmp.Diff([]messages.Wake{{After: 7}, {After: 9}}, got); diff != "" {
		t.Error(diff)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 2 {
		t.Errorf("got %d messages, want 2", n)
	}
}

func TestTimersOfTwoParksBothFire(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	set := func(run messages.Ref, at time.Time, parks ...uint64) {
		t.Helper()
		for _, park := range parks {
			if err := taskqueue.New(b).Timer(bustest.Context(t), run, park, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := taskqueue.New(b).Net(bustest.Context(t), run, "control-1", at); err != nil {
			t.Fatal(err)
		}
	}
	set(messages.Ref{Tenant: "acme", Run: "later"}, time.Now().Add(time.Hour), 3, 8, 3) // the last is there already
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 3 {
		t.Errorf("got %d schedules, want 3", n)
	}
	soon := time.Now().Add(300 * time.Millisecond)
	set(bustest.Run(), soon, 3, 8)
	got := map[string]messages.Wake{}
	for _, d := range bustest.Pull(t, b, 3) {
		if p, ref, ok := messages.ParseTaskSubject(d.Subject); !ok || ref != bustest.Run() || p != "wake" {
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
		if err := d.Ack(bustest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]messages.Wake{
		bustest.Run().TimerSubject(3):         {After: 3, Errand: messages.ErrandTimer},
		bustest.Run().TimerSubject(8):         {After: 8, Errand: messages.ErrandTimer},
		bustest.Run().NetSubject("control-1"): {Errand: messages.ErrandNet},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 3 {
		t.Errorf("got %d messages left, want those of later", n)
	}
}

func TestCancelTimer(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	for _, park := range []uint64{1, 11} {
		if err := taskqueue.New(b).Timer(bustest.Context(t), bustest.Run(), park, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := taskqueue.New(b).CancelTimer(bustest.Context(t), bustest.Run(), 1); err != nil {
		t.Fatal(err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 1 {
		t.Errorf("got %d schedules, want that of the other park", n)
	}
}

func TestHolds(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(bustest.Run()), false); err != nil {
		t.Fatal(err)
	}
	holds := func(seq uint64) bool {
		t.Helper()
		ok, err := taskqueue.New(b).Holds(bustest.Context(t), bustest.Run(), seq)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	d := bustest.Pull(t, b, 1)[0]
	if !holds(d.Seq) || holds(0) || holds(d.Seq+1) {
		t.Error("want the delivered message alone")
	}
	if err := d.Ack(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if holds(d.Seq) {
		t.Error("want nothing after the ack")
	}
}

// A dispatcher asks any replica whether a given id is new: the answer of a stream's leader costs the server twice as much. The
// other users may not, and no answer of a replica makes an id that was used a new one.
func TestSubmitOfAGivenIDAsksReplicas(t *testing.T) {
	servers := bustest.Start(t)
	for _, tc := range []struct {
		name   string
		direct bool
		want   []string
	}{
		{"dispatcher", true, []string{"DIRECT.GET.EVENTS", "DIRECT.GET.TASKS"}},
		{"client", false, []string{"STREAM.MSG.GET.EVENTS", "STREAM.MSG.GET.TASKS"}},
	} {
		b, nc := bustest.Open(t, servers, bus.Config{Direct: tc.direct})
		asked, err := nc.SubscribeSync(bus.APIPrefix + ">")
		if err != nil {
			t.Fatal(err)
		}
		run := messages.Ref{Tenant: "acme", Run: tc.name}
		if dup, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(run), false); dup || err != nil {
			t.Errorf("%s: got %v, %v", tc.name, dup, err)
		}
		// Its run has begun.
		bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventRunQueued))
		if dup, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(run), false); !dup || err != nil {
			t.Errorf("%s: again: got %v, %v, want a duplicate", tc.name, dup, err)
		}
		var got []string
		for range 2 {
			m, err := asked.NextMsgWithContext(bustest.Context(t))
			if err != nil {
				t.Fatal(err)
			}
			subject, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, bus.APIPrefix), "."+run.EventSubject(messages.EventRunQueued))
			subject, _, _ = strings.Cut(subject, "."+run.DelaySubject())
			got = append(got, subject)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}
