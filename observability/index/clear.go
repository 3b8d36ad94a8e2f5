package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/database"
)

// A rebuild only notes which rows are to go. The process that applies removes them before it applies anything. If all rows go and they are not too
// many, that is one transaction that empties the tables, which looks at no row; else each removes some, so that no other waits long
// for the database. Where it is stopped, the next one continues.
const (
	clearBatch  = 500     // runs that are removed one by one at once
	clearAtOnce = 100_000 // runs with which tables are emptied: about a second
	notCleared  = -1      // there is nothing to remove
)

// clear removes the rows that a rebuild gave up.
func (x *Index) clear(ctx context.Context, on database.Beginner, h head, state *events.State) error {
	from, stay := int64(notCleared), int64(0)
	err := x.db.read(ctx, func(ctx context.Context, t *tx) error {
		err := t.One(ctx, []any{&from}, "SELECT clearing FROM longshore_kept")
		if err != nil || from == notCleared {
			return err
		}
		if from > 0 { // of what was removed from the stream since, the rows are all that is left
			from = max(from, place(x.firstPlace(state)))
		}
		return t.One(ctx, []any{&stay}, "SELECT count(*) FROM (SELECT 1 FROM longshore_runs WHERE first < ? LIMIT 1) AS stay", from)
	})
	if err != nil || from == notCleared {
		return err
	}
	again := func(messages.Ref, int64) bool { return true }
	atOnce := x.clearAtOnce
	if from > 0 && len(state.First) > 1 {
		again = func(run messages.Ref, first int64) bool { return isStored(run, first, state) }
		if slices.Max(state.First) > 1 { // some may stay
			stay = 1
		}
	}
	if stay > 0 {
		atOnce = 0
	}
	at := messages.Ref{}
	for place, more := int64(math.MinInt64), true; more; {
		emptied, err := x.empty(ctx, on, h, atOnce)
		switch {
		case emptied:
			return nil
		case errors.Is(err, errMoved), err != nil && ctx.Err() != nil:
			return fmt.Errorf("empty the tables of the index: %w", err)
		case err != nil:
			atOnce = 0 // a slow disk has no time for it
		}
		err = x.within(ctx, on, h, func(ctx context.Context, t *tx) (err error) {
			at.Tenant, place, more, err = t.clearSome(ctx, at.Tenant, place, from, again)
			return err
		})
		if err != nil {
			return fmt.Errorf("remove the rows that are made again: %w", err)
		}
	}
	for more := true; more; {
		err := x.within(ctx, on, h, func(ctx context.Context, t *tx) (err error) {
			if more, err = t.dissolveOld(ctx, math.MaxInt64); err != nil || more {
				return err
			}
			return t.cleared(ctx)
		})
		if err != nil {
			return fmt.Errorf("remove the search of the rows that are made again: %w", err)
		}
	}
	return nil
}

// cleared notes that there is nothing to remove.
func (t *tx) cleared(ctx context.Context) error {
	_, err := t.Exec(ctx, "UPDATE longshore_kept SET clearing = ? WHERE one = 1", notCleared)
	return err
}

// empty empties the tables, and with that clears the index, if it has no more runs than that. It reports whether it did.
func (x *Index) empty(ctx context.Context, on database.Beginner, h head, most int64) (emptied bool, err error) {
	if most == 0 {
		return false, nil
	}
	err = x.within(ctx, on, h, func(ctx context.Context, t *tx) error {
		var runs int64
		if err := t.One(ctx, []any{&runs}, "SELECT runs FROM longshore_kept"); err != nil || runs > most {
			return err
		}
		for _, table := range slices.Concat(tableNames(), searchNames(), []string{"longshore_sums", "longshore_toolsums"}) {
			if _, err := t.Exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		if _, err := t.Exec(ctx, "UPDATE longshore_kept SET runs = 0, steps = 0 WHERE one = 1"); err != nil {
			return err
		}
		emptied = true
		return t.cleared(ctx)
	})
	return emptied && err == nil, err
}

// within makes a transaction of an index that is where this one thinks.
func (x *Index) within(ctx context.Context, on database.Beginner, h head, do func(context.Context, *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return x.db.transaction(ctx, on, func(t *tx) error {
		if err := t.hold(ctx); err != nil {
			return err
		}
		is, err := t.head(ctx)
		if err == nil && is != h {
			err = errMoved
		}
		if err != nil {
			return err
		}
		return do(ctx, t)
	})
}

// clearSome removes some of the runs whose first event is at a position or after it, those after a place in the order of
// tenants and first events, if they can be made again. It returns the place of the last.
func (t *tx) clearSome(
	ctx context.Context, tenant string, place, from int64, again func(run messages.Ref, first int64) bool,
) (atTenant string, atPlace int64, more bool, err error) {
	var runs []*storedShare
	err = t.Each(ctx, func(scan func(...any) error) error {
		s, err := scanShare(scan)
		runs = append(runs, &s)
		return err
	}, "SELECT "+shareColumns+" FROM longshore_runs WHERE (tenant, first) >= (?, ?) AND first >= ? ORDER BY tenant, first LIMIT ?", tenant, place, from, clearBatch)
	if err != nil {
		return tenant, place, false, err
	}
	if len(runs) > 0 {
		last := runs[len(runs)-1]
		tenant, place = last.of.tenant, last.first
	}
	more = len(runs) == clearBatch
	runs = slices.DeleteFunc(runs, func(s *storedShare) bool { return !again(messages.Ref{Tenant: s.of.tenant, Run: s.run}, s.first) })
	sums := newSumChanges()
	if err := t.removeStored(ctx, runs, sums); err != nil {
		return tenant, place, false, err
	}
	return tenant, place, more, t.saveSums(ctx, sums)
}

// hold keeps others from writing until the transaction ends. What is added to a sum is added to what was read of it.
func (t *tx) hold(ctx context.Context) error {
	_, err := t.Exec(ctx, "UPDATE longshore_index SET version = version WHERE one = 1")
	return err
}
