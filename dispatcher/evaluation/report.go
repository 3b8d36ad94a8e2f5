package evaluation

import (
	"math"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Outcome is the result of one run of a case.
type Outcome struct {
	Case   string          `json:"case"`
	ID     string          `json:"id"` // of the run
	Passed bool            `json:"passed"`
	Why    []string        `json:"why,omitempty"` // it did not pass
	Status messages.Status `json:"status,omitempty"`
	Steps  int             `json:"steps"`
	Tokens int64           `json:"tokens"`
	Cost   *float64        `json:"cost"`   // in US dollars; null: unknown
	Millis int64           `json:"millis"` // from submit to result

	ended bool // there is a result
	calls []messages.ActionResult
	usage messages.Usage
}

func (o *Outcome) take(r *messages.AgentResult) {
	o.ended, o.Status, o.Steps, o.Tokens, o.Cost = true, r.Status, r.Steps, r.TokenUsage.Total, r.CostEstimate
	o.calls, o.usage = r.Calls(), r.TokenUsage
}

// Report is the result of a suite.
type Report struct {
	Suite     string    `json:"suite"`
	Passed    bool      `json:"passed"` // as many runs as the threshold asks for
	Threshold float64   `json:"threshold"`
	Runs      int       `json:"runs"`
	Good      int       `json:"good"`        // runs that passed
	Rate      float64   `json:"successRate"` // their share
	Completed int       `json:"completed"`   // runs with the status completed, whatever was expected
	Steps     Spread    `json:"steps"`
	Millis    Spread    `json:"millis"` // of a run, from submit to result
	Tools     ToolUse   `json:"tools"`
	Usage     Use       `json:"usage"`
	Took      int64     `json:"tookMillis"` // all of it
	Cases     []Outcome `json:"cases"`
}

// Spread is how values are spread.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
}

// ToolUse is how tool calls went.
type ToolUse struct {
	Calls     int     `json:"calls"`
	Errors    int     `json:"errors"`
	ErrorRate float64 `json:"errorRate"`
	Millis    Spread  `json:"millis"`
}

// Use is what all runs used.
type Use struct {
	Tokens messages.Usage `json:"tokens"`
	Cost   *float64       `json:"cost"` // in US dollars; null when that of any run is unknown
}

func report(s *Suite, outcomes []Outcome, took time.Duration) *Report {
	r := &Report{Suite: s.Name, Threshold: *s.Threshold, Runs: len(outcomes), Took: took.Milliseconds(), Cases: outcomes}
	var steps, millis, tool []float64
	cost, known := 0.0, true
	for i := range outcomes {
		o := &outcomes[i]
		if o.Passed {
			r.Good++
		}
		if !o.ended {
			known = false
			continue
		}
		if o.Status == messages.StatusCompleted {
			r.Completed++
		}
		steps, millis = append(steps, float64(o.Steps)), append(millis, float64(o.Millis))
		r.Usage.Tokens = r.Usage.Tokens.Add(o.usage)
		if o.Cost == nil {
			known = false
		} else {
			cost = messages.AddCost(cost, *o.Cost)
		}
		for _, c := range o.calls {
			r.Tools.Calls++
			if !c.OK {
				r.Tools.Errors++
			}
			tool = append(tool, float64(c.Millis))
		}
	}
	if known {
		r.Usage.Cost = &cost
	}
	if r.Tools.Calls > 0 {
		r.Tools.ErrorRate = float64(r.Tools.Errors) / float64(r.Tools.Calls)
	}
	if r.Runs > 0 {
		r.Rate = float64(r.Good) / float64(r.Runs)
	}
	r.Passed = r.Rate >= r.Threshold
	r.Steps, r.Millis, r.Tools.Millis = spread(steps), spread(millis), spread(tool)
	return r
}

// spread sorts the values.
func spread(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	rank := func(p float64) float64 { return values[min(n-1, int(math.Ceil(p*float64(n)))-1)] }
	return Spread{Mean: sum / float64(n), P50: rank(0.5), P95: rank(0.95), Max: values[n-1]}
}
