package quotas_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/queue"
)

func TestTurns(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	minute := time.Now().UTC().Truncate(time.Minute)
	now := minute.Add(30 * time.Second)
	turn := func(published time.Time) (minutes int, sure bool) {
		t.Helper()
		at, sure, err := quotas.New(b, bustest.Logs(b)).Turn(t.Context(), "acme", 2, published, now)
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

// However many callers there are, no minute gets more than its share, until there is no room within an hour.
func TestTurnsOfAFlood(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := bustest.Reopen(t, nc)
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
				at, sure, err := quotas.New(asked, bustest.Logs(asked)).Turn(t.Context(), "acme", 3, now, now)
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
		if n, err := quotas.New(b, bustest.Logs(b)).CountSubmit(t.Context(), "acme", now); n != want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	if n, err := quotas.New(b, bustest.Logs(b)).CountSubmit(t.Context(), "acme", now.Add(time.Minute)); n != 1 || err != nil {
		t.Errorf("the next minute begins with %d, %v", n, err)
	}
	if n, err := quotas.New(b, bustest.Logs(b)).Submits(t.Context(), "acme", now); n != 3 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := quotas.New(b, bustest.Logs(b)).Submits(t.Context(), "unknown", now); n != 0 || err != nil {
		t.Errorf("of an unknown tenant: got %d, %v", n, err)
	}
}

// Calls are counted by rate and window, in one place for all workers, and never among the tasks of a tenant.
func TestCallsAreCountedByRate(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	here, there := quotas.New(b, bustest.Logs(b)), quotas.New(bustest.Reopen(t, nc), bustest.Logs(b))
	site := queue.Rate{Key: "tenant:acme:site", Limit: 1, Window: time.Minute}
	hourly := site
	hourly.Window = time.Hour
	for i, c := range []struct {
		of     *quotas.Quotas
		rate   *queue.Rate
		window int64
		want   int
	}{{here, &site, 7, 1}, {there, &site, 7, 2}, {here, &site, 8, 1}, {there, &hourly, 7, 1}} {
		if n, err := c.of.CountCall(t.Context(), c.rate, c.window); n != c.want || err != nil {
			t.Errorf("call %d is number %d (%v), want %d", i, n, err, c.want)
		}
	}
	if n, err := here.Submits(t.Context(), "acme", time.Unix(7*60, 0)); n != 0 || err != nil {
		t.Errorf("%d submits are counted, %v", n, err)
	}
	for _, key := range []string{"", "acme", "fleet:", "fleet:a b", "fleet:>", "fleet:a.b", "tenant:*:x"} {
		if _, err := here.CountCall(t.Context(), &queue.Rate{Key: key, Limit: 1, Window: time.Minute}, 7); err == nil {
			t.Errorf("the key %q is counted", key)
		}
	}
}

// Without its stream a call is not counted, and that is an error within the time of the bus.
func TestCallsWithoutTheirStream(t *testing.T) {
	_, nc := bustest.OpenNew(t)
	b, err := bus.Open(t.Context(), nc, bus.Config{Budget: 300 * time.Millisecond, Answer: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := bustest.NewJetStream(t, nc).DeleteStream(t.Context(), bus.StreamRates); err != nil {
		t.Fatal(err)
	}
	rate := queue.Rate{Key: "fleet:site", Limit: 1, Window: time.Minute}
	if n, err := quotas.New(b, bustest.Logs(b)).CountCall(t.Context(), &rate, 7); n != 0 || err == nil || !strings.Contains(err.Error(), "rate fleet:site") {
		t.Errorf("got %d, %v", n, err)
	}
}
