package bus_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/runlog"
)

// spends publishes what an entry cost and waits until it is stored.
func spends(t *testing.T, b *bus.Bus, run messages.Ref, seq uint64, at time.Time, nanos int64) {
	t.Helper()
	out := b.Open(run)
	l, ok := out.(runlog.Ledger)
	if !ok {
		t.Fatal("an outbox of the bus is no ledger")
	}
	l.Spend(t.Context(), seq, at, nanos)
	if err := out.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// reads waits for what somebody reads to be this: others' reads may be a second old.
func reads(t *testing.T, b *bus.Bus, tenant string, at time.Time, day, month float64) {
	t.Helper()
	var today, all float64
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if today, all, err = b.Spent(t.Context(), tenant, at); err != nil {
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
	other := reopen(t, nc)
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
	if today, month, err := b.Spent(t.Context(), "acme", time.Now()); err == nil {
		t.Errorf("%g and %g were spent, it says", today, month)
	}
	if _, err := b.Tasks(t.Context()); err == nil {
		t.Error("a worker may begin although nothing that it spends could be counted")
	}
	if _, _, err := b.Spent(t.Context(), "a.>", time.Now()); err == nil {
		t.Error("a tenant that is a filter is read")
	}
}

func TestTurns(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	minute := time.Now().UTC().Truncate(time.Minute)
	now := minute.Add(30 * time.Second)
	turn := func(published time.Time) (minutes int, sure bool) {
		t.Helper()
		at, sure, err := b.Turn(t.Context(), "acme", 2, published, now)
		if err != nil {
			t.Fatal(err)
		}
		if at.IsZero() {
			return 0, sure
		}
		return int(at.Sub(minute) / time.Minute), sure
	}
	want := []int{0, 0, 1, 1, 2, 2, 3, 3}
	for i, w := range want {
		if got, sure := turn(now); got != w || !sure {
			t.Errorf("task %d may begin in minute %d (sure: %t), want %d", i, got, sure, w)
		}
	}
	// One that waited in the queue is counted in the minute in which it was published.
	if got, _ := turn(now.Add(-10 * time.Minute)); got != 0 {
		t.Errorf("a task of ten minutes ago may begin in minute %d", got)
	}
	if got, _ := turn(now.Add(-10 * time.Minute)); got != 0 {
		t.Errorf("the second task of ten minutes ago may begin in minute %d", got)
	}
	if got, _ := turn(now.Add(-10 * time.Minute)); got < 4 {
		t.Errorf("the third task of ten minutes ago may begin in minute %d, which is full", got)
	}
	// The clock of the stream may be ahead.
	if got, _ := turn(now.Add(time.Hour)); got < 4 {
		t.Errorf("a task of the future may begin in minute %d, which is full", got)
	}
}

// However many there are, and whoever asks, no minute gets more than its share, until there is no place within an hour.
func TestTurnsOfAFlood(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := reopen(t, nc)
	now := time.Now().UTC()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		places   = map[time.Time]int{}
		unsure   int
		furthest time.Time
	)
	for _, asked := range []*bus.Bus{b, other} {
		wg.Go(func() {
			for range 150 {
				at, sure, err := asked.Turn(t.Context(), "acme", 3, now, now)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if sure {
					places[at]++
				} else {
					unsure++
				}
				if at.After(furthest) {
					furthest = at
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for at, n := range places {
		if n > 3 {
			t.Errorf("%d tasks begin at %s", n, at)
		}
	}
	if unsure == 0 || len(places) < 40 || furthest.Sub(now) > time.Hour+time.Minute {
		t.Errorf("%d minutes are in use, %d tasks must ask again, the furthest at %s", len(places), unsure, furthest)
	}
}

func TestSubmitsAreCountedByMinute(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	now := time.Now().UTC()
	for want := 1; want <= 3; want++ {
		if n, err := b.CountSubmit(t.Context(), "acme", now); n != want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	if n, err := b.CountSubmit(t.Context(), "acme", now.Add(time.Minute)); n != 1 || err != nil {
		t.Errorf("the next minute begins with %d, %v", n, err)
	}
	if n, err := b.Submits(t.Context(), "acme", now); n != 3 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := b.Submits(t.Context(), "nobody", now); n != 0 || err != nil {
		t.Errorf("of nobody: got %d, %v", n, err)
	}
}

func TestTasksOf(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	publish := func(subject string) {
		t.Helper()
		if _, err := nc.Request(subject, []byte("{}"), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.TasksOf(t.Context(), "acme"); n != 0 || err != nil {
		t.Errorf("got %d, %v of an empty queue", n, err)
	}
	for _, subject := range []string{
		"tasks.high.acme.a", "tasks.normal.acme.b", "tasks.low.acme.c", "tasks.low.acme.d", // its own
		"tasks.wake.acme.e", "tasks.normal.acm.f", "tasks.normal.acme2.g", // a wake-up and others'
	} {
		publish(subject)
	}
	if n, err := b.TasksOf(t.Context(), "acme"); n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := b.TasksOf(t.Context(), "*"); err == nil {
		t.Error("a tenant that is a filter is counted")
	}
}

// reopen is another process on the same streams.
func reopen(t *testing.T, nc *nats.Conn) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
