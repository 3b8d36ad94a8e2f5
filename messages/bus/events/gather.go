package events

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
)

const (
	gatherIdle   = 5 * time.Second       // how long Gathered waits before it says that there is nothing
	gatherWanted = 10 * time.Millisecond // how often it looks whether what it has is wanted, while nothing comes
)

// Gather bounds what Gathered yields at once. All but Wanted must be set.
type Gather struct {
	Within   time.Duration // after the caller asked for more, at the latest, if anything has come by then
	Messages int
	Bytes    int // of their data; the message that reaches it is the last
	// Wanted, if set, is a position that is waited for: a batch that reaches it is yielded soon. What was yielded before is not wanted.
	Wanted func() Position
}

// Gathered is Feed for a caller to whom each round costs much, such as a transaction: it yields what has come together. What comes
// after a while without messages is yielded at once. Nothing for five seconds is yielded as an empty slice. The slice is valid until the
// caller asks for more. Of the messages only Pending of the last one is of interest.
func (st *Store) Gathered(ctx context.Context, after Position, g Gather) iter.Seq2[[]Fed, error] {
	return func(yield func([]Fed, error) bool) {
		t, err := st.from(after)
		if err != nil {
			yield(nil, err)
			return
		}
		defer t.Close()
		var batch []Fed
		for {
			if batch, err = st.gather(ctx, t, g, batch[:0]); err != nil {
				yield(nil, err)
				return
			}
			if !yield(batch, nil) {
				return
			}
			clear(batch) // else their data is kept until others take their places
		}
	}
}

// gather waits for a first message and adds those that come with it. That a message follows is no reason to wait for it: only the
// time decides, so no message waits for one that never comes.
func (st *Store) gather(ctx context.Context, t *across, g Gather, batch []Fed) ([]Fed, error) {
	began, size := time.Now(), 0
	until, before := began.Add(gatherIdle), slices.Clone(t.at)
	for {
		wait := until
		if soon := time.Now().Add(gatherWanted); len(batch) > 0 && g.Wanted != nil && soon.Before(until) {
			wait = soon
		}
		m, err := t.Next(ctx, wait)
		switch {
		case errors.Is(err, bus.ErrNothing):
		case err != nil:
			return nil, err
		default:
			batch = append(batch, st.fed(m, t.at))
			size += len(m.Data)
			until = began.Add(g.Within)
		}
		if len(batch) >= g.Messages || size >= g.Bytes || !time.Now().Before(until) {
			return batch, nil
		}
		if g.Wanted == nil || len(batch) == 0 {
			continue
		}
		if wanted := g.Wanted(); !before.Reaches(wanted) && t.at.Reaches(wanted) {
			return batch, nil
		}
	}
}
