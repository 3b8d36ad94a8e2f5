package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	busevents "github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// port is a fleet without workers.
type port struct {
	*testing.T
	nc         *nats.Conn
	bus        *bus.Bus
	controller *runlog.Controller
	sealer     runlogs.Sealer // nil: none
}

func openPort(t *testing.T) *port {
	t.Helper()
	return openPortOf(t, 0)
}

// openPortOf has events in so many streams; 0: in as many as tests have.
func openPortOf(t *testing.T, streams int) *port {
	t.Helper()
	nc := embeddedtest.Conn(t, embeddedtest.Start(t))
	if err := bus.Setup(t.Context(), nc, bus.Streams{Partitions: streams}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
	logs := runlogs.New(b, runlogs.Config{})
	return &port{T: t, nc: nc, bus: b, controller: &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Now: now, NewID: func() string { return messages.NewID(time.Now()) }}}
}

// begin writes the log of a run that was cancelled before it began, and returns its events.
func (p *port) begin(run messages.Ref) (record.Entry, []messages.Event) {
	p.Helper()
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Agent: "default", Input: messages.TextInput("x")}
	task.SetDefaults()
	why := &messages.RunError{Code: messages.CodeCancelled, Message: "no"}
	result := messages.EndedResult(run, &task, messages.StatusCancelled, why, p.controller.Now(), p.controller.Now())
	e, err := p.controller.Begin(p.Context(), run, &record.Started{Task: task, QueuedAt: p.controller.Now()},
		&record.CancelRequested{ID: "c", By: "ann", Reason: "no"}, &record.Finished{Result: result})
	if err != nil {
		p.Fatal(err)
	}
	return e, record.Events(run, e)
}

// publish stores events as a worker would.
func (p *port) publish(run messages.Ref, events []messages.Event) {
	p.Helper()
	last := len(events) - 1
	out := runlogs.New(p.bus, runlogs.Config{}).Open(run)
	if last >= 0 && events[last].Name() == messages.EventRunFinished {
		out.Publish(p.Context(), 1, slices.Values(events[:last]))
		if err := out.Finish(p.Context(), events[last]); err != nil {
			p.Fatal(err)
		}
		return
	}
	out.Publish(p.Context(), 1, slices.Values(events))
	if err := out.Flush(p.Context()); err != nil {
		p.Fatal(err)
	}
}

// raw stores events as a program of someone else would, one by one and without ids.
func (p *port) raw(run messages.Ref, events ...messages.Event) {
	p.Helper()
	for i := range events {
		if _, err := p.nc.Request(p.bus.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(events[i].Name())), record.AppendEvent(nil, &events[i]), patience); err != nil {
			p.Fatal(err)
		}
	}
}

// audit runs an auditor until a folder says what the test waits for.
func (p *port) audit(dir string, key Key, sweep time.Duration, enough func(sum Summary, entries []string) bool) []string {
	p.Helper()
	s, err := Open(StoreConfig{Dir: dir, Key: key})
	if err != nil {
		p.Fatal(err)
	}
	a := New(Config{Store: s, Bus: p.bus, Sealer: p.sealer, Version: "test", Commit: time.Millisecond, Pause: time.Millisecond, Sweep: sweep, Settled: time.Nanosecond})
	ctx, cancel := context.WithCancel(p.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			p.Error(err)
		}
		if err := s.Close(); err != nil {
			p.Error(err)
		}
	}
	var entries []string
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		found, all, sum := audited(p.T, dir, key)
		if len(found) > 0 {
			p.Errorf("%+v", found)
		}
		if entries = all; enough(sum, all) {
			break
		}
		if time.Now().After(deadline) {
			stop()
			p.Fatalf("it does not come: %q", all)
		}
	}
	stop()
	if a.Position() != s.Position().Sum() || a.Uncompared() != 0 {
		p.Errorf("position %d, %d", a.Position(), a.Uncompared())
	}
	return entries
}

