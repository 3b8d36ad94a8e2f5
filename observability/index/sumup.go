package index

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

const (
	sumUpRuns = 500    // that are read at once
	sumUpSave = 10_000 // of which the sums are written at once
)

// sumUp adds up runs of tables that had no sums, and gives them the tools that their steps called.
func (t *tx) sumUp(ctx context.Context) error {
	sums := newSumChanges()
	for after, more := (messages.Ref{}), true; more; {
		part, err := t.sharesAfter(ctx, after)
		if err != nil {
			return err
		}
		for _, s := range part {
			sums.change(nil, &s.share)
			after = messages.Ref{Tenant: s.of.tenant, Run: s.run}
		}
		more = len(part) == sumUpRuns
		if more && sums.rows < sumUpSave {
			continue
		}
		if err := t.saveSums(ctx, sums); err != nil {
			return err
		}
		sums = newSumChanges()
	}
	if _, err := t.Exec(ctx, "UPDATE longshore_kept SET steps = (SELECT count(*) FROM longshore_steps)"); err != nil {
		return err
	}
	_, err := t.Exec(ctx, "DROP TABLE longshore_tools")
	return err
}

// sharesAfter is what some runs add to the sums, those after another.
func (t *tx) sharesAfter(ctx context.Context, after messages.Ref) ([]*storedShare, error) {
	var part []*storedShare
	of := map[messages.Ref]*storedShare{}
	err := t.Each(ctx, func(scan func(...any) error) error {
		s, err := scanShare(scan)
		s.tools = map[string]toolTally{}
		part = append(part, &s)
		of[messages.Ref{Tenant: s.of.tenant, Run: s.run}] = &s
		return err
	}, "SELECT "+shareColumns+" FROM longshore_runs WHERE (tenant, id) > (?, ?) ORDER BY tenant, id LIMIT ?", after.Tenant, after.Run, sumUpRuns)
	if err != nil || len(part) == 0 {
		return nil, err
	}
	last := part[len(part)-1]
	err = t.Each(ctx, func(scan func(...any) error) error {
		var (
			r    messages.Ref
			name string
			u    toolTally
		)
		err := scan(&r.Tenant, &r.Run, &name, &u.calls, &u.errors, &u.millis)
		if s := of[r]; s != nil && len(s.tools) < maxRunTools {
			s.tools[name] = toolTally{1, amount(u.calls), amount(u.errors), amount(u.millis)}
		}
		return err
	}, "SELECT tenant, run, tool, CAST(sum(calls) AS BIGINT), CAST(sum(errors) AS BIGINT), CAST(sum(millis) AS BIGINT) FROM longshore_tools "+
		"WHERE (tenant, run) > (?, ?) AND (tenant, run) <= (?, ?) GROUP BY tenant, run, tool", after.Tenant, after.Run, last.of.tenant, last.run)
	if err != nil {
		return nil, err
	}
	for _, s := range part {
		packed, err := packTools(s.tools)
		if err != nil || packed == "" {
			if err != nil {
				return nil, err
			}
			continue
		}
		if _, err := t.Exec(ctx, "UPDATE longshore_runs SET tools = ? WHERE tenant = ? AND id = ?", packed, s.of.tenant, s.run); err != nil {
			return nil, fmt.Errorf("write the tools of %s: %w", s.run, err)
		}
	}
	return part, nil
}
