package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/queue"
)

// counter counts as a stream does.
type counter struct {
	mu   sync.Mutex
	sums map[string]int
	err  error
}

func (c *counter) count(_ context.Context, r *queue.Rate, window int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	key := fmt.Sprint(r.Key, " ", r.Window, " ", window)
	c.sums[key]++
	return c.sums[key], nil
}

var noon = time.Date(2026, 1, 2, 12, 0, 30, 0, time.UTC)

func minutely(key string, limit int) queue.Rate {
	return queue.Rate{Key: key, Limit: limit, Window: time.Minute}
}

// A minute without room means the next minute with room, for all rates at once.
func TestReserve(t *testing.T) {
	hourly := queue.Rate{Key: "fleet:a", Limit: 5, Window: time.Hour}
	for name, c := range map[string]struct {
		rates []queue.Rate
		want  []time.Duration // after 12:00:00; the first of those that begin at once is 30 s
		none  bool            // after these there is no room within an hour
	}{
		"no rate":         {nil, []time.Duration{30 * time.Second, 30 * time.Second}, false},
		"two in a minute": {[]queue.Rate{minutely("fleet:a", 2)}, []time.Duration{30 * time.Second, 30 * time.Second, time.Minute, time.Minute, 2 * time.Minute}, false},
		"the smaller one": {[]queue.Rate{minutely("tenant:t:a", 1), minutely("fleet:a", 3)}, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute}, false},
		"the hour's": {
			[]queue.Rate{hourly, minutely("fleet:a", 2)},
			[]time.Duration{30 * time.Second, 30 * time.Second, time.Minute, time.Minute, 2 * time.Minute, time.Hour, time.Hour, time.Hour + 30*time.Second},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &counter{sums: map[string]int{}}
			last := noon.Add(time.Hour)
			for i, want := range c.want {
				at, ok, err := queue.Reserve(t.Context(), c.rates, noon, last, n.count)
				if err != nil {
					t.Fatal(err)
				}
				if got := at.Sub(noon.Truncate(time.Hour)); got != want || ok == (c.none && i == len(c.want)-1) {
					t.Errorf("call %d may be made at %v (%t), want %v", i, got, ok, want)
				}
			}
		})
	}
}

// However many take permits, no window has more than its limit, and all who get one get it in the windows of one moment.
func TestReserveOfAFlood(t *testing.T) {
	n := &counter{sums: map[string]int{}}
	rates := []queue.Rate{minutely("agent:x:a", 3), minutely("tenant:t:a", 5), minutely("fleet:a", 7)}
	var (
		mu   sync.Mutex
		held = map[string]int{}
		all  sync.WaitGroup
		got  int
	)
	for i := range 8 {
		mine := rates[i%3:]
		all.Go(func() {
			for range 50 {
				at, ok, err := queue.Reserve(t.Context(), mine, noon, noon.Add(time.Hour), n.count)
				if err != nil {
					t.Error(err)
				}
				if !ok {
					continue
				}
				mu.Lock()
				got++
				for i := range mine {
					held[fmt.Sprint(mine[i].Key, " ", mine[i].Index(at))]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, r := range rates {
		for w := r.Index(noon); w <= r.Index(noon.Add(time.Hour)); w++ {
			if held[fmt.Sprint(r.Key, " ", w)] > r.Limit {
				t.Errorf("%s has %d permits in window %d", r.Key, held[fmt.Sprint(r.Key, " ", w)], w)
			}
		}
	}
	if got < 150 {
		t.Errorf("%d got a permit", got)
	}
}

func TestReserveWithoutACount(t *testing.T) {
	gone := errors.New("away")
	if _, ok, err := queue.Reserve(t.Context(), []queue.Rate{minutely("fleet:a", 1)}, noon, noon.Add(time.Hour), (&counter{err: gone}).count); ok || !errors.Is(err, gone) {
		t.Errorf("got %t, %v", ok, err)
	}
}
