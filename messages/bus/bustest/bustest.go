// Package bustest has what the tests of the bus and of its roles share: a real NATS server, buses, and small values.
package bustest

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Context is the test's context with a deadline, so that a test that waits in vain says where.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// Start starts a server for a test.
func Start(tb testing.TB) *embedded.Servers {
	tb.Helper()
	return embeddedtest.Start(tb, embedded.Config{NoRedis: true})
}

// Connect connects in-process, and comes back fast after a restart.
func Connect(tb testing.TB, s *embedded.Servers) *nats.Conn {
	tb.Helper()
	opts, err := bus.Options(bus.ConnConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return embeddedtest.Conn(tb, s, append(opts, nats.ReconnectWait(time.Millisecond))...)
}

// Open sets up the streams of a server and opens a bus in-process.
func Open(tb testing.TB, s *embedded.Servers, cfg bus.Config) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	return OpenOver(tb, Connect(tb, s), cfg)
}

// OpenOver is Open over a connection.
func OpenOver(tb testing.TB, nc *nats.Conn, cfg bus.Config) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	if err := bus.Setup(Context(tb), nc, bus.Streams{}); err != nil {
		tb.Fatal(err)
	}
	b, err := bus.Open(Context(tb), nc, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b, nc
}

// OpenNew is Open on a server of its own.
func OpenNew(tb testing.TB) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	return Open(tb, Start(tb), bus.Config{})
}

// OpenDivided is OpenNew with the logs and the events of runs in n streams each.
func OpenDivided(tb testing.TB, n int) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	nc := Connect(tb, Start(tb))
	if has, err := bus.FindDivision(Context(tb), nc); err == nil && has[bus.StreamRuns] > 0 {
		n = has[bus.StreamRuns] // the variable of embeddedtest says how many
	}
	if err := bus.Setup(Context(tb), nc, bus.Streams{Partitions: n}); err != nil {
		tb.Fatal(err)
	}
	return OpenOver(tb, nc, bus.Config{})
}

// LogIn is the stream that has the log of a run.
func LogIn(b *bus.Bus, run messages.Ref) string { return b.Partitions(bus.StreamRuns).NameOf(run) }

// LogAt is where entries of a run are published.
func LogAt(b *bus.Bus, run messages.Ref) string {
	return b.Partitions(bus.StreamRuns).Subject(run, run.LogSubject())
}

// EventsIn is the stream that has the events of a run.
func EventsIn(b *bus.Bus, run messages.Ref) string { return b.Partitions(bus.StreamEvents).NameOf(run) }

// EventStreams are the streams that have events.
func EventStreams(tb testing.TB, nc *nats.Conn) []string {
	tb.Helper()
	d, err := bus.FindDivision(Context(tb), nc)
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for i := range d[bus.StreamEvents] {
		names = append(names, bus.PartitionName(bus.StreamEvents, i, d[bus.StreamEvents]))
	}
	return names
}

// PositionOf is the position after so many messages of the stream of a run, and before the first of the others.
func PositionOf(b *bus.Bus, run messages.Ref, seq uint64) events.Position {
	all := b.Partitions(bus.StreamEvents)
	at := make(events.Position, len(all.Names()))
	at[slices.Index(all.Names(), all.NameOf(run))] = seq
	return at
}

// EventsAt is where a message is published that is stored under the subject of an event; another subject is itself.
func EventsAt(tb testing.TB, nc *nats.Conn, subject string) string {
	tb.Helper()
	d, err := bus.FindDivision(Context(tb), nc)
	if err != nil {
		tb.Fatal(err)
	}
	run, ok := messages.RunOfEvent(subject)
	if !ok {
		return subject
	}
	n := d[bus.StreamEvents]
	return bus.PartitionSubject(subject, bus.PartitionOf(run, n), n)
}

// QueueIn is the stream that has the tasks of a run.
func QueueIn(b *bus.Bus, run messages.Ref) string { return b.Partitions(bus.StreamTasks).NameOf(run) }

// QueueAt is where a message of a run is published that is stored in the queue.
func QueueAt(b *bus.Bus, run messages.Ref, subject string) string {
	return b.Partitions(bus.StreamTasks).Subject(run, subject)
}

// QueueOf matches where tasks of a tenant are published.
func QueueOf(b *bus.Bus, p messages.Priority, tenant string) string {
	if b.Partitions(bus.StreamTasks).Divided() {
		return "part.*.*.lanes." + string(p) + ".*." + tenant + ".*"
	}
	return "tasks." + string(p) + "." + tenant + ".*"
}

