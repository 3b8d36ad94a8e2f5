package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of an estimate.
const (
	estimateRuns    = 100              // past runs of each agent
	estimateAgent   = 3 * time.Second  // for one agent. Users of NATS who may not ask get no answer, and no refusal either.
	estimateTimeout = 10 * time.Second // for all agents
	maxRunCost      = 1e9              // US dollars; a larger cost of a past run is a mistake and does not count
)

// BatchCost is what a batch would cost if its tasks cost what past runs of their agents did.
type BatchCost struct {
	USD     *float64 `json:"usd,omitempty"`     // US dollars of Lines; absent: unknown
	Lines   int      `json:"lines"`             // whose agents have past runs of known cost
	Runs    int      `json:"runs"`              // past runs that it stands on
	Unknown string   `json:"unknown,omitempty"` // why the cost of other lines is not known; empty: USD is of all lines
}

// countAgent counts an accepted line for its agent. Lines of agents beyond the bound are counted together, as those of
// no agent.
func (in *intake) countAgent(name string) {
	if _, known := in.lines[name]; !known && len(in.lines) >= maxAgents {
		in.more++
		return
	}
	in.lines[name]++
}

// estimate says what the accepted lines would cost. It never fails and takes at most estimateTimeout: what it cannot
// find out is unknown, with the reason.
func (in *intake) estimate(ctx context.Context) *BatchCost {
	ctx, cancel := context.WithTimeout(ctx, estimateTimeout)
	defer cancel()
	most := slices.SortedFunc(maps.Keys(in.lines), func(a, b string) int { // so that little time is spent on what counts most
		return cmp.Or(in.lines[b]-in.lines[a], strings.Compare(a, b))
	})
	out := &BatchCost{}
	usd := 0.0
	var unpriced, reasons []string
	for _, agent := range most {
		mean, runs, err := in.client.meanCost(ctx, in.spec.Tenant, agent)
		if err != nil { // the next request would end the same way
			reasons = append(reasons, whyNoCost(ctx, err))
			break
		}
		if runs == 0 {
			unpriced = append(unpriced, agent)
			continue
		}
		out.Lines, out.Runs = out.Lines+in.lines[agent], out.Runs+runs
		usd += mean * float64(in.lines[agent])
	}
	if out.Lines > 0 {
		usd = messages.RoundCost(usd)
		out.USD = &usd
	}
	switch n := len(unpriced); n {
	case 0:
	case 1:
		reasons = append(reasons, fmt.Sprintf("no past runs of agent %s with a price", unpriced[0]))
	default:
		reasons = append(reasons, fmt.Sprintf("no past runs of %d agents with a price, such as %s", n, unpriced[0]))
	}
	if in.more > 0 {
		reasons = append(reasons, fmt.Sprintf("only %d agents are looked at", maxAgents))
	}
	out.Unknown = strings.Join(reasons, "; ")
	return out
}

// meanCost is the mean cost of the newest completed runs of an agent whose cost is known, in US dollars, and how many
// those are.
func (c *Client) meanCost(ctx context.Context, tenant, agent string) (usd float64, runs int, err error) {
	ctx, cancel := context.WithTimeout(ctx, estimateAgent)
	defer cancel()
	req := control.RunsRequest{Tenant: tenant, Agent: agent, Statuses: []messages.Status{messages.StatusCompleted}, Limit: estimateRuns}
	var page control.RunPage
	if err := c.request(ctx, control.SubjectRuns, req, &page); err != nil {
		return 0, 0, err
	}
	for i := range page.Runs[:min(len(page.Runs), estimateRuns)] {
		if cost := page.Runs[i].Cost; cost != nil && *cost >= 0 && *cost <= maxRunCost {
			usd += *cost
			runs++
		}
	}
	return usd / float64(max(runs, 1)), runs, nil
}

// whyNoCost is why past runs could not be asked for, in words. The context is that of all requests.
func whyNoCost(ctx context.Context, err error) string {
	if p, ok := errors.AsType[*messages.Problem](err); ok && p.Detail != "" {
		return strict.Clip(p.Detail, maxLineMessage)
	}
	switch {
	case errors.Is(err, ErrUnavailable):
		return ErrUnavailable.Error()
	case ctx.Err() != nil:
		return "there was no time to look at the past runs of all agents"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer about past runs within %s: a user of NATS needs the right to publish %s", estimateAgent, control.SubjectRuns)
	default:
		return strict.Clip(err.Error(), maxLineMessage)
	}
}
