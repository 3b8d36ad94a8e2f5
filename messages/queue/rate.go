package queue

import (
	"context"
	"strings"
	"time"
)

// Rate is how many calls may begin in each window of time, in the whole fleet. Windows follow one another without a gap, counted
// from the Unix epoch, so that all workers mean the same one.
type Rate struct {
	Key    string        // whose rate it is, and its name: rates with the same Key and Window share a count
	Limit  int           // calls in a window, 1 or more
	Window time.Duration // whole seconds
	Text   string        // for people: "rule pages of the fleet allows 10 calls of http_* in a minute"
}

// Index is the number of the window that holds a moment.
func (r *Rate) Index(t time.Time) int64 { return t.Unix() / r.seconds() }

// Start is when a window begins.
func (r *Rate) Start(index int64) time.Time { return time.Unix(index*r.seconds(), 0).UTC() }

// Name is the rule's, without whose it is.
func (r *Rate) Name() string { return r.Key[strings.LastIndexByte(r.Key, ':')+1:] }

func (r *Rate) seconds() int64 { return max(1, int64(r.Window/time.Second)) }

// Count adds one to what was counted of a rate in a window, and returns the sum. After an error it may have been added.
type Count func(ctx context.Context, r *Rate, window int64) (int, error)

// searches bounds how often Reserve counts, for each rate.
const searches = 12

// Reserve takes a permit of each rate in the first windows with room that share a moment, at or after from. That moment is at; it is
// from when there is room now. Without room until last, ok is false and at is last.
//
// What is counted is never taken back, so no window ever has more permits than its limit. A permit that was taken of one rate is
// wasted when another one has no room in that window; rates that are likely to be full should come first.
func Reserve(ctx context.Context, rates []Rate, from, last time.Time, count Count) (at time.Time, ok bool, err error) {
	if len(rates) == 0 {
		return from, true, nil
	}
	taken := make([]int64, len(rates)) // the window of each permit
	for i := range taken {
		taken[i] = -1
	}
	at = from
	for range searches * len(rates) {
		i := 0
		for i < len(rates) && taken[i] == rates[i].Index(at) {
			i++
		}
		if i == len(rates) {
			return at, true, nil
		}
		r := &rates[i]
		window := r.Index(at)
		n, err := count(ctx, r, window)
		if err != nil {
			return at, false, err
		}
		if n <= r.Limit {
			taken[i] = window
			continue
		}
		// Those that found no room here before it are ahead of it.
		if at = r.Start(window + int64((n-1)/max(1, r.Limit))); at.After(last) {
			break
		}
	}
	return last, false, nil
}