// LaneOf is a lane of a tenant where the task of a run is.
func LaneOf(b *bus.Bus, run messages.Ref, p messages.Priority) queue.Lane {
	in, _ := b.Partitions(bus.StreamTasks).Index(QueueIn(b, run))
	l, _ := queue.LaneOf(p, run.Tenant)
	return l.In(in)
}

// Logs returns the logs of a bus.
func Logs(b *bus.Bus) *runlogs.Store { return runlogs.New(b, runlogs.Config{}) }

// NewTask is a small task of a run.
func NewTask(run messages.Ref) *messages.Task {
	t := &messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Say hello.")}
	t.SetDefaults()
	return t
}

// Step is a small entry.
func Step(id string, n int) record.Entry {
	e := record.Entry{Records: []record.Record{&record.StepStarted{Step: n}}}
	e.Head = record.Follow(record.Head{}, e.Records...)
	e.Head.ID, e.Head.Time = id, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return e
}

// Values are those of a sequence without its errors, which fail the test.
func Values[V any](tb testing.TB, seq iter.Seq2[V, error]) iter.Seq[V] {
	tb.Helper()
	return func(yield func(V) bool) {
		for v, err := range seq {
			if err != nil {
				tb.Error(err)
				return
			}
			if !yield(v) {
				return
			}
		}
	}
}

// Run is a run.
func Run() messages.Ref { return messages.Ref{Tenant: "acme", Run: "run-1"} }

// StreamLength is how many messages a stream holds.
func StreamLength(tb testing.TB, nc *nats.Conn, stream string) uint64 {
	tb.Helper()
	division, err := bus.FindDivision(Context(tb), nc)
	if err != nil {
		tb.Fatal(err)
	}
	length, n := uint64(0), max(1, division[stream])
	for i := range n {
		s, err := NewJetStream(tb, nc).Stream(Context(tb), bus.PartitionName(stream, i, n))
		if err != nil {
			tb.Fatal(err)
		}
		length += s.CachedInfo().State.Msgs
	}
	return length
}

// NewJetStream is the library's view of a connection.
func NewJetStream(tb testing.TB, nc *nats.Conn) jetstream.JetStream {
	tb.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return js
}

// Quickly is a bus that soon notices an answer that does not come.
func Quickly() bus.Config {
	return bus.Config{Answer: 250 * time.Millisecond, Budget: 10 * time.Second}
}

// MustAppend appends an entry.
func MustAppend(tb testing.TB, log runlog.Log, run messages.Ref, last uint64, e record.Entry) uint64 {
	tb.Helper()
	seq, err := log.Append(Context(tb), run, last, e)
	if err != nil {
		tb.Fatal(err)
	}
	return seq
}

// Event is the n-th event of a run.
func Event(run messages.Ref, n int, name string) messages.Event {
	num := strconv.Itoa(n)
	return messages.Event{
		SpecVersion: "1.0", ID: run.Run + "." + num, Source: "/tenants/" + run.Tenant, Type: "longshore." + name + ".v1",
		Subject: run.Run, Time: time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC), DataContentType: "application/json",
		Sequence: num, Data: json.RawMessage(`{"step":` + num + `}`),
	}
}

// Events are those of a run with the numbers from to to.
func Events(run messages.Ref, from, to int) []messages.Event {
	var out []messages.Event
	for n := from; n <= to; n++ {
		out = append(out, Event(run, n, messages.EventStepStart))
	}
	return out
}

// PublishRaw stores an event as a foreign client would, without an id.
func PublishRaw(tb testing.TB, nc *nats.Conn, run messages.Ref, es ...messages.Event) {
	tb.Helper()
	for _, e := range es {
		body, err := json.Marshal(e)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := NewJetStream(tb, nc).Publish(Context(tb), EventsAt(tb, nc, run.EventSubject(e.Name())), body); err != nil {
			tb.Fatal(err)
		}
	}
}

