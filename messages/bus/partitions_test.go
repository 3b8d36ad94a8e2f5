package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

func numbered(n int) messages.Ref { return messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", n)} }

// A program without this package, or a mapping of the server, finds the partition of a run as this package does.
func TestPartitionOfARunIsThatOfNATS(t *testing.T) {
	js := bustest.NewJetStream(t, bustest.Connect(t, bustest.Start(t)))
	for _, n := range []int{2, 4, 7, bus.MaxPartitions} {
		s, err := js.CreateStream(bustest.Context(t), jetstream.StreamConfig{
			Name: fmt.Sprintf("S%d", n), Subjects: []string{fmt.Sprintf("from.%d.*.*", n)}, Storage: jetstream.MemoryStorage,
			SubjectTransform: &jetstream.SubjectTransformConfig{
				Source: fmt.Sprintf("from.%d.*.*", n), Destination: fmt.Sprintf("to.{{partition(%d,1,2)}}.{{wildcard(1)}}.{{wildcard(2)}}", n),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			run := numbered(i)
			if _, err := js.Publish(bustest.Context(t), fmt.Sprintf("from.%d.%s.%s", n, run.Tenant, run.Run), nil); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("to.%d.%s.%s", bus.PartitionOf(run, n), run.Tenant, run.Run)
			if m, err := s.GetMsg(bustest.Context(t), uint64(i+1)); err != nil || m.Subject != want {
				t.Fatalf("of %d: %v, %v, want %s", n, m, err, want)
			}
		}
	}
}

// A publisher to a partition of the queue names the lane that the transform of the undivided queue makes.
func TestLaneOfATaskIsThatOfNATS(t *testing.T) {
	_, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	s, err := js.CreateStream(bustest.Context(t), jetstream.StreamConfig{
		Name: "S", Subjects: []string{"other.*.*.*"}, Storage: jetstream.MemoryStorage,
		SubjectTransform: &jetstream.SubjectTransformConfig{
			Source: "other.*.*.*", Destination: "lanes.{{wildcard(1)}}.{{partition(16,2)}}.{{wildcard(2)}}.{{wildcard(3)}}",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		rest := fmt.Sprintf(".normal.tenant-%d.run", i)
		if _, err := js.Publish(bustest.Context(t), "other"+rest, nil); err != nil {
			t.Fatal(err)
		}
		if m, err := s.GetMsg(bustest.Context(t), uint64(i+1)); err != nil || m.Subject != bus.InLane("tasks"+rest) {
			t.Fatalf("%v, %v, want %s", m, err, bus.InLane("tasks"+rest))
		}
	}
	for _, as := range []string{"sched.task.acme.r.start", "tasks.normal.acme", "lanes.normal.1.acme.r"} {
		if got := bus.InLane(as); got != as {
			t.Errorf("%s became %s", as, got)
		}
	}
}

// The logs of runs are spread over the streams, under the subjects that they always had, and who subscribes to such a subject gets each
// entry once.
func TestLogsInPartitions(t *testing.T) {
	b, nc := bustest.OpenDivided(t, 4)
	all, err := nc.SubscribeSync("runs.>")
	if err != nil {
		t.Fatal(err)
	}
	logs, want := bustest.Logs(b), map[string]bool{}
	in := map[string]int{}
	for i := range 40 {
		run := numbered(i)
		seq := bustest.MustAppend(t, logs, run, 0, bustest.Step("01", 1))
		bustest.MustAppend(t, logs, run, seq, bustest.Step("02", 2))
		want[run.String()] = true
		in[bustest.LogIn(b, run)]++
		if _, err := logs.Append(bustest.Context(t), run, seq, bustest.Step("03", 3)); !errors.Is(err, runlog.ErrConflict) {
			t.Errorf("an append in the wrong place: %v", err)
		}
	}
	seen := map[string]int{}
	for range 80 {
		m, err := all.NextMsg(30 * time.Second)
		if err != nil {
			t.Fatalf("after %d entries: %v", len(seen), err)
		}
		seen[m.Subject]++
	}
	if m, err := all.NextMsg(50 * time.Millisecond); err == nil {
		t.Errorf("more than each entry came: %s", m.Subject)
	}
	for i := range 40 {
		if n := seen[numbered(i).LogSubject()]; n != 2 {
			t.Errorf("%d entries of %s came", n, numbered(i))
		}
	}
	for _, name := range []string{"RUNS_0", "RUNS_1", "RUNS_2", "RUNS_3"} {
		if n := bustest.StreamLength(t, nc, name); in[name] < 3 || n != uint64(2*in[name]) {
			t.Errorf("%s has %d entries of %d runs", name, n, in[name])
		}
	}
	// What stands elsewhere than where it belongs counts for nothing.
	stray := messages.Ref{Tenant: "acme", Run: "stray"}
	wrong := bus.PartitionSubject(stray.LogSubject(), (bus.PartitionOf(stray, 4)+1)%4, 4)
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), wrong, []byte("[]")); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for run := range bustest.Values(t, logs.Runs(bustest.Context(t))) {
		got[run.String()] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok, err := logs.Last(bustest.Context(t), stray); ok || err != nil {
		t.Errorf("a log in the wrong stream: %v, %v", ok, err)
	}
}

func TestSetupOfPartitions(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	count := func(want int) {
		t.Helper()
		if d, err := bus.FindDivision(bustest.Context(t), nc); d[bus.StreamRuns] != want || err != nil {
			t.Errorf("%v, %v, want %d", d, err, want)
		}
	}
	count(0)
	for _, n := range []int{-1, bus.MaxPartitions + 1} {
		if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: n}); err == nil {
			t.Errorf("%d were made", n)
		}
	}
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	count(3)
	for _, n := range []int{0, 3} { // a dispatcher need not know
		if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: n}); err != nil {
			t.Errorf("again, with %d: %v", n, err)
		}
	}
	var other *bus.PartitionsError
	for _, n := range []int{1, 2, 4} {
		if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: n}); !errors.As(err, &other) || other.Has != 3 || other.Want != n {
			t.Errorf("with %d: %v", n, err)
		}
	}
}

