package index

import (
	"cmp"
	"context"
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
	stats := control.RunStats{By: req.By, Total: control.RunGroup{Statuses: map[messages.Status]int{}}}
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
		for i := range groups {
			addGroup(&stats.Total, &groups[i])
		}
		if req.By == "" && len(groups) == 1 {
			stats.Total = groups[0]
		} else if req.By != "" {
			stats.Groups = groups
		}
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

// groups adds up the runs that fit.
func (t *tx) groups(ctx context.Context, req *control.StatsRequest, from source) ([]control.RunGroup, error) {
	each, took := map[sums]*control.RunGroup{}, map[string]times{}
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
			g := each[in]
			if g == nil {
				if len(each) == maxSums {
					return nil
				}
				g = &control.RunGroup{}
				each[in] = g
			}
			s.addTo(g)
			if took[in.key] == nil {
				took[in.key] = times{}
			}
			if ms != nil {
				took[in.key][timeBucket(*ms)]++
			}
			return took[in.key].addPacked(packed)
		}, err
	})
	if err != nil {
		return nil, err
	}
	all := map[string]*control.RunGroup{}
	for of, g := range each {
		g.Statuses = map[messages.Status]int{of.status: g.Runs}
		if of.status == messages.StatusFailed {
			g.Codes = map[messages.Code]int{of.code: g.Runs}
		}
		if all[of.key] == nil {
			all[of.key] = &control.RunGroup{Statuses: map[messages.Status]int{}}
		}
		addGroup(all[of.key], g)
	}
	for k, g := range all {
		g.P50, g.P95 = took[k].rank(50), took[k].rank(95)
	}
	out := make([]control.RunGroup, 0, len(all))
	for k, g := range all {
		g.Key = k
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b control.RunGroup) int {
		if span, _ := spanOf(req.By); span > 0 {
			return cmp.Compare(b.Key, a.Key)
		}
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// addTo adds what runs amount to, but for their times, to a group.
func (t *tally) addTo(g *control.RunGroup) {
	g.Runs += int(t.runs)
	g.Steps += t.steps
	g.ModelCalls += t.modelCalls
	g.ToolCalls += t.toolCalls
	g.ToolErrors += t.toolErrors
	g.Tokens += t.tokens
	g.Cost += t.cost
	g.Unpriced += int(t.unpriced)
}

// addGroup adds b to a, but for its times.
func addGroup(a, b *control.RunGroup) {
	a.Runs += b.Runs
	a.Steps += b.Steps
	a.ModelCalls += b.ModelCalls
	a.ToolCalls += b.ToolCalls
	a.ToolErrors += b.ToolErrors
	a.Tokens += b.Tokens
	a.Cost += b.Cost
	a.Unpriced += b.Unpriced
	for s, n := range b.Statuses {
		a.Statuses[s] += n
	}
	for c, n := range b.Codes {
		if a.Codes == nil {
			a.Codes = map[messages.Code]int{}
		}
		a.Codes[c] += n
	}
	a.SuccessRate = nil
	if ended := a.Statuses[messages.StatusCompleted] + a.Statuses[messages.StatusFailed]; ended > 0 {
		rate := float64(a.Statuses[messages.StatusCompleted]) / float64(ended)
		a.SuccessRate = &rate
	}
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