// Numbers are those from the first to the last.
func Numbers(from, to uint64) []uint64 {
	var out []uint64
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// LogOf makes a log whose newest head is that of a run of a session.
func LogOf(t *testing.T, b *bus.Bus, run messages.Ref, rs ...record.Record) {
	t.Helper()
	begin := &record.Started{Task: messages.Task{ID: run.Run, Tenant: run.Tenant, Session: "s"}}
	h := record.Follow(record.Head{}, append([]record.Record{begin, &record.Claimed{Claim: "k", Ticket: 1}}, rs...)...)
	h.ID, h.Time = messages.NewID(time.Now()), time.Now().UTC()
	if _, err := Logs(b).Append(Context(t), run, 0, record.Entry{Head: h, Records: append([]record.Record{begin, &record.Claimed{Claim: "k", Ticket: 1}}, rs...)}); err != nil {
		t.Fatal(err)
	}
}

// Pull takes n deliveries, from whatever lanes they are in.
func Pull(tb testing.TB, b *bus.Bus, n int) []*taskqueue.Delivery {
	tb.Helper()
	tasks := Tasks(tb, b)
	var got []*taskqueue.Delivery
	for ctx := Context(tb); len(got) < n; {
		if _, _, err := taskqueue.New(b).RepairLanes(ctx, tasks.AckWait); err != nil {
			tb.Fatal(err)
		}
		lanes, err := b.Lanes(ctx)
		if err != nil {
			tb.Fatalf("got %d deliveries, want %d: %v", len(got), n, err)
		}
		for _, l := range lanes {
			if len(got) < n {
				got = slices.AppendSeq(got, Values(tb, tasks.Take(ctx, l.Lane, n-len(got))))
			}
		}
	}
	return got
}

// Tasks are those that workers share.
func Tasks(tb testing.TB, b *bus.Bus) *taskqueue.Tasks {
	tb.Helper()
	tasks, err := taskqueue.New(b).Tasks(Context(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return tasks
}

// Reopen is another process on the same streams.
func Reopen(tb testing.TB, nc *nats.Conn) *bus.Bus {
	tb.Helper()
	b, err := bus.Open(tb.Context(), nc, bus.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Hand publishes to INTAKE, as what a tenant publishes comes there, and returns the acknowledgement.
func Hand(t *testing.T, nc *nats.Conn, subject, body string, header nats.Header) jetstream.PubAck {
	t.Helper()
	var answer *nats.Msg
	for ctx := Context(t); answer == nil; { // a cluster that has no leader does not answer
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		answer, _ = nc.RequestMsgWithContext(attempt, &nats.Msg{Subject: subject, Data: []byte(body), Header: header})
		cancel()
		if ctx.Err() != nil {
			t.Fatal("no answer to " + subject)
		}
	}
	var ack struct {
		jetstream.PubAck

		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Error != nil || ack.Stream != bus.StreamIntake {
		t.Fatalf("%s: %s", subject, answer.Data)
	}
	return ack.PubAck
}

// StoredNumbers are those of the stored events of some runs.
func StoredNumbers(tb testing.TB, b *bus.Bus, filter string) []uint64 {
	tb.Helper()
	var got []uint64
	for e, err := range events.New(b).Events(Context(tb), filter, time.Time{}) {
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, e.Number())
	}
	return got
}

// AwaitConnected waits until a request is answered.
func AwaitConnected(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	for {
		_, err := taskqueue.New(b).Holds(Context(tb), messages.Ref{Tenant: "acme", Run: "r"}, 1)
		if err == nil {
			return
		}
		if Context(tb).Err() != nil {
			tb.Fatal(err)
		}
	}
}

// NewKey makes a signing key.
func NewKey(tb testing.TB) bus.SigningKey {
	tb.Helper()
	k, err := bus.NewSigningKey()
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// KeysOf are the public keys of signing keys.
func KeysOf(tb testing.TB, of ...bus.SigningKey) bus.ControlKeys {
	tb.Helper()
	list := make([]string, len(of))
	for i, k := range of {
		list[i] = k.Public()
	}
	keys, err := bus.ParseControlKeys(strings.Join(list, ", "))
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

// Watched is what a watch yields until it ends.
func Watched(tb testing.TB, b *bus.Bus, run messages.Ref, patience time.Duration) []messages.Event {
	tb.Helper()
	var got []messages.Event
	for e, err := range events.New(b).WatchPatiently(Context(tb), run, patience) {
		if err != nil {
			tb.Fatalf("after %d events: %v", len(got), err)
		}
		got = append(got, e)
	}
	return got
}

// IDs are those of the entries of a log.
func IDs(tb testing.TB, b *bus.Bus, run messages.Ref) []string {
	tb.Helper()
	var got []string
	for e, err := range Logs(b).Read(Context(tb), run, 0, runlog.Tail) {
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, e.Head.ID)
	}
	return got
}
