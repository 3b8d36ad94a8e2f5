package retention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
)

// endRun writes a log of a claim and an end and, unless it is to be missed, the event of that end.
func endRun(ctx context.Context, b *bus.Bus, run messages.Ref, missed bool) error {
	var (
		head record.Head
		last uint64
	)
	result := messages.EndedResult(run, nil, messages.StatusCompleted, nil, time.Now(), time.Now())
	for i, r := range []record.Record{&record.Claimed{Claim: "c"}, &record.Finished{Result: result}} {
		head = record.Follow(head, r)
		head.ID, head.Time = strconv.Itoa(i), time.Now()
		e := record.Entry{Head: head, Records: []record.Record{r}}
		var err error
		if last, err = bustest.Logs(b).Append(ctx, run, last, e); err != nil {
			return err
		}
		head = e.At(last).Head
	}
	if missed {
		return nil
	}
	events := record.Events(run, record.Entry{Head: head, Records: []record.Record{&record.Finished{Result: result}}})
	return bustest.Logs(b).Open(run).Finish(ctx, events[len(events)-1])
}

func countRuns(t *testing.T, b *bus.Bus) (n int) {
	t.Helper()
	for range bustest.Values(t, bustest.Logs(b).Runs(bustest.Context(t))) {
		n++
	}
	return n
}

// A run is purged once its end is old enough, and no run that has not ended is.
func TestRetain(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	kept := retention.New(b, bustest.Logs(b))
	ended, goes := messages.Ref{Tenant: "acme", Run: "ended"}, messages.Ref{Tenant: "acme", Run: "goes-on"}
	for _, run := range []messages.Ref{ended, goes} {
		h := record.Follow(record.Head{}, &record.Claimed{Claim: "c"})
		h.ID, h.Time = "01", time.Now()
		if _, err := bustest.Logs(b).Append(bustest.Context(t), run, 0, record.Entry{Head: h, Records: []record.Record{&record.Claimed{Claim: "c"}}}); err != nil {
			t.Fatal(err)
		}
	}
	finished := record.Events(ended, record.Entry{
		Head: record.Head{FirstEvent: 1, Events: 2, Time: time.Now()}, Records: []record.Record{&record.Finished{}},
	})[1]
	if err := bustest.Logs(b).Open(ended).Finish(bustest.Context(t), finished); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
	done := make(chan error, 1)
	go func() { done <- kept.Retain(ctx, time.Millisecond) }()
	for { // every look asks the stream's leader
		_, ok, err := bustest.Logs(b).Last(bustest.Context(t), ended)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, ok, err := bustest.Logs(b).Last(bustest.Context(t), goes); !ok || err != nil {
		t.Errorf("the run that has not ended: %v, %v", ok, err)
	}
	if ok, err := bustest.Logs(b).Ended(bustest.Context(t), ended); !ok || err != nil {
		t.Errorf("its end is kept among the events: %v, %v", ok, err)
	}
}

// Runs are removed many at a time: on a line that keeps what asks about runs until it has been asked about many, none would
// ever be removed one after the other.
func TestRetainKeepsPace(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bus.Config{})
	const runs, together = 100, 32
	var ending errgroup.Group
	ending.SetLimit(together)
	for i := range runs {
		ending.Go(func() error {
			return endRun(bustest.Context(t), b, messages.Ref{Tenant: "acme", Run: fmt.Sprintf("r%d", i)}, false)
		})
	}
	if err := ending.Wait(); err != nil {
		t.Fatal(err)
	}
	opts, err := bus.Options(bus.ConnConfig{})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.NATSURL, append(opts, nats.SetCustomDialer(gathering(together)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	far, _ := bustest.OpenOver(t, nc, bus.Config{})
	kept := retention.New(far, bustest.Logs(far))
	ctx, cancel := context.WithCancel(bustest.Context(t))
	done := make(chan error, 1)
	go func() { done <- kept.Retain(ctx, time.Millisecond) }()
	for all, _ := kept.Purged(); all < runs; all, _ = kept.Purged() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d of %d runs were purged", all, runs)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left := countRuns(t, b); left > 0 {
		t.Errorf("%d logs are left", left)
	}
	if _, missed := kept.Purged(); missed != 0 {
		t.Errorf("%d were found by the second look", missed)
	}
}

// gathering dials lines that keep what asks for the schedules of runs until it asks for those of so many.
type gathering int

// Dial implements nats.CustomDialer.
func (n gathering) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &gatherer{Conn: c, most: int(n), runs: map[string]bool{}}, err
}