// One kind of stream can be divided alone: each run works in the whole ones and in its part, a dispatcher that starts keeps it so, and what
// was named is never left whole without a word.
func TestDivideOne(t *testing.T) {
	for _, divided := range []string{bus.StreamRuns, bus.StreamEvents, bus.StreamTasks} {
		nc := bustest.Connect(t, bustest.Start(t))
		want := bus.Streams{Partitions: 3, Divide: []string{divided}}
		if err := bus.Setup(bustest.Context(t), nc, want); err != nil {
			t.Fatal(err)
		}
		b, _ := bustest.OpenOver(t, nc, bus.Config{})
		for _, stream := range []string{bus.StreamRuns, bus.StreamEvents, bus.StreamTasks} {
			n := 1
			if stream == divided {
				n = 3
			}
			if got := b.Partitions(stream).Number(); got != n {
				t.Errorf("%s divided: %s is in %d streams, want %d", divided, stream, got, n)
			}
		}
		for i := range 6 {
			run := numbered(i)
			if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(run), false); err != nil {
				t.Fatal(err)
			}
			bustest.MustAppend(t, bustest.Logs(b), run, 0, bustest.Step("01", 1))
			if err := bustest.Logs(b).Open(run).Finish(bustest.Context(t), bustest.Event(run, 1, messages.EventRunFinished)); err != nil {
				t.Fatal(err)
			}
			if ids, seen := bustest.IDs(t, b, run), bustest.Watched(t, b, run, time.Minute); len(ids) != 1 || len(seen) != 1 {
				t.Errorf("%s divided: %s has the entries %v and the events %v", divided, run.Run, ids, seen)
			}
		}
		for _, d := range bustest.Pull(t, b, 6) {
			if err := d.Ack(bustest.Context(t)); err != nil {
				t.Error(err)
			}
		}
		if n := bustest.StreamLength(t, nc, bus.StreamTasks); n != 0 {
			t.Errorf("%s divided: %d tasks are left", divided, n)
		}
		var other *bus.PartitionsError
		for _, s := range []bus.Streams{{Partitions: 2, Divide: []string{divided}}, {Partitions: 3, Divide: []string{bus.StreamEvents, bus.StreamTasks, bus.StreamRuns}}} {
			if err := bus.Setup(bustest.Context(t), nc, s); !errors.As(err, &other) {
				t.Errorf("%s divided: set up as %+v: %v", divided, s, err)
			}
		}
	}
	nc := bustest.Connect(t, bustest.Start(t))
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: 2, Divide: []string{bus.StreamBlobs}}); err == nil || !strings.Contains(err.Error(), "BLOBS cannot be divided") {
		t.Errorf("got %v", err)
	}
}

