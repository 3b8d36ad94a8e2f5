package runlogs_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/runlog/runlogtest"
)

func TestSignedBusIsALog(t *testing.T) {
	k := bustest.NewKey(t)
	b, _ := bustest.Open(t, bustest.Start(t), bus.Config{Signer: k, Keys: bustest.KeysOf(t, bustest.NewKey(t), k)})
	logs := runlogs.New(b, runlogs.Config{Sealer: newSealer(t, b)})
	runlogtest.Run(t, func(*testing.T) runlog.Log { return logs })
}

// court is a run that waits for an approval, the bus of its dispatcher, that of a worker who was taken over, and one
// that verifies.
type court struct {
	t      *testing.T
	bus    *bus.Bus
	run    messages.Ref
	honest *runlog.Controller
	queue  *taskqueue.Queue
	forger *runlogs.Store
	reader *runlogs.Store
	nc     *nats.Conn
	park   uint64
}

const call = "c1"

func newCourt(t *testing.T, signer bus.SigningKey, keys bus.ControlKeys) *court {
	t.Helper()
	c := &court{t: t, run: messages.Ref{Tenant: "t", Run: "r"}}
	c.bus, c.nc = bustest.OpenNew(t)
	c.forger, c.queue = bustest.Logs(c.bus), taskqueue.New(c.bus)
	open := func(cfg bus.Config) *runlogs.Store {
		b, err := bus.Open(bustest.Context(t), c.nc, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return bustest.Logs(b)
	}
	c.reader = open(bus.Config{Keys: keys})
	c.honest = c.controller(open(bus.Config{Signer: signer, Keys: keys}))
	c.append(c.forger, &record.Started{Task: *bustest.NewTask(c.run)}, &record.Claimed{Claim: "a", Worker: "w", Ticket: 1}, &record.StepStarted{Step: 1})
	c.park = c.append(c.forger, &record.Parked{Reason: queue.ParkApproval, Call: call, Approval: &messages.Approval{
		Agent: "a", Step: 1, Tool: "x", Arguments: "{}", Hash: messages.HashArguments("{}"),
	}})
	return c
}

func (c *court) controller(logs *runlogs.Store) *runlog.Controller {
	return &runlog.Controller{
		Log: logs, Queue: c.queue, Events: logs, Now: func() time.Time { return time.Now().UTC() }, NewID: func() string { return messages.NewID(time.Now()) },
	}
}

// append appends as a worker does who does not verify.
func (c *court) append(logs *runlogs.Store, rs ...record.Record) uint64 {
	c.t.Helper()
	last, _, err := logs.Last(bustest.Context(c.t), c.run)
	if err != nil {
		c.t.Fatal(err)
	}
	e := record.Entry{Head: record.Follow(last.Head, rs...), Records: rs}
	e.Head.ID, e.Head.Time = messages.NewID(time.Now()), time.Now().UTC()
	seq, err := logs.Append(bustest.Context(c.t), c.run, last.Seq, e)
	if err != nil {
		c.t.Fatal(err)
	}
	return seq
}

func (c *court) decided() *record.Decided {
	return &record.Decided{ID: messages.NewID(time.Now()), Park: c.park, Step: 1, Call: call, Hash: messages.HashArguments("{}"), By: "ann"}
}

// last is the newest head as those see it who verify. Reading from anywhere shows the same.
func (c *court) last() record.Head {
	c.t.Helper()
	e, ok, err := c.reader.Last(bustest.Context(c.t), c.run)
	if err != nil || !ok {
		c.t.Fatal(ok, err)
	}
	for after := range e.Seq {
		for how, read := range map[string]func() (record.Entry, int){
			"Read":  func() (record.Entry, int) { return c.tail(after, true) },
			"Heads": func() (record.Entry, int) { return c.tail(after, false) },
		} {
			if got, n := read(); n > 0 {
				if diff := cmp.Diff(e.Head, got.Head); diff != "" {
					c.t.Errorf("%s after %d: %s", how, after, diff)
				}
			}
		}
	}
	return e.Head
}

func (c *court) tail(after uint64, whole bool) (last record.Entry, n int) {
	c.t.Helper()
	read := c.reader.Heads
	if whole {
		read = c.reader.Read
	}
	for e, err := range read(bustest.Context(c.t), c.run, after, runlog.Tail) {
		if err != nil {
			c.t.Fatal(err)
		}
		if whole && !e.Head.Matches(e.Records) {
			c.t.Errorf("entry %d: head and records differ: %v", e.Seq, e.Head)
		}
		last = e
		n++
	}
	return last, n
}

// What was forged changes nothing, and what is decided after it counts.
func TestForgedDecisions(t *testing.T) {
	k := bustest.NewKey(t)
	for name, forge := range map[string]func(*court) []record.Record{
		"an approval": func(c *court) []record.Record { return []record.Record{c.decided()} },
		"an answer": func(c *court) []record.Record {
			return []record.Record{&record.Answered{ID: "x", Park: c.park, Content: messages.TextContent("yes")}}
		},
		"a cancel":         func(*court) []record.Record { return []record.Record{&record.CancelRequested{ID: "x"}} },
		"one among others": func(c *court) []record.Record { return []record.Record{c.decided(), &record.Lost{Ticket: 1}} },
		"one before an end": func(*court) []record.Record {
			return []record.Record{&record.CancelRequested{}, &record.Finished{}}
		},
		"one that is a blob": func(c *court) []record.Record {
			d := c.decided()
			d.Reason = strings.Repeat("x", 100<<10)
			return []record.Record{d}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t, k, bustest.KeysOf(t, bustest.NewKey(t), k))
			before := c.last()
			c.append(c.forger, forge(c)...)
			c.append(c.forger, forge(c)...) // twice in a row
			after := c.last()
			if after.Phase != record.PhaseParked || after.ParkSeq != c.park || after.Cancel || after.Waits != before.Waits {
				t.Errorf("after it: %+v", after)
			}
			if !after.Has(record.KindUnverified) || c.reader.Ignored() != 2 {
				t.Errorf("it is not told: %v, %d", after.Kinds, c.reader.Ignored())
			}
			if by, _, err := c.controller(c.reader).Answer(bustest.Context(t), c.run, c.park); by != nil || err != nil {
				t.Errorf("answered by %v, %v", by, err)
			}

			right := c.decided()
			head, err := c.honest.Control(bustest.Context(t), c.run, right)
			if err != nil || head.Phase != record.PhaseReady {
				t.Fatalf("the right one: %+v, %v", head, err)
			}
			if diff := cmp.Diff(head, c.last()); diff != "" {
				t.Error(diff)
			}
			by, _, err := c.controller(c.reader).Answer(bustest.Context(t), c.run, c.park)
			if d, ok := by.(*record.Decided); !ok || d.ID != right.ID || err != nil {
				t.Errorf("answered by %v, %v", by, err)
			}
			if _, err := c.honest.Control(bustest.Context(t), c.run, &record.CancelRequested{ID: "y"}); err != nil || !c.last().Cancel {
				t.Errorf("cancel: %v, %t", err, c.last().Cancel)
			}
			var n uint64
			for e, err := range c.reader.Read(bustest.Context(t), c.run, 0, runlog.Tail) {
				if err != nil {
					t.Fatal(err)
				}
				for _, event := range record.Events(c.run, e) {
					if n++; event.Number() != n {
						t.Errorf("event %s has number %d, want %d", event.Name(), event.Number(), n)
					}
				}
			}
		})
	}
}

