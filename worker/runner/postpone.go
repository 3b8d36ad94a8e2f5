package runner

import (
	"context"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
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

// modelFailed commits what follows from a model call that failed. What the agent wants goes first; the wait that a
// provider or an open circuit asks for comes after it.
func (x *execution) modelFailed(ctx context.Context, step int, e *model.Error) (agent.Action, error) {
	network := e.Class == model.Network
	fallback := agent.Fallback(x.state, e.Code(), network)
	if fallback == "" || fallback == messages.FallbackPark {
		if x.outlives(ctx, step, e) {
			return x.commit(ctx)
		}
	}
	return x.commit(ctx, &messages.ModelFailed{
		Step: step, Error: messages.RunError{Code: e.Code(), Message: x.cfg.Redact(e.Error())}, Fallback: fallback, Provider: e.Provider,
	})
}

// outlives reports whether the same call is made again, at once or after a park, without a record of its failure.
func (x *execution) outlives(ctx context.Context, step int, e *model.Error) bool {
	why := []slog.Attr{slog.String("code", string(e.Code())), x.said("err", e.Error())}
	on := x.state.Agent.OnNetworkError
	if e.Class == model.Network && (on == messages.NetworkAbort || on == messages.NetworkRetry) {
		if on == messages.NetworkAbort || x.state.Purpose != "" || x.outages >= agent.MaxNetworkRetries { // a planner counts its own
			return false
		}
		x.outages++
		x.say(ctx, slog.LevelWarn, "model cannot be reached and is called again", append(why, slog.Int("try", x.outages))...)
		return true
	}
	if x.later = x.postpone(step, e); x.later != nil {
		x.say(ctx, slog.LevelWarn, "model asks to be called later", why...)
	}
	return x.later != nil
}

// postpone is the park of a run whose model is to be called later; nil: the error counts. The state keeps that the step
// waits for its reply, so the same call is made again after it.
func (x *execution) postpone(step int, e *model.Error) *messages.Parked {
	wait := e.RetryAfter
	if wait <= x.cfg.LongWait && e.Class == model.Network && x.state.Purpose == "" && x.state.Agent.OnNetworkError == messages.NetworkPark {
		wait = agent.NetworkPause
	}
	if !e.Retryable() || wait <= x.cfg.LongWait || wait > maxModelWait || x.state.ModelParks >= maxModelParks {
		return nil
	}
	// A wait that was not enough is followed by longer ones: where more runs queue for our own limits than fit into
	// them, the parks must last until all had their turn.
	wait = max(wait, min(wait*time.Duration(1+x.state.ModelParks), longestPark))
	until := x.now().Add(wait + spread(x.key(step, "model"), wait))
	return &messages.Parked{Reason: messages.ParkModel, Until: &until, Cause: &messages.Cause{
		Code: e.Code(), Message: x.cfg.Redact(e.Error()), Provider: e.Provider, Attempt: x.state.ModelParks + 1,
	}}
}

// spread is up to a tenth more, different for every run: what was told to come back at the same time does not come all
// at once.
func spread(key string, d time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	const parts = 1 << 10
	return d / (10 * parts) * time.Duration(h.Sum32()%parts)
}