// What is missing is made again, also after a Setup that was killed; meanwhile no process takes the rest for the whole.
func TestPartitionsThatAreNotAllThere(t *testing.T) {
	_, nc := bustest.OpenDivided(t, 4)
	js := bustest.NewJetStream(t, nc)
	for _, name := range []string{"RUNS_2", "RUNS_0"} {
		if err := js.DeleteStream(bustest.Context(t), name); err != nil {
			t.Fatal(err)
		}
		if _, err := bus.Open(bustest.Context(t), nc, bus.Config{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("opened: %v", err)
		}
		if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err != nil {
			t.Fatal(err)
		}
		if names := bustest.Reopen(t, nc).Partitions(bus.StreamRuns).Names(); len(names) != 4 {
			t.Errorf("got %v", names)
		}
	}
}

func TestPartitionsThatOthersMade(t *testing.T) {
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"no number": func(c *jetstream.StreamConfig) { c.Metadata = nil },
		"one":       func(c *jetstream.StreamConfig) { c.Metadata["longshore.partitions"] = "1" },
		"too many":  func(c *jetstream.StreamConfig) { c.Metadata["longshore.partitions"] = "1000000" },
		"a word":    func(c *jetstream.StreamConfig) { c.Metadata["longshore.partitions"] = "four" },
		"other subject": func(c *jetstream.StreamConfig) {
			c.SubjectTransform.Destination = "x.{{wildcard(1)}}.{{wildcard(2)}}.log"
		},
		"not told": func(c *jetstream.StreamConfig) { c.RePublish = nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, nc := bustest.OpenDivided(t, 4)
			js := bustest.NewJetStream(t, nc)
			s, err := js.Stream(bustest.Context(t), "RUNS_0")
			if err != nil {
				t.Fatal(err)
			}
			c := s.CachedInfo().Config
			change(&c)
			if _, err := js.UpdateStream(bustest.Context(t), c); err != nil {
				t.Fatal(err)
			}
			if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err == nil || !strings.Contains(err.Error(), "RUNS_0") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The number changes only while no log is stored, and an attempt leaves a fleet with logs as it was.
func TestRedivide(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	setup := func(n int) *bus.Bus {
		t.Helper()
		if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: n}); err != nil {
			t.Fatal(err)
		}
		b := bustest.Reopen(t, nc)
		if got := len(b.Partitions(bus.StreamRuns).Names()); got != n {
			t.Fatalf("%d partitions, want %d", got, n)
		}
		return b
	}
	if err := bus.Redivide(bustest.Context(t), nc); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 4, 2, 1} {
		b := setup(n)
		run := numbered(n)
		last := bustest.MustAppend(t, bustest.Logs(b), run, 0, bustest.Step("01", 1))
		var stored *bus.StoredError
		if err := bus.Redivide(bustest.Context(t), nc); !errors.As(err, &stored) || stored.Messages != 1 || stored.Stream != bustest.LogIn(b, run) {
			t.Fatalf("with an entry: %v", err)
		}
		setup(n)
		bustest.MustAppend(t, bustest.Logs(b), run, last, bustest.Step("02", 2))
		if err := b.Stream(bustest.LogIn(b, run)).Clear(bustest.Context(t), run.LogSubject()); err != nil {
			t.Fatal(err)
		}
		if err := bus.Redivide(bustest.Context(t), nc); err != nil {
			t.Fatal(err)
		}
		stale := bustest.Logs(b) // of a process that was not stopped
		ctx, cancel := context.WithTimeout(bustest.Context(t), time.Second)
		if _, err := stale.Append(ctx, run, 0, bustest.Step("03", 3)); err == nil {
			t.Error("an append to a removed stream succeeded")
		}
		cancel()
	}
}

