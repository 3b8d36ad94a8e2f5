package runner_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	gates "github.com/longshore-run/longshore/worker/limits"
)

// rateSeeds is from where on a seed of the simulation is a run whose tools have rates.
const rateSeeds = 1 << 21

// simRate is the counts of a world, which survive processes, and a clock that moves by half a minute whenever a timer fires. A nil
// *simRate has no rates, and its clock stands still.
type simRate struct {
	counts gates.Counts
	halves atomic.Int64   // of minutes
	calls  map[string]int // made, by rule and minute
}

// simLimits are the rates of the agent: calls of any tool in a minute, and of read.
var simLimits = map[string]int{"*": 2, "read": 1}

func (r *simRate) passed() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.halves.Load()) * time.Minute / 2
}

func (r *simRate) tick(m *message) {
	if r != nil && m.wake.Errand == messages.ErrandTimer {
		r.halves.Add(1)
	}
}

func (r *simRate) define(d *messages.Definition) {
	if r != nil {
		d.Policy = &messages.Policy{Rates: []messages.RateRule{
			{Name: "all", Tool: "*", PerMinute: new(simLimits["*"])}, {Name: "reads", Tool: "read", PerMinute: new(simLimits["read"])},
		}}
	}
}

// made counts a call at its far end.
func (r *simRate) made(w *world, tool string) {
	if r == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	minute := simTime.Add(r.passed()).Unix() / 60
	for _, of := range []string{"*", tool} {
		key := fmt.Sprint(of, " ", minute)
		r.calls[key]++
		if limit := simLimits[of]; limit > 0 && r.calls[key] > limit {
			w.violate(&w.found.overRate, fmt.Sprintf("%d calls of %s in a minute", r.calls[key], of))
		}
	}
}

// simCounter counts calls for a process, which may die before and after.
type simCounter struct{ p *process }

func (c simCounter) CountCall(ctx context.Context, r *queue.Rate, window int64) (int, error) {
	if err := c.p.op("count"); err != nil {
		return 0, err
	}
	n, err := c.p.counts().CountCall(ctx, r, window)
	if dead := c.p.op("counted"); dead != nil {
		return 0, dead
	}
	return n, err
}

func (p *process) counts() *gates.Counts {
	if p.w.rules == freshCounts {
		return &p.fresh
	}
	return &p.w.rate.counts
}

// Whatever happens to workers between a permit and its call, no minute has more calls than its rates allow, and all calls are made.
func TestSimulationOfRates(t *testing.T) {
	n := seeds(t) / 4
	sum := simulate(t, rateSeeds, n, allRules, nil)
	t.Logf("%d seeds: %+v", n, sum)
	if sum.total() != 0 {
		t.Errorf("first: %s", sum.first)
	}
}

func TestSimulationOfRatesFailsWithout(t *testing.T) {
	sum := simulate(t, rateSeeds, 300, freshCounts, func(v violations) bool { return v.overRate > 0 })
	if sum.overRate == 0 {
		t.Error("nothing was violated: the simulation does not see this rule")
	}
}
