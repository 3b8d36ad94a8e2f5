package limits

import (
	"hash/fnv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
)

// Bounds of the waits for a model. Beyond them the run fails with the model's error.
const (
	maxModelWait  = time.Hour        // one wait
	maxModelParks = 20               // for one reply
	longestPark   = 10 * time.Minute // that follows from earlier ones, and not from what was asked for
)

// Provider parks a run whose model asked to be called later, by a rate limit of the provider or an open circuit.
type Provider struct {
	Now      func() time.Time
	Redact   func(string) string
	LongWait time.Duration                      // a wait for a model that is longer is waited for in a park
	Key      func(step int, what string) string // the same for the same thing of the same run, over attempts

	later *record.Parked // written by Postpone: the wait for the call that failed
}

// Postpone reports whether the call that failed is made again after a park; if not, the error counts. The state keeps that
// the step waits for its reply, so the same call is made again after it.
func (g *Provider) Postpone(s *agent.State, step int, e *model.Error) bool {
	g.later = g.postpone(s, step, e)
	return g.later != nil
}

func (g *Provider) postpone(s *agent.State, step int, e *model.Error) *record.Parked {
	wait := e.RetryAfter
	if wait <= g.LongWait && e.Class == model.Network && s.Purpose == "" && s.Agent.OnNetworkError == messages.NetworkPark {
		wait = agent.NetworkPause
	}
	if !e.Retryable() || wait <= g.LongWait || wait > maxModelWait || s.ModelParks >= maxModelParks {
		return nil
	}
	// A wait that was not enough is followed by longer ones: where more runs queue for our own limits than fit into
	// them, the parks must last until all had their turn.
	wait = max(wait, min(wait*time.Duration(1+s.ModelParks), longestPark))
	until := g.Now().Add(wait + spread(g.Key(step, "model"), wait))
	return &record.Parked{Reason: queue.ParkModel, Until: &until, Cause: &messages.Cause{
		Code: e.Code(), Message: g.Redact(e.Error()), Provider: e.Provider, Attempt: s.ModelParks + 1,
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

// Before implements Gate.
func (g *Provider) Before(s *agent.State, next agent.Action) Verdict {
	if _, calls := next.(*agent.CallModel); !calls || g.later == nil || len(s.Entails(next)) > 0 { // a step that is to begin is begun first
		return Verdict{}
	}
	return park(s, *g.later)
}
