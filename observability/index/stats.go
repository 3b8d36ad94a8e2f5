package index

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const day = 24 * time.Hour

// maxSums bounds what one question adds up: groups by status and code.
const maxSums = 20_000

// Stats adds up the runs that fit.
func (x *Index) Stats(ctx context.Context, req control.StatsRequest) (control.RunStats, error) {
	return x.stats(ctx, req, sourceOf(&req.RunsRequest))
}

func (x *Index) stats(ctx context.Context, req control.StatsRequest, from source) (control.RunStats, error) {
	stats := control.RunStats{By: req.By, Total: newGroup("").result()}
	err := x.answer(ctx, &stats.IndexLag, func(ctx context.Context, t *tx) error {
		if req.By == control.StatsByTool {
			tools, err := t.tools(ctx, &req, from)
			if len(tools) > control.MaxRunGroups {
				tools, stats.More = tools[:control.MaxRunGroups], true
			}
			stats.Tools = tools
			return err
		}
		groups, err := t.groups(ctx, &req, from)
		if err != nil {
			return err
		}
		if len(groups) > control.MaxRunGroups {
			groups, stats.More = groups[:control.MaxRunGroups], true
		}
		total := newGroup("")
		for _, g := range groups {
			total.merge(g)
			if req.By != "" {
				stats.Groups = append(stats.Groups, g.result())
			}
		}
		if req.By != "" {
			total.sum.took = nil // each group has its own
		}
		stats.Total = total.result()
		return nil
	})
	return stats, err
}

// key is what tells groups apart: of the runs of a cell or of one run.
func key(by control.StatsBy, of *cell) string {
	switch by {
	case control.StatsByAgent:
		return of.agent
	case control.StatsByModel:
		return of.model
	case control.StatsByCode:
		return string(of.code)
	case control.StatsByStatus:
		return string(of.status)
	default:
		if span, form := spanOf(by); span > 0 {
			return time.UnixMicro(at(of.began, span.Microseconds())).UTC().Format(form)
		}
		return ""
	}
}

// spanOf is how long the groups by time are, and the form of their names; 0 for others.
func spanOf(by control.StatsBy) (span time.Duration, form string) {
	switch by {
	case control.StatsByDay:
		return day, time.DateOnly
	case control.StatsByHour:
		return time.Hour, "2006-01-02T15:04Z"
	case control.StatsByMinute:
		return time.Minute, "2006-01-02T15:04Z"
	default:
		return 0, ""
	}
}

// sums are those of runs with a status and a code, of a group.
type sums struct {
	key    string
	status messages.Status
	code   messages.Code
}

// group is what the runs with a key amount to.
type group struct {
	key      string
	sum      tally
	statuses map[messages.Status]int
	codes    map[messages.Code]int
}

func newGroup(key string) *group {
	return &group{key: key, sum: tally{took: times{}}, statuses: map[messages.Status]int{}, codes: map[messages.Code]int{}}
}

// groups adds up the runs that fit, and returns the groups in order.
func (t *tx) groups(ctx context.Context, req *control.StatsRequest, from source) ([]*group, error) {
	all, seen := map[string]*group{}, map[sums]bool{}
	err := t.addUp(ctx, req, from, runSums(), func(scan func(...any) error) (cell, func() error, error) {
		var (
			of     cell
			s      tally
			packed []byte
			ms     *int64
		)
		err := scan(&of.updated, &of.began, &of.agent, &of.model, &of.status, &of.code,
			&s.runs, &s.steps, &s.modelCalls, &s.toolCalls, &s.toolErrors, &s.tokens, &s.unpriced, &s.cost, &packed, &ms)
		return of, func() error {
			if req.By == control.StatsByCode && of.status != messages.StatusFailed {
				return nil
			}
			in := sums{key(req.By, &of), of.status, of.code}
			if !seen[in] && len(seen) == maxSums {
				return nil
			}
			seen[in] = true
			g := all[in.key]
			if g == nil {
				g = newGroup(in.key)
				all[in.key] = g
			}
			if ms != nil {
				s.took = times{timeBucket(*ms): 1}
			}
			g.add(in, &s)
			return g.sum.took.addPacked(packed)
		}, err
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *group) int {
		if span, _ := spanOf(req.By); span > 0 {
			return cmp.Compare(b.key, a.key)
		}
		return cmp.Or(cmp.Compare(b.sum.runs, a.sum.runs), cmp.Compare(a.key, b.key))
	}), nil
}

// add adds runs that have a status and a code.
func (g *group) add(of sums, s *tally) {
	g.sum.add(s, 1)
	g.statuses[of.status] += int(s.runs)
	if of.status == messages.StatusFailed {
		g.codes[of.code] += int(s.runs)
	}
}

// merge adds the runs of another group.
func (g *group) merge(of *group) {
	g.sum.add(&of.sum, 1)
	for s, n := range of.statuses {
		g.statuses[s] += n
	}
	for c, n := range of.codes {
		g.codes[c] += n
	}
}

// result is the group as the API tells it.
func (g *group) result() control.RunGroup {
	t := &g.sum
	out := control.RunGroup{
		Key: g.key, Runs: int(t.runs), Statuses: g.statuses, Codes: g.codes, Steps: t.steps, ModelCalls: t.modelCalls, ToolCalls: t.toolCalls,
		ToolErrors: t.toolErrors, Tokens: t.tokens, Cost: t.cost, Unpriced: int(t.unpriced), P50: t.took.rank(50), P95: t.took.rank(95),
	}
	if completed, failed := g.statuses[messages.StatusCompleted], g.statuses[messages.StatusFailed]; completed+failed > 0 {
		rate := float64(completed) / float64(completed+failed)
		out.SuccessRate = &rate
	}
	return out
}

// tools adds up how the runs that fit called tools.
func (t *tx) tools(ctx context.Context, req *control.StatsRequest, from source) ([]control.ToolUse, error) {
	all := map[string]*toolTally{}
	add := func(name string, u toolTally) {
		if all[name] != nil || len(all) < maxSums {
			entry(all, name).add(u, 1)
		}
	}
	err := t.addUp(ctx, req, from, toolSums(), func(scan func(...any) error) (cell, func() error, error) {
		var (
			of     cell
			name   string
			u      toolTally
			packed string
		)
		err := scan(&of.updated, &of.began, &name, &u.runs, &u.calls, &u.errors, &u.millis, &packed)
		return of, func() error {
			if name != "" {
				add(name, u)
			}
			tools, err := unpackTools(packed)
			for name, u := range tools {
				add(name, u)
			}
			return err
		}, err
	})
	out := make([]control.ToolUse, 0, len(all))
	for name, u := range all {
		out = append(out, control.ToolUse{Tool: name, Calls: u.calls, Errors: u.errors, Millis: u.millis, Runs: u.runs})
	}
	slices.SortFunc(out, func(a, b control.ToolUse) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return out, err
}
