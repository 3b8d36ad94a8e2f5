package runner

import (
	"hash/fnv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// DefaultLongWait is the longest wait for a model that is spent in a slot.
const DefaultLongWait = 30 * time.Second

// Bounds of the waits for a model. Beyond them the run fails with the model's error.
const (
	maxModelWait  = time.Hour        // one wait
	maxModelParks = 20               // for one reply
	longestPark   = 10 * time.Minute // that follows from earlier ones, and not from what was asked for
)

// postpone is the park of a run whose model asks to be called later than anybody should hold a slot for; nil: the
// error counts. The state keeps that the step waits for its reply, so the same call is made again after it.
func (x *execution) postpone(step int, e *model.Error) *messages.Parked {
	if !e.Retryable() || e.RetryAfter <= x.cfg.LongWait || e.RetryAfter > maxModelWait || x.state.ModelParks >= maxModelParks {
		return nil
	}
	// A wait that was not enough is followed by longer ones: where more runs queue for our own limits than fit into
	// them, the parks must last until all had their turn.
	wait := max(e.RetryAfter, min(e.RetryAfter*time.Duration(1+x.state.ModelParks), longestPark))
	until := x.now().Add(wait + spread(x.key(step, "model"), wait))
	return &messages.Parked{Reason: messages.ParkModel, Until: &until}
}

// spread is up to a tenth more, different for every run: what was told to come back at the same time does not come all
// at once.
func spread(key string, d time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	const parts = 1 << 10
	return d / (10 * parts) * time.Duration(h.Sum32()%parts)
}
