package runlogs_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// spends publishes what an entry cost and waits until it is stored.
func spends(t *testing.T, b *bus.Bus, run messages.Ref, seq uint64, at time.Time, nanos int64) {
	t.Helper()
	out := bustest.Logs(b).Open(run)
	l, ok := out.(runlog.Ledger)
	if !ok {
		t.Fatal("an outbox of the bus is no ledger")
	}
	l.Spend(t.Context(), seq, at, nanos)
	if err := out.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// reads waits until a reader sees this: reads by others may be a second old.
func reads(t *testing.T, b *bus.Bus, tenant string, at time.Time, day, month float64) {
	t.Helper()
	var today, all float64
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if today, all, err = bustest.Logs(b).Spent(t.Context(), tenant, at); err != nil {
			t.Fatal(err)
		}
		if messages.RoundCost(today) == day && messages.RoundCost(all) == month {
			return
		}
	}
	t.Fatalf("tenant %s spent %g today and %g this month, want %g and %g", tenant, today, all, day, month)
}

func TestSpentIsCountedOnce(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := bustest.Reopen(t, nc)
	now := time.Now().UTC()
	run := messages.Ref{Tenant: "acme", Run: "r1"}
	reads(t, b, "acme", now, 0, 0)
	spends(t, b, run, 7, now, 1_500_000_000)
	reads(t, b, "acme", now, 1.5, 1.5) // its own at once
	spends(t, other, run, 7, now, 1_500_000_000)
	reads(t, other, "acme", now, 1.5, 1.5)
	spends(t, other, run, 8, now, 250)
	spends(t, other, messages.Ref{Tenant: "acme", Run: "r2"}, 7, now, 250)
	reads(t, other, "acme", now, 1.5000005, 1.5000005)
	reads(t, b, "acme", now, 1.5000005, 1.5000005)
	reads(t, b, "acme_", now, 0, 0)
}

// What is so old that its id is forgotten was stored before its ticket was acked.
func TestOldSpendingIsNotCountedAgain(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	now := time.Now().UTC()
	spends(t, b, messages.Ref{Tenant: "acme", Run: "r1"}, 7, now.Add(-time.Hour), 1_000_000_000)
	spends(t, b, messages.Ref{Tenant: "acme", Run: "r1"}, 8, now, 0)
	spends(t, b, messages.Ref{Tenant: "acme", Run: "r1"}, 9, now, -5)
	reads(t, b, "acme", now, 0, 0)
}

func TestSpentIsByTheCalendar(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	for day, n := range map[string]string{"202610.31": "1", "202611.01": "2", "202611.30": "4", "202612.01": "8"} {
		m := &nats.Msg{Subject: "spend.acme." + day, Header: nats.Header{"Nats-Incr": {"+" + n + "000000000"}}}
		if _, err := nc.RequestMsg(m, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		at         time.Time
		day, month float64
	}{
		"the first":         {time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), 2, 6},
		"the last":          {time.Date(2026, 11, 30, 23, 59, 59, 999, time.UTC), 4, 6},
		"in between":        {time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC), 0, 6},
		"elsewhere already": {time.Date(2026, 12, 1, 0, 30, 0, 0, time.FixedZone("", 3600)), 4, 6},
	} {
		t.Run(name, func(t *testing.T) { reads(t, b, "acme", tc.at, tc.day, tc.month) })
	}
}

// A counter that cannot be counted on is an error, and never nothing.
func TestSpentWithoutItsStream(t *testing.T) {
	_, nc := bustest.OpenNew(t)
	b, err := bus.Open(t.Context(), nc, bus.Config{Budget: time.Second, Answer: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request("$JS.API.STREAM.DELETE."+bus.StreamSpend, nil, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if today, month, err := bustest.Logs(b).Spent(t.Context(), "acme", time.Now()); err == nil {
		t.Errorf("%g and %g were spent, it says", today, month)
	}
	if _, err := taskqueue.New(b).Tasks(t.Context()); err == nil {
		t.Error("a worker may begin although nothing that it spends could be counted")
	}
	if _, _, err := bustest.Logs(b).Spent(t.Context(), "a.>", time.Now()); err == nil {
		t.Error("a tenant that is a filter is read")
	}
}
