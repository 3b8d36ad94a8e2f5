package limits

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/queue"
)

// Counts is a CallCounter for runs of one process, in its memory. The zero value is ready to use.
type Counts struct {
	mu   sync.Mutex
	held map[rateWindows]map[int64]int // calls, by window
}

type rateWindows struct {
	key    string
	window time.Duration
}

var _ CallCounter = (*Counts)(nil)

// CountCall implements CallCounter. Counts of windows that are over are forgotten.
func (c *Counts) CountCall(_ context.Context, r *queue.Rate, window int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[rateWindows]map[int64]int{}
	}
	of := rateWindows{r.Key, r.Window}
	counts := c.held[of]
	if counts == nil {
		counts = map[int64]int{}
		c.held[of] = counts
	}
	over := window - int64(maxRateAhead/max(r.Window, time.Second)) - 1 // a call is counted this far ahead at most
	for w := range counts {
		if w < over {
			delete(counts, w)
		}
	}
	counts[window]++
	return counts[window], nil
}