// A signature is one of an entry at its place, and of nothing else.
func TestSignaturesAreBound(t *testing.T) {
	k := bustest.NewKey(t)
	signedEntry := func(t *testing.T, c *court) *nats.Msg {
		t.Helper()
		if _, err := c.honest.Control(bustest.Context(t), c.run, c.decided()); err != nil {
			t.Fatal(err)
		}
		js, err := c.nc.JetStream()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := js.GetLastMsg(bustest.LogIn(c.bus, c.run), c.run.LogSubject())
		if err != nil {
			t.Fatal(err)
		}
		return &nats.Msg{Subject: bustest.LogAt(c.bus, c.run), Header: raw.Header, Data: raw.Data}
	}
	for name, tc := range map[string]struct {
		change func(c *court, m *nats.Msg)
		counts bool
	}{
		"as it is": {func(*court, *nats.Msg) {}, true},
		"without a signature": {func(_ *court, m *nats.Msg) {
			m.Header.Del("Longshore-Signature")
		}, false},
		"an empty signature": {func(_ *court, m *nats.Msg) { m.Header.Set("Longshore-Signature", "") }, false},
		"two signatures":     {func(_ *court, m *nats.Msg) { m.Header.Add("Longshore-Signature", m.Header.Get("Longshore-Signature")) }, false},
		"another decision": {func(_ *court, m *nats.Msg) {
			m.Data = []byte(strings.Replace(string(m.Data), `"by":"ann"`, `"by":"bob"`, 1))
		}, false},
		"another head": {func(_ *court, m *nats.Msg) {
			m.Header.Set("Longshore-Head", strings.Replace(m.Header.Get("Longshore-Head"), `"phase":"ready"`, `"phase": "ready"`, 1))
		}, false},
		"another place": {func(c *court, m *nats.Msg) {
			c.append(c.forger, &record.Lost{Ticket: 99})
			last, _, err := c.forger.Last(bustest.Context(c.t), c.run)
			if err != nil {
				c.t.Fatal(err)
			}
			m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(last.Seq, 10))
		}, false},
		"a place of another subject": {func(c *court, m *nats.Msg) {
			m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", c.run.LogSubject())
		}, false},
		"no place": {func(_ *court, m *nats.Msg) { m.Header.Del("Nats-Expected-Last-Subject-Sequence") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			// The entry is made in one court and brought into another, where the same run stands at the same place.
			m := signedEntry(t, newCourt(t, k, bustest.KeysOf(t, k)))
			c := newCourt(t, k, bustest.KeysOf(t, k))
			tc.change(c, m)
			if _, err := c.nc.RequestMsg(m, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			last, _, err := c.reader.Last(bustest.Context(t), c.run)
			if err != nil {
				t.Fatal(err)
			}
			if got := last.Head.Phase == record.PhaseReady; got != tc.counts || got == last.Head.Has(record.KindUnverified) {
				t.Errorf("phase %s, kinds %v; want it to count: %t", last.Head.Phase, last.Head.Kinds, tc.counts)
			}
		})
	}
	t.Run("another run", func(t *testing.T) {
		m := signedEntry(t, newCourt(t, k, bustest.KeysOf(t, k)))
		c := newCourt(t, k, bustest.KeysOf(t, k))
		other := messages.Ref{Tenant: "t", Run: "other"}
		c.run = other
		m.Subject = bustest.LogAt(c.bus, other)
		m.Header.Del("Nats-Expected-Last-Subject-Sequence")
		if _, err := c.nc.RequestMsg(m, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		last, _, err := c.reader.Last(bustest.Context(t), other)
		if err != nil || last.Head.Phase == record.PhaseReady {
			t.Errorf("phase %s, %v", last.Head.Phase, err)
		}
	})
}

// Keys are changed one after the other, and decisions count all the while; those of a key that is gone do not.
func TestKeysRotate(t *testing.T) {
	old, fresh := bustest.NewKey(t), bustest.NewKey(t)
	c := newCourt(t, old, bustest.KeysOf(t, old))
	if _, err := c.honest.Control(bustest.Context(t), c.run, c.decided()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		keys bus.ControlKeys
		want record.Phase
	}{
		"the old key":  {bustest.KeysOf(t, old), record.PhaseReady},
		"both":         {bustest.KeysOf(t, fresh, old), record.PhaseReady},
		"the new one":  {bustest.KeysOf(t, fresh), record.PhaseParked},
		"none at all":  {bus.ControlKeys{}, record.PhaseReady},
		"a third key":  {bustest.KeysOf(t, bustest.NewKey(t)), record.PhaseParked},
		"the old, new": {bustest.KeysOf(t, old, fresh), record.PhaseReady},
	} {
		b, err := bus.Open(bustest.Context(t), c.nc, bus.Config{Keys: tc.keys})
		if err != nil {
			t.Fatal(err)
		}
		last, _, err := bustest.Logs(b).Last(bustest.Context(t), c.run)
		if err != nil || last.Head.Phase != tc.want {
			t.Errorf("%s: %s, %v; want %s", name, last.Head.Phase, err, tc.want)
		}
	}
}

// A run that was cancelled before it started has ended, with or without a signature.
func TestForgedFirstEntry(t *testing.T) {
	k := bustest.NewKey(t)
	c := newCourt(t, k, bustest.KeysOf(t, k))
	c.run = messages.Ref{Tenant: "t", Run: "first"}
	c.append(c.forger, &record.Started{Task: *bustest.NewTask(c.run)}, &record.CancelRequested{By: "ann"}, &record.Finished{})
	e, n := c.tail(0, true)
	if n != 1 || e.Head.Phase != record.PhaseFinished || e.Head.Has(record.KindCancelRequested) || e.Records[1].Kind() != record.KindUnverified {
		t.Errorf("%d entries, %+v", n, e.Head)
	}
}