// audited reads a folder while an auditor writes it.
func audited(t *testing.T, dir string, key Key) (found []Finding, entries []string, sum Summary) {
	t.Helper()
	sum, err := Verify(t.Context(), VerifyConfig{Dir: dir, Keys: PublicKeys{key.Public()}, Found: func(f Finding) {
		if f.Detail != "there are no heads" { // yet
			found = append(found, f)
		}
	}, Entry: func(tenant string, e *Entry) error {
		text := fmt.Sprintf("%s %s", tenant, e.Kind)
		if e.Kind == KindEvent {
			text += " " + strings.TrimPrefix(e.Subject, "events.")
		}
		if e.Kind == KindFinding {
			text += " " + e.Subject + " " + string(e.Body)
		}
		entries = append(entries, text)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return found, entries, sum
}

func kinds(entries []string, kind Kind) (out []string) {
	for _, e := range entries {
		if strings.Contains(e, " "+string(kind)) {
			out = append(out, e)
		}
	}
	return out
}

// What an honest worker publishes is compared; what others leave out, change or make up is found.
func TestAudit(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	honest, lazy, liar, forger := messages.Ref{Tenant: "acme", Run: "honest"}, messages.Ref{Tenant: "acme", Run: "lazy"},
		messages.Ref{Tenant: "acme", Run: "liar"}, messages.Ref{Tenant: "harbour", Run: "forger"}
	_, events := p.begin(honest)
	p.publish(honest, events)
	_, events = p.begin(lazy)
	p.publish(lazy, slices.Delete(events, 2, 3)) // cancel_requested
	_, events = p.begin(liar)
	events[2].Data = json.RawMessage(`{"by":"bob"}`)
	p.publish(liar, events)
	_, events = p.begin(forger)
	extra := events[2]
	extra.Sequence, extra.ID = "9", "forger.9"
	p.publish(forger, slices.Insert(events, 3, extra))
	if err := busevents.New(p.bus).AnnounceTo(t.Context(), "harbour", "something", struct{}{}); err != nil {
		t.Fatal(err)
	}
	entries := p.audit(dir, key, time.Hour, func(sum Summary, entries []string) bool {
		return len(kinds(entries, KindFinding)) == 3 && len(kinds(entries, KindCompared)) == 1 && sum.Head.Position == 21
	})
	for _, want := range []string{
		"acme event acme.honest.run_finished", "acme event acme.lazy.run_queued", "harbour event harbour._.something",
		`acme finding runs.acme.lazy.log {"outcome":"differs","entries":1,"events":5,"missing":[3]}`,
		`acme finding runs.acme.liar.log {"outcome":"differs","entries":1,"events":5,"altered":[3]}`,
		`harbour finding runs.harbour.forger.log {"outcome":"differs","entries":1,"events":5,"extra":[9]}`,
	} {
		if !slices.Contains(entries, want) {
			t.Errorf("%q is not in %q", want, entries)
		}
	}
	// Started again it neither reads nor compares again, and continues.
	later := messages.Ref{Tenant: "acme", Run: "later"}
	_, events = p.begin(later)
	p.publish(later, events)
	again := p.audit(dir, key, time.Hour, func(sum Summary, entries []string) bool {
		return sum.Head.Position == 26 && len(kinds(entries, KindCompared)) == 2
	})
	if len(again) != len(entries)+6 {
		t.Errorf("%d entries, then %d", len(entries), len(again))
	}
}

// A worker that never says that a run has ended is found too, and one that leaves out events of a run that continues.
func TestSweep(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	silent, active := messages.Ref{Tenant: "acme", Run: "silent"}, messages.Ref{Tenant: "acme", Run: "active"}
	_, events := p.begin(silent)
	p.publish(silent, events[:len(events)-1])
	task := messages.Task{ID: active.Run, Tenant: active.Tenant, Agent: "default", Input: messages.TextInput("x")}
	task.SetDefaults()
	first, err := p.controller.Begin(t.Context(), active, &record.Started{Task: task, QueuedAt: p.controller.Now()}, &record.Claimed{Claim: "c"})
	if err != nil {
		t.Fatal(err)
	}
	h := record.Follow(first.Head, &record.CancelRequested{ID: "c"})
	h.ID, h.Time, h.EventsThrough = "e2", p.controller.Now(), first.Seq // it says that the first two events are stored
	if _, err := runlogs.New(p.bus, runlogs.Config{}).Append(t.Context(), active, first.Seq, record.Entry{Head: h, Records: []record.Record{&record.CancelRequested{ID: "c"}}}); err != nil {
		t.Fatal(err)
	}
	p.publish(active, record.Events(active, first)[:1])
	entries := p.audit(dir, key, 20*time.Millisecond, func(_ Summary, entries []string) bool {
		return len(kinds(entries, KindFinding)) == 2
	})
	for _, want := range []string{
		`acme finding runs.acme.silent.log {"outcome":"differs","entries":1,"events":5,"missing":[5]}`,
		`acme finding runs.acme.active.log {"outcome":"differs","entries":1,"events":2,"missing":[2]}`,
	} {
		if !slices.Contains(entries, want) {
			t.Errorf("%q is not in %q", want, entries)
		}
	}
}

// Events that are stored out of order are those of the log all the same.
func TestAuditOfEventsStoredOutOfOrder(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	backwards, endFirst := messages.Ref{Tenant: "acme", Run: "backwards"}, messages.Ref{Tenant: "acme", Run: "end-first"}
	_, events := p.begin(backwards)
	slices.Reverse(events)
	p.store(events)
	_, events = p.begin(endFirst)
	last := len(events) - 1
	p.store(append([]messages.Event{events[last]}, events[:last]...))
	entries := p.audit(dir, key, time.Hour, func(_ Summary, entries []string) bool {
		return len(kinds(entries, KindFinding))+len(kinds(entries, KindCompared)) == 2
	})
	if found := kinds(entries, KindFinding); len(found) > 0 {
		t.Errorf("found %q", found)
	}
}

// store stores events in the order they are given.
func (p *port) store(events []messages.Event) {
	p.Helper()
	for i := range events {
		p.raw(events[i].Ref(), events[i])
	}
}