type gatherer struct {
	net.Conn

	most int
	// The client writes one at a time.
	runs map[string]bool
	kept []byte
}

var schedulesOf = regexp.MustCompile(`sched\.\*\.acme\.r\d+\.`)

// Write keeps whole operations: the client never writes a part of one this small.
func (c *gatherer) Write(p []byte) (int, error) {
	asked := schedulesOf.FindAllString(string(p), -1)
	for _, run := range asked {
		c.runs[run] = true
	}
	if len(asked) == 0 {
		return c.Conn.Write(p)
	}
	c.kept = append(c.kept, p...)
	if len(c.runs) < c.most {
		return len(p), nil
	}
	_, err := c.Conn.Write(c.kept)
	c.kept = nil
	return len(p), err
}

// What is queued, scheduled or stored for a run besides its log goes with it.
func TestPurgeTakesAll(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	kept := retention.New(b, bustest.Logs(b))
	run, other := messages.Ref{Tenant: "acme", Run: "r1"}, messages.Ref{Tenant: "acme", Run: "r10"}
	for _, r := range []messages.Ref{run, other} {
		if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(r), false); err != nil {
			t.Fatal(err)
		}
		if err := taskqueue.New(b).Timer(bustest.Context(t), r, 7, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		for _, subject := range []string{r.BlobSubject("hash", "0-1"), r.LogEntriesSubject(), bustest.LogAt(b, r)} {
			if _, err := nc.Request(subject, []byte("{}"), 5*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := kept.Purge(bustest.Context(t), run); err != nil {
		t.Fatal(err)
	}
	for r, want := range map[messages.Ref]bool{run: false, other: true} {
		if awaited, err := taskqueue.New(b).Awaited(bustest.Context(t), r); err != nil || awaited != want {
			t.Errorf("%s has queued or scheduled messages: %v, %v", r, awaited, err)
		}
		for stream, filter := range map[string]string{
			bustest.QueueIn(b, r): r.QueuedFilter(), bus.StreamBlobs: "blobs." + r.Tenant + "." + r.Run + ".>",
			bus.StreamLogs: r.LogEntriesSubject(), bustest.LogIn(b, r): r.LogSubject(),
		} {
			if left := Message(t, nc, stream, filter); (left > 0) != want {
				t.Errorf("%s of %s: %d messages left", filter, stream, left)
			}
		}
	}
}

// All that is stored under the name of a run is erased with it, in partitions too that are not its own, and with a tenant what is astray of runs
// that have nothing where it counts.
func TestEraseTakesAllPartitions(t *testing.T) {
	t.Parallel()
	const n = 4
	for name, open := range map[string]func(*testing.T) (*bus.Bus, *nats.Conn){
		"made so": func(t *testing.T) (*bus.Bus, *nats.Conn) {
			t.Helper()
			return bustest.OpenDivided(t, n)
		},
		"moved": func(t *testing.T) (*bus.Bus, *nats.Conn) {
			t.Helper()
			ctx, nc := bustest.Context(t), bustest.Connect(t, bustest.Start(t))
			for _, err := range []error{
				bus.Setup(ctx, nc, bus.Streams{}), bus.Redivide(ctx, nc), bus.Setup(ctx, nc, bus.Streams{Partitions: n}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			return bustest.OpenOver(t, nc, bus.Config{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, nc := open(t)
			ctx, kept := bustest.Context(t), retention.New(b, bustest.Logs(b))
			erased, other, astray := messages.Ref{Tenant: "acme", Run: "r1"}, messages.Ref{Tenant: "acme", Run: "r10"}, messages.Ref{Tenant: "acme", Run: "r2"}
			subjects := func(run messages.Ref) map[string]string {
				return map[string]string{
					bus.StreamRuns: run.LogSubject(), bus.StreamEvents: run.EventSubject(messages.EventTurnEnd),
					bus.StreamTasks: run.TaskSubject(messages.PriorityNormal),
				}
			}
			for _, run := range []messages.Ref{erased, other, astray} {
				for stream, subject := range subjects(run) {
					parts := b.Partitions(stream)
					for i, name := range parts.Names() {
						if run == astray && (stream == bus.StreamTasks || parts.Owns(name, run)) {
							continue
						}
						if _, err := bustest.NewJetStream(t, nc).Publish(ctx, parts.SubjectIn(i, subject), []byte("{}")); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			left := func(run messages.Ref) (left map[string]int) {
				left = map[string]int{}
				for stream, filter := range map[string]string{
					bus.StreamRuns: run.LogSubject(), bus.StreamEvents: run.EventFilter(), bus.StreamTasks: run.QueuedFilter(),
				} {
					for _, name := range b.Partitions(stream).Names() {
						left[stream] += Message(t, nc, name, filter)
					}
				}
				return left
			}
			check := func(when string, run messages.Ref, want map[string]int) {
				t.Helper()
				if got := left(run); !maps.Equal(got, want) {
					t.Errorf("%s there are of %s: %v, want %v", when, run, got, want)
				}
			}
			check("at first", erased, map[string]int{bus.StreamRuns: n, bus.StreamEvents: n, bus.StreamTasks: n})
			if err := kept.Erase(ctx, erased); err != nil {
				t.Fatal(err)
			}
			check("after a run was erased", erased, map[string]int{bus.StreamRuns: 0, bus.StreamEvents: 0, bus.StreamTasks: 0})
			check("after a run was erased", other, map[string]int{bus.StreamRuns: n, bus.StreamEvents: n, bus.StreamTasks: n})
			if known, err := kept.Known(ctx, "acme"); err != nil || slices.Contains(known, astray.Run) || !slices.Contains(known, other.Run) {
				t.Errorf("known are %v, %v", known, err)
			}
			if err := kept.EraseRest(ctx, "acme"); err != nil {
				t.Fatal(err)
			}
			check("after the rest was erased", astray, map[string]int{bus.StreamRuns: 0, bus.StreamEvents: 0, bus.StreamTasks: 0})
			check("after the rest was erased", other, map[string]int{bus.StreamRuns: 1, bus.StreamEvents: 1, bus.StreamTasks: 0})
		})
	}
}

// What a task in the dead letters names stays stored, for it may be sent again.
func TestPurgeKeepsTheFilesOfADeadLetter(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	kept := retention.New(b, bustest.Logs(b))
	run, dead := messages.Ref{Tenant: "acme", Run: "r1"}, messages.Ref{Tenant: "acme", Run: "r2"}
	refs := func(r messages.Ref) string { return "files." + r.Tenant + ".ref." + r.Run + "." }
	for _, subject := range []string{refs(run) + "a", refs(dead) + "a", dead.DeadSubject("writer")} {
		if _, err := nc.Request(subject, []byte("{}"), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for r, want := range map[messages.Ref]int{run: 0, dead: 1} {
		if err := kept.Purge(bustest.Context(t), r); err != nil {
			t.Fatal(err)
		}
		if left := Message(t, nc, bus.StreamFiles, refs(r)+"*"); left != want {
			t.Errorf("%s has %d references, want %d", r, left, want)
		}
	}
}

// Message is how many subjects like this a stream has.
func Message(t *testing.T, nc *nats.Conn, stream, filter string) int {
	t.Helper()
	m, err := nc.Request("$JS.API.STREAM.INFO."+stream, []byte(`{"subjects_filter":"`+filter+`"}`), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		State struct {
			Subjects map[string]int `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(m.Data, &info); err != nil {
		t.Fatal(err)
	}
	return len(info.State.Subjects)
}

// A log whose end expired among the events before its turn is found by its age; one whose end is still to come, or that
// has not ended, stays.
func TestPurgeMissed(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	kept := retention.New(b, bustest.Logs(b))
	if d, err := kept.Overdue(bustest.Context(t)); d != 0 || err != nil {
		t.Errorf("overdue without retention: %v, %v", d, err)
	}
	missed, open := messages.Ref{Tenant: "acme", Run: "missed"}, messages.Ref{Tenant: "acme", Run: "open"}
	if err := endRun(bustest.Context(t), b, missed, true); err != nil {
		t.Fatal(err)
	}
	if _, err := bustest.Logs(b).Append(bustest.Context(t), open, 0, bustest.Step("01", 1)); err != nil {
		t.Fatal(err)
	}
	const soon = -time.Hour // as if an hour had passed
	if n, err := kept.PurgeMissed(bustest.Context(t), soon); n != 0 || err != nil {
		t.Fatalf("without a consumer it is not known what is still to come: %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
	done := make(chan error, 1)
	go func() { done <- kept.Retain(ctx, time.Hour) }()
	for {
		if _, ok, err := b.Partitions(bus.StreamEvents).Lag(bustest.Context(t), "retention"); err != nil {
			t.Fatal(err)
		} else if ok {
			break
		}
	}
	if n, err := kept.PurgeMissed(bustest.Context(t), time.Hour); n != 0 || err != nil {
		t.Errorf("before its time: %d, %v", n, err)
	}
	if n, err := kept.PurgeMissed(bustest.Context(t), soon); n != 1 || err != nil {
		t.Errorf("purged %d, %v; want the one that was missed", n, err)
	}
	if _, ok, err := bustest.Logs(b).Last(bustest.Context(t), missed); ok || err != nil {
		t.Errorf("the log that was missed: %v, %v", ok, err)
	}
	if _, ok, err := bustest.Logs(b).Last(bustest.Context(t), open); !ok || err != nil {
		t.Errorf("the log that has not ended: %v, %v", ok, err)
	}

	// An end that waits for its turn keeps all that ended after it for retention itself.
	for _, id := range []string{"turn", "after"} {
		if err := endRun(bustest.Context(t), b, messages.Ref{Tenant: "acme", Run: id}, id == "after"); err != nil {
			t.Fatal(err)
		}
	}
	for { // the server counts what is stored for a consumer a moment later; ends in question are older than a minute
		if l, _, err := b.Partitions(bus.StreamEvents).Lag(bustest.Context(t), "retention"); err != nil {
			t.Fatal(err)
		} else if l.Messages == 1 {
			break
		}
	}
	if n, err := kept.PurgeMissed(bustest.Context(t), soon); n != 0 || err != nil {
		t.Errorf("while an older end is still to be purged: %d, %v", n, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Overdue tells since when the first end is due that nothing has purged.
func TestOverdue(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	kept := retention.New(b, bustest.Logs(b))
	if err := endRun(bustest.Context(t), b, messages.Ref{Tenant: "acme", Run: "r1"}, false); err != nil {
		t.Fatal(err)
	}
	overdue := func(keep time.Duration) time.Duration {
		t.Helper()
		ctx, cancel := context.WithCancel(bustest.Context(t))
		done := make(chan error, 1)
		go func() { done <- kept.Retain(ctx, keep) }()
		for { // until it has taken the end, or has made the consumer again for another retention
			if l, ok, err := b.Partitions(bus.StreamEvents).Lag(bustest.Context(t), "retention"); err != nil {
				t.Fatal(err)
			} else if ok && l.Messages == 1 {
				break
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		d, err := kept.Overdue(bustest.Context(t))
		if err != nil {
			t.Error(err)
		}
		return d
	}
	if d := overdue(time.Hour); d != 0 {
		t.Errorf("before its time: %v", d)
	}
	if d := overdue(time.Nanosecond); d <= 0 { // the end is held back for longer than that
		t.Error("an end that is due is not overdue")
	}
}
