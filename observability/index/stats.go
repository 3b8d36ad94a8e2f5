package index

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const day = 24 * time.Hour

// maxSums bounds what one question adds up: groups by status and code.
const maxSums = 20_000

// Stats adds up the runs that fit.
func (x *Index) Stats(ctx context.Context, req control.StatsRequest) (control.RunStats, error) {
	stats := control.RunStats{By: req.By, Total: control.RunGroup{Statuses: map[messages.Status]int{}}}
	err := x.answer(ctx, &stats.IndexLag, func(ctx context.Context, t *tx) error {
		if req.By == control.StatsByTool {
			return t.tools(ctx, &req, &stats)
		}
		groups, err := t.groups(ctx, &req)
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

// key is the expression by which runs are told apart.
func key(by control.StatsBy) string {
	switch by {
	case control.StatsByAgent:
		return "r.agent"
	case control.StatsByModel:
		return "r.model"
	case control.StatsByCode:
		return "r.code"
	case control.StatsByStatus:
		return "r.status"
	default:
		if span, _ := spanOf(by); span > 0 {
			return "CAST(r.began_at / " + strconv.FormatInt(span.Microseconds(), 10) + " AS TEXT)"
		}
		return "''"
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

func (t *tx) groups(ctx context.Context, req *control.StatsRequest) ([]control.RunGroup, error) {
	w := filter(&req.RunsRequest, true)
	if req.By == control.StatsByCode {
		w.add("r.status = ?", string(messages.StatusFailed))
	}
	by := key(req.By)
	all := map[string]*control.RunGroup{}
	err := t.Each(ctx, func(scan func(...any) error) error {
		var (
			k              string
			status         messages.Status
			code           messages.Code
			runs, unpriced int
			g              control.RunGroup
		)
		if err := scan(&k, &status, &code, &runs, &g.Steps, &g.ModelCalls, &g.ToolCalls, &g.ToolErrors, &g.Tokens, &g.Cost, &unpriced); err != nil {
			return err
		}
		g.Runs, g.Unpriced, g.Statuses = runs, unpriced, map[messages.Status]int{status: runs}
		if status == messages.StatusFailed {
			g.Codes = map[messages.Code]int{code: runs}
		}
		if all[k] == nil {
			all[k] = &control.RunGroup{Statuses: map[messages.Status]int{}}
		}
		addGroup(all[k], &g)
		return nil
	}, "SELECT "+by+", r.status, r.code, count(*), CAST(sum(r.steps) AS BIGINT), CAST(sum(r.model_calls) AS BIGINT), "+
		"CAST(sum(r.tool_calls) AS BIGINT), CAST(sum(r.tool_errors) AS BIGINT), CAST(sum(r.tokens) AS BIGINT), sum(r.cost), CAST(sum(r.unpriced) AS BIGINT) "+
		"FROM longshore_runs r"+w.String()+" GROUP BY 1, 2, 3 LIMIT "+strconv.Itoa(maxSums), w.args...)
	if err != nil {
		return nil, err
	}
	if err := t.times(ctx, by, w, all); err != nil {
		return nil, err
	}
	out := make([]control.RunGroup, 0, len(all))
	for k, g := range all {
		g.Key = name(req.By, k)
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

// times finds the median and the 95th percentile of how long the runs of each group took, by nearest rank.
func (t *tx) times(ctx context.Context, by string, w *where, all map[string]*control.RunGroup) error {
	return t.Each(ctx, func(scan func(...any) error) error {
		var (
			k        string
			p50, p95 *int64
		)
		if err := scan(&k, &p50, &p95); err != nil {
			return err
		}
		if g := all[k]; g != nil {
			g.P50, g.P95 = p50, p95
		}
		return nil
	}, "SELECT k, min(CASE WHEN place * 100 >= n * 50 THEN took END), min(CASE WHEN place * 100 >= n * 95 THEN took END) FROM ("+
		"SELECT "+by+" AS k, r.took AS took, row_number() OVER (PARTITION BY "+by+" ORDER BY r.took) AS place, count(*) OVER (PARTITION BY "+by+") AS n "+
		"FROM longshore_runs r"+w.String()+" AND r.took IS NOT NULL) AS ranked GROUP BY k", w.args...)
}

// name is what a group is called.
func name(by control.StatsBy, k string) string {
	span, form := spanOf(by)
	if span == 0 {
		return k
	}
	n, err := strconv.ParseInt(k, 10, 64)
	if err != nil {
		return k
	}
	return time.UnixMicro(n * span.Microseconds()).UTC().Format(form)
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
func (t *tx) tools(ctx context.Context, req *control.StatsRequest, stats *control.RunStats) error {
	w := filter(&req.RunsRequest, true)
	stats.Tools = []control.ToolUse{}
	err := t.Each(ctx, func(scan func(...any) error) error {
		var u control.ToolUse
		err := scan(&u.Tool, &u.Calls, &u.Errors, &u.Millis, &u.Runs)
		stats.Tools = append(stats.Tools, u)
		return err
	}, "SELECT o.tool, CAST(sum(o.calls) AS BIGINT), CAST(sum(o.errors) AS BIGINT), CAST(sum(o.millis) AS BIGINT), count(DISTINCT r.id) "+
		"FROM longshore_runs r JOIN longshore_tools o ON o.tenant = r.tenant AND o.run = r.id"+w.String()+
		" GROUP BY o.tool ORDER BY 2 DESC, 1 LIMIT "+strconv.Itoa(control.MaxRunGroups+1), w.args...)
	if len(stats.Tools) > control.MaxRunGroups {
		stats.Tools, stats.More = stats.Tools[:control.MaxRunGroups], true
	}
	return err
}
