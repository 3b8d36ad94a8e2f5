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

func TestDividePermissions(t *testing.T) {
	const config = `# RUNS
allow: [ "$JS.API.STREAM.INFO.RUNS", "$JS.API.CONSUMER.CREATE.RUNS.*.runs.>", "runs.*.*.log", "tasks.>", "$KV.RUNS.x" ]`
	want := `# RUNS
allow: [ "$JS.API.STREAM.INFO.RUNS_0", "$JS.API.STREAM.INFO.RUNS_1", "$JS.API.STREAM.INFO.RUNS", "$JS.API.CONSUMER.CREATE.RUNS_0.*.runs.>", "$JS.API.CONSUMER.CREATE.RUNS_1.*.runs.>", "part.2.*.runs.*.*.log", "tasks.>", "$KV.RUNS.x" ]`
	if diff := cmp.Diff(want, bus.DividePermissions(config, 2)); diff != "" {
		t.Error(diff)
	}
	if got := bus.DividePermissions(config, 1); got != config {
		t.Error(got)
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