// What a dispatcher sets again when it starts does not keep a queue from being divided, and all else does. Where what is published directly is stored
// follows the division.
func TestRedivideTheQueue(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	run := numbered(3)
	for _, n := range []int{4, 1, 3} {
		if err := bus.Redivide(bustest.Context(t), nc); err != nil { // of what the last one left
			t.Fatal(err)
		}
		if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: n}); err != nil {
			t.Fatal(err)
		}
		b := bustest.Reopen(t, nc)
		if got := b.Partitions(bus.StreamTasks).Number(); got != n {
			t.Fatalf("%d partitions, want %d", got, n)
		}
		ack, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), run.TaskSubject(messages.PriorityLow), []byte("{}"))
		if want := map[bool]string{true: bus.StreamIntake, false: bus.StreamTasks}[n > 1]; err != nil || ack.Stream != want {
			t.Fatalf("with %d: %+v, %v", n, ack, err)
		}
		if err := b.Stream(ack.Stream).Remove(bustest.Context(t), ack.Sequence); err != nil {
			t.Fatal(err)
		}
		tq := taskqueue.New(b)
		at := time.Now().Add(time.Hour)
		for name, put := range map[string]func() error{
			"a wake-up": func() error { return tq.Wake(bustest.Context(t), run, 7) },
			"a timer":   func() error { return tq.Timer(bustest.Context(t), run, 7, at) },
			"an occurrence that is due": func() error {
				_, err := nc.Request(b.Partitions(bus.StreamTasks).SubjectIn(0, "sched.due.acme.s"), []byte("{}"), 10*time.Second)
				return err
			},
		} {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			var stored *bus.StoredError
			if err := bus.Redivide(bustest.Context(t), nc); !errors.As(err, &stored) || stored.Messages != 1 {
				t.Fatalf("with %s: %v", name, err)
			}
			for _, stream := range b.Partitions(bus.StreamTasks).Names() {
				if err := b.Stream(stream).Clear(bustest.Context(t), ">"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := taskqueue.NewSweeps(b).ScheduleSweep(bustest.Context(t), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := taskqueue.NewSweeps(b).ScheduleLanes(bustest.Context(t), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := schedules.New(b).Arm(bustest.Context(t), control.Due{ScheduleRef: control.ScheduleRef{Tenant: "acme", Name: "s"}, At: at, Timing: "t"}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A fleet whose queue was made whole keeps it so, also beside logs that are divided.
func TestAWholeQueueStaysWhole(t *testing.T) {
	b, nc := bustest.OpenDivided(t, 4)
	js := bustest.NewJetStream(t, nc)
	for _, name := range b.Partitions(bus.StreamTasks).Names() {
		if err := js.DeleteStream(bustest.Context(t), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := js.DeleteStream(bustest.Context(t), bus.StreamIntake); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(bustest.Context(t), wholeQueue()); err != nil {
		t.Fatal(err)
	}
	b, _ = bustest.OpenOver(t, nc, bus.Config{})
	if n, m := b.Partitions(bus.StreamTasks).Number(), b.Partitions(bus.StreamRuns).Number(); n != 1 || m != 4 {
		t.Errorf("%d partitions of the queue, %d of logs", n, m)
	}
	if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(numbered(1)), false); err != nil {
		t.Error(err)
	}
	if d := bustest.Pull(t, b, 1)[0]; d.Stream != bus.StreamTasks {
		t.Errorf("it came from %s", d.Stream)
	}
}

// wholeQueue is TASKS as versions made it that could not divide it.
func wholeQueue() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "TASKS", Description: "Tasks, wake-ups and schedules.", Subjects: []string{"tasks.>", "sched.>"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		Replicas: 1, Duplicates: 2 * time.Minute, AllowDirect: true, MaxConsumers: bus.MaxLanes, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1,
		SubjectTransform: &jetstream.SubjectTransformConfig{
			Source: "tasks.*.*.*", Destination: "lanes.{{wildcard(1)}}.{{partition(16,2)}}.{{wildcard(2)}}.{{wildcard(3)}}",
		},
		AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true,
		RePublish: &jetstream.RePublish{Source: "lanes.*.*.*.*", Destination: "queued.{{wildcard(1)}}.{{wildcard(3)}}", HeadersOnly: true},
	}
}

// With one partition not a byte of the queue's configuration differs from that of before.
func TestAWholeQueueIsAsBefore(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t))
	if err := bus.Redivide(bustest.Context(t), nc); err != nil { // the variable of embeddedtest may have divided them
		t.Fatal(err)
	}
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	js := bustest.NewJetStream(t, nc)
	s, err := js.Stream(bustest.Context(t), "TASKS")
	if err != nil {
		t.Fatal(err)
	}
	want := wholeQueue()
	want.Name = "LIKE"
	want.Subjects = []string{"like.>"}
	has := s.CachedInfo().Config
	has.Name, has.Subjects = want.Name, want.Subjects
	like, err := js.CreateStream(bustest.Context(t), want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(like.CachedInfo().Config, has); diff != "" {
		t.Error(diff)
	}
	intake, err := js.Stream(bustest.Context(t), bus.StreamIntake)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"intake.high.*.*", "intake.normal.*.*", "intake.low.*.*"}, intake.CachedInfo().Config.Subjects); diff != "" {
		t.Error(diff)
	}
}

func TestDividePermissions(t *testing.T) {
	const config = `# RUNS
allow: [ "$JS.API.STREAM.INFO.RUNS", "$JS.API.CONSUMER.CREATE.RUNS.*.runs.>", "runs.*.*.log", "tasks.>", "tasks.wake.*.*", "tasks.low.*.*", "sched.timer.>", "$JS.ACK.TASKS.*.>", "tasks.low.acme.*", "$KV.RUNS.x" ]`
	want := `# RUNS
allow: [ "$JS.API.STREAM.INFO.RUNS_0", "$JS.API.STREAM.INFO.RUNS_1", "$JS.API.STREAM.INFO.RUNS", "$JS.API.CONSUMER.CREATE.RUNS_0.*.runs.>", "$JS.API.CONSUMER.CREATE.RUNS_1.*.runs.>", "part.2.*.runs.*.*.log", "part.2.*.lanes.>", "part.2.*.tasks.>", "part.2.*.lanes.wake.*.*.*", "part.2.*.lanes.low.*.*.*", "tasks.low.*.*", "part.2.*.sched.timer.>", "$JS.ACK.TASKS_0.*.>", "$JS.ACK.TASKS_1.*.>", "tasks.low.acme.*", "$KV.RUNS.x" ]`
	if diff := cmp.Diff(want, bus.DividePermissions(config, bus.Streams{Partitions: 2})); diff != "" {
		t.Error(diff)
	}
	for _, as := range []bus.Streams{{}, {Partitions: 1}, {Partitions: 2, Divide: []string{bus.StreamEvents}}} {
		if got := bus.DividePermissions(config, as); got != config {
			t.Errorf("%+v: %s", as, got)
		}
	}
	queue := strings.NewReplacer(
		`"tasks.>"`, `"part.2.*.lanes.>", "part.2.*.tasks.>"`, `"tasks.wake.*.*"`, `"part.2.*.lanes.wake.*.*.*"`, `"sched.timer.>"`, `"part.2.*.sched.timer.>"`,
		`"tasks.low.*.*"`, `"part.2.*.lanes.low.*.*.*", "tasks.low.*.*"`, `"$JS.ACK.TASKS.*.>"`, `"$JS.ACK.TASKS_0.*.>", "$JS.ACK.TASKS_1.*.>"`,
	).Replace(config)
	if diff := cmp.Diff(queue, bus.DividePermissions(config, bus.Streams{Partitions: 2, Divide: []string{bus.StreamTasks}})); diff != "" {
		t.Error(diff)
	}
}

// A log that was begun is never looked for in another stream.
func TestAFleetIsNotDividedLater(t *testing.T) {
	b, nc := bustest.Open(t, bustest.Start(t), bus.Config{})
	n := len(b.Partitions(bus.StreamRuns).Names())
	bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: n + 1}); err == nil || !strings.Contains(err.Error(), "longshore init") {
		t.Errorf("got %v", err)
	}
	if _, ok, err := bustest.Logs(bustest.Reopen(t, nc)).Last(bustest.Context(t), bustest.Run()); !ok || err != nil {
		t.Errorf("the log: %v, %v", ok, err)
	}
}
