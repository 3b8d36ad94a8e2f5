package taskqueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// subjectsOf are those that a stream holds.
func subjectsOf(t *testing.T, b *bus.Bus, stream string) []string {
	t.Helper()
	var all []string
	for subject := range bustest.Values(t, b.Stream(stream).Subjects(bustest.Context(t), ">")) {
		all = append(all, subject)
	}
	return all
}

// All that belongs to a run is in its partition, under the subjects that an undivided queue has, and found there.
func TestQueueInPartitions(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenDivided(t, 4)
	tq, ctx := taskqueue.New(b), bustest.Context(t)
	in := map[string]bool{}
	for i := range 12 {
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
		later := bustest.NewTask(messages.Ref{Tenant: "acme", Run: fmt.Sprintf("later-%d", i)})
		at := time.Now().Add(time.Hour)
		later.NotBefore = &at
		for range 2 { // the second is a duplicate
			for _, task := range []*messages.Task{bustest.NewTask(run), later} {
				if _, err := tq.Submit(ctx, task, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := tq.Wake(ctx, run, 7); err != nil {
			t.Fatal(err)
		}
		if err := tq.Timer(ctx, run, 3, at); err != nil {
			t.Fatal(err)
		}
		stream := bustest.QueueIn(b, run)
		in[stream] = true
		for _, of := range []messages.Ref{run, later.Ref()} {
			own := slices.DeleteFunc(subjectsOf(t, b, bustest.QueueIn(b, of)), func(s string) bool { return !strings.Contains(s+".", "."+of.Tenant+"."+of.Run+".") })
			want := []string{later.Ref().DelaySubject()}
			if of == run {
				want = []string{"lanes.normal.15." + of.Tenant + "." + of.Run, "lanes.wake.15." + of.Tenant + "." + of.Run, run.TimerSubject(3)}
			}
			if diff := cmp.Diff(want, own); diff != "" {
				t.Errorf("of %s in %s: %s", of, bustest.QueueIn(b, of), diff)
			}
			if ok, err := tq.Awaited(ctx, of); !ok || err != nil {
				t.Errorf("%s awaits %v, %v", of, ok, err)
			}
		}
		if q, ok, err := tq.Queued(ctx, run); !ok || err != nil || !strings.HasPrefix(q.Subject, "lanes.normal.") {
			t.Errorf("queued: %+v, %v, %v", q, ok, err)
		}
		if q, ok, err := tq.Delayed(ctx, later.Ref()); !ok || err != nil || messages.AsPublished(q.Subject) != later.Ref().TaskSubject(messages.PriorityNormal) || !q.Later.Equal(at) {
			t.Errorf("delayed: %+v, %v, %v", q, ok, err)
		}
	}
	if len(in) != 4 {
		t.Errorf("runs are in %d partitions", len(in))
	}
	if n, err := tq.TasksOf(ctx, "acme"); n != 12 || err != nil {
		t.Errorf("%d tasks, %v", n, err)
	}
	for delayed, prefix := range map[bool]string{false: "run-", true: "later-"} { // page by page
		seen := map[string]bool{}
		for after := uint64(0); ; {
			var next uint64
			for q := range bustest.Values(t, tq.QueuedTasks(ctx, "acme", delayed, after, time.Now().Add(-time.Hour))) {
				p, run, _ := messages.ParseTaskSubject(q.Subject)
				if next = q.Position(); !p.Wakes() {
					seen[run.Run] = true
					break
				}
			}
			if next == 0 {
				break
			}
			after = next
		}
		if len(seen) != 12 || !seen[prefix+"3"] {
			t.Errorf("pages have %v", seen)
		}
	}
	list, err := tq.LaneList(ctx, control.LanesRequest{})
	if err != nil || len(list.Lanes) != 2 || list.Lanes[0].Queued != 12 || list.Lanes[1].Queued != 12 || list.Lanes[1].Oldest == nil {
		t.Errorf("lanes: %+v, %v", list, err)
	}
	depths, err := tq.Depths(ctx, 10)
	if err != nil || len(depths) != 2 || depths[0].Queued+depths[1].Queued != 24 || depths[0].Oldest.IsZero() {
		t.Errorf("depths: %+v, %v", depths, err)
	}
	for _, d := range bustest.Pull(t, b, 24) {
		_, run, _ := messages.ParseTaskSubject(d.Subject)
		if !d.Belongs(run) || d.Stream != bustest.QueueIn(b, run) {
			t.Errorf("%s came from %s", d.Subject, d.Stream)
		}
		if ok, err := tq.Holds(ctx, run, d.Seq); !ok || err != nil {
			t.Errorf("%d of %s: %v, %v", d.Seq, run, ok, err)
		}
		if err := d.Ack(ctx); err != nil {
			t.Error(err)
		}
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 24 { // delayed tasks and timers
		t.Errorf("%d messages are left", n)
	}
	for i := range 12 {
		if err := tq.CancelTimer(ctx, messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}, 3); err != nil {
			t.Error(err)
		}
		if err := tq.Unqueue(ctx, messages.Ref{Tenant: "acme", Run: fmt.Sprintf("later-%d", i)}); err != nil {
			t.Error(err)
		}
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// Delayed tasks, timers and sweeps come out of schedules in the partition of their run, with a hint that says which it is.
func TestSchedulesFireInTheirPartition(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenDivided(t, 4)
	tq, ctx := taskqueue.New(b), bustest.Context(t)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	hinted, ended, listening := make(chan queue.Lane, 100), make(chan error, 1), make(chan struct{})
	go func() {
		ended <- tq.Hints(stop, func(l queue.Lane, _ uint64) { hinted <- l }, func(queue.Lane) {}, func() { close(listening) })
	}()
	<-listening
	want := map[queue.Lane]int{}
	at := time.Now().Add(time.Second)
	for i := range 8 {
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
		task := bustest.NewTask(run)
		task.NotBefore = &at
		if _, err := tq.Submit(ctx, task, true); err != nil {
			t.Fatal(err)
		}
		if err := tq.Timer(ctx, run, 3, at); err != nil {
			t.Fatal(err)
		}
		partition := bus.PartitionOf(run, 4)
		want[acmeLane().In(partition)]++
		want[queue.WakeLane().In(partition)]++
	}
	if err := taskqueue.NewSweeps(b).AskSweep(ctx); err != nil {
		t.Fatal(err)
	}
	want[queue.WakeLane().In(bus.PartitionOf(messages.Ref{Tenant: "_", Run: "sweep"}, 4))]++
	got := map[queue.Lane]int{}
	for range 17 {
		select {
		case l := <-hinted:
			got[l]++
		case <-ctx.Done():
			t.Fatalf("hints: %v", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, d := range bustest.Pull(t, b, 17) {
		p, run, ok := messages.ParseTaskSubject(d.Subject)
		if !ok || !d.Belongs(run) || d.Scheduler != "" && !messages.MaySchedule(d.Scheduler, p, run) {
			t.Errorf("%s came from %s by %s", d.Subject, d.Stream, d.Scheduler)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a program publishes on the public subject comes into the run's partition by way of INTAKE, once for an id, also if it
// is published again and if the dispatcher that carries it is killed.
func TestPublishedDirectlyToADividedQueue(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenDivided(t, 4)
	ctx := bustest.Context(t)
	publish := func(run messages.Ref, id string) jetstream.PubAck {
		t.Helper()
		return bustest.Hand(t, nc, run.TaskSubject(messages.PriorityHigh), string(bustest.NewTask(run).Encode()), nats.Header{
			"Nats-Msg-Id": {id}, "Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {"lanes.*.*." + run.Tenant + "." + run.Run},
		})
	}
	var runs []messages.Ref
	for i := range 12 {
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
		runs = append(runs, run)
		publish(run, run.MsgID())
		if ack := publish(run, run.MsgID()); !ack.Duplicate {
			t.Errorf("%s was stored twice", run)
		}
	}
	// A dispatcher that is killed after a task is in the queue, and before it is removed from INTAKE.
	js := bustest.NewJetStream(t, nc)
	consumer, err := js.CreateOrUpdateConsumer(ctx, bus.StreamIntake, jetstream.ConsumerConfig{
		Durable: bus.ConsumerIntake, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second, MaxDeliver: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	dead, err := consumer.Fetch(6, jetstream.FetchMaxWait(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for m := range dead.Messages() {
		_, run, _ := messages.ParseTaskSubject(m.Subject())
		subject := b.Partitions(bus.StreamTasks).Subject(run, m.Subject())
		if _, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: m.Data(), Header: nats.Header{"Nats-Msg-Id": {run.MsgID()}}}); err != nil {
			t.Fatal(err)
		}
	}
	takeAllIn(t, b, nc)
	publish(runs[0], runs[0].MsgID()+"-again") // under another id: a worker sees that it is the same task
	takeAllIn(t, b, nc)
	for _, run := range runs { // what was published and what is submitted are one
		if dup, err := taskqueue.New(b).Submit(ctx, bustest.NewTask(run), true); !dup || err != nil {
			t.Errorf("%s submitted: %v, %v", run, dup, err)
		}
	}
	came := map[messages.Ref]int{}
	for _, d := range bustest.Pull(t, b, 13) {
		p, run, _ := messages.ParseTaskSubject(d.Subject)
		if came[run]++; p != messages.PriorityHigh || !d.Belongs(run) {
			t.Errorf("%s came from %s", d.Subject, d.Stream)
		}
	}
	if len(came) != 12 || came[runs[0]] != 2 {
		t.Errorf("came: %v", came)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 13 {
		t.Errorf("%d messages are queued", n)
	}
	for _, subject := range []string{"tasks.wake.acme.r", "tasks.other.acme.r", "tasks.high.acme"} {
		if _, err := js.Publish(ctx, subject, []byte("{}"), jetstream.WithRetryAttempts(0)); err == nil {
			t.Errorf("%s was stored", subject)
		}
	}
}

// What has a wildcard for a token is left as it is by the transform of a partition, and comes to a worker all the same.
func TestHostileSubjectsInADividedQueue(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenDivided(t, 4)
	want := []string{"tasks.high.acme.*", "tasks.low.>", "tasks.low.>.r", "tasks.normal.*.r", "tasks.normal.acme.>"}
	js := bustest.NewJetStream(t, nc)
	for _, subject := range want {
		if subject == "tasks.low.>" { // INTAKE may hand it on from an account that may publish it
			if _, err := js.Publish(bustest.Context(t), b.Partitions(bus.StreamTasks).SubjectIn(1, subject), []byte("{}")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		bustest.Hand(t, nc, subject, "{}", nil)
	}
	takeAllIn(t, b, nc)
	var got []string
	for _, d := range bustest.Pull(t, b, len(want)) {
		got = append(got, messages.AsPublished(d.Subject))
		if _, _, ok := messages.ParseTaskSubject(d.Subject); ok {
			t.Errorf("%s was taken for a run", d.Subject)
		}
		if err := d.Ack(bustest.Context(t)); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// A lane that was emptied, removed by the server and used again is a lane as before, in each partition by itself.
func TestALaneOfAPartitionIsMadeAgain(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenDivided(t, 4)
	ctx, js := bustest.Context(t), bustest.NewJetStream(t, nc)
	run := messages.Ref{Tenant: "acme", Run: "run-1"}
	lane := acmeLane().In(bus.PartitionOf(run, 4))
	for n := range 3 {
		if _, err := taskqueue.New(b).Submit(ctx, bustest.NewTask(run), true); err != nil {
			t.Fatal(err)
		}
		if n == 2 { // under the id of the first there is none within the window
			break
		}
		got := 0
		for d := range bustest.Values(t, bustest.Tasks(t, b).Take(ctx, lane, 5)) {
			if got++; d.Partition() != lane.Partition {
				t.Errorf("partition %d", d.Partition())
			}
			if err := js.DeleteConsumer(ctx, d.Stream, bus.LaneConsumer(lane)); err != nil {
				t.Fatal(err)
			}
			if err := d.Ack(ctx); err != nil { // the lane is gone: the message is removed
				t.Fatal(err)
			}
		}
		if want := 1 - n; got != want {
			t.Errorf("round %d: %d tasks, want %d", n, got, want)
		}
		all, err := b.Lanes(ctx)
		if err != nil || len(all) != 4+n {
			t.Errorf("%d lanes, %v", len(all), err) // that of wake-ups in each, and what the last round made
		}
	}
}
