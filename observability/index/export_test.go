package index

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/database"
)

// ErrMoved is errMoved.
var ErrMoved = errMoved

// Placed is an event at its place.
type Placed = placed

// NewPlaced is an event at its place.
func NewPlaced(e messages.Event, position uint64) Placed { return newPlaced(e, position) }

// Prepare makes the tables, of a stream.
func (x *Index) Prepare(ctx context.Context) error {
	_, err := x.db.prepare(ctx)
	x.ready.Store(err == nil)
	return err
}

// Keep applies events for as long as it is this one's turn.
func (x *Index) Keep(ctx context.Context) error { return x.keep(ctx) }

// Apply applies events from one position to another.
func (x *Index) Apply(ctx context.Context, from, to uint64, events ...Placed) error {
	var h head
	err := x.db.read(ctx, func(ctx context.Context, t *tx) (err error) { h, err = t.head(ctx); return err })
	if err != nil {
		return err
	}
	h.position = from
	next := h
	next.position = to
	_, err = x.db.apply(ctx, x.db.Writes, h, next, events)
	if err == nil {
		x.reached(next)
	}
	return err
}

// Position is how far the index is.
func (x *Index) Position(ctx context.Context) (uint64, error) {
	var h head
	err := x.db.read(ctx, func(ctx context.Context, t *tx) (err error) { h, err = t.head(ctx); return err })
	return h.position, err
}

// GatherTexts makes all blocks for which there are enough runs.
func (x *Index) GatherTexts(ctx context.Context) error {
	var h head
	err := x.db.read(ctx, func(ctx context.Context, t *tx) (err error) { h, err = t.head(ctx); return err })
	for c := (changedTexts{all: true, by: map[string]int{}}); err == nil && (c.all || len(c.by) > 0); {
		err = x.gatherTexts(ctx, x.db.Writes, h, &c)
	}
	return err
}

// Retain removes old rows.
func (x *Index) RetainNow(ctx context.Context) error { return x.retain(ctx, x.db.Writes) }

// RetainSince removes the rows of runs that ended before a time.
func (x *Index) RetainSince(ctx context.Context, at time.Time) error {
	x.cfg.Retain = time.Since(at)
	return x.RetainNow(ctx)
}

// ClearAtOnce sets how many runs are removed by emptying the tables.
func (x *Index) ClearAtOnce(runs int64) { x.clearAtOnce = runs }

// GiveUp is Rebuild without a stream: all rows are to go.
func (x *Index) GiveUp(ctx context.Context) error {
	var h head
	err := x.db.read(ctx, func(ctx context.Context, t *tx) (err error) { h, err = t.head(ctx); return err })
	if err != nil {
		return err
	}
	return x.db.begin(ctx, x.db.Writes, h, head{epoch: h.epoch + 1, stream: h.stream}, 1)
}

// Clear removes what a rebuild gave up, and calls a function before each transaction.
func (x *Index) Clear(ctx context.Context, before func(*sql.DB)) error {
	var h head
	err := x.db.read(ctx, func(ctx context.Context, t *tx) (err error) { h, err = t.head(ctx); return err })
	if err != nil {
		return err
	}
	return x.clear(ctx, beginning{x.db.Writes, before}, h, &events.State{First: events.Position{1}})
}

// beginning calls a function before each transaction.
type beginning struct {
	*sql.DB

	before func(*sql.DB)
}

func (b beginning) BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error) {
	b.before(b.DB)
	return b.DB.BeginTx(ctx, opts)
}

// SetVersion makes the tables those of another version.
func (x *Index) SetVersion(ctx context.Context, version int) error {
	_, err := x.db.Writes.ExecContext(ctx, x.db.SQL("UPDATE longshore_index SET version = ?"), version)
	return err
}

// Exec changes the database behind the index's back.
func (x *Index) Exec(ctx context.Context, statement string) error {
	_, err := x.db.Writes.ExecContext(ctx, statement)
	return err
}

// Dump is all rows of runs and steps, but for where in the stream their events were.
func (x *Index) Dump(ctx context.Context) (runs []control.RunSummary, steps map[string][]control.StepSummary, err error) {
	steps = map[string][]control.StepSummary{}
	err = x.db.read(ctx, func(ctx context.Context, t *tx) error {
		err := t.Each(ctx, func(scan func(...any) error) error {
			r, err := scanRow(scan)
			if err == nil {
				runs = append(runs, r.RunSummary)
			}
			return err
		}, "SELECT "+runColumns+" FROM longshore_runs ORDER BY tenant, id")
		if err != nil {
			return err
		}
		return t.Each(ctx, func(scan func(...any) error) error {
			s, err := scanStep(scan)
			if err == nil {
				steps[s.key.run.String()] = append(steps[s.key.run.String()], s.StepSummary)
			}
			return err
		}, "SELECT "+stepColumns+" FROM longshore_steps ORDER BY tenant, run, id")
	})
	return runs, steps, err
}

// Explain is how the database answers a list.
func (x *Index) Explain(ctx context.Context, req control.RunsRequest, few bool) (plan string, err error) {
	prefix := "EXPLAIN QUERY PLAN "
	if x.db.Kind == database.Postgres {
		prefix = "EXPLAIN "
	}
	w := filter(&req, access{byTime: few})
	err = x.db.read(ctx, func(ctx context.Context, t *tx) error {
		return t.Each(ctx, func(scan func(...any) error) error {
			var line string
			var a, b, c int
			into := []any{&line}
			if x.db.Kind == database.SQLite {
				into = []any{&a, &b, &c, &line}
			}
			err := scan(into...)
			plan += line + "\n"
			return err
		}, prefix+"SELECT "+runColumns+" FROM longshore_runs r"+w.String()+" ORDER BY r.first DESC LIMIT ?", append(w.args, req.Limit)...)
	})
	return plan, err
}

// Candidates are the places that a search looks at, of those in no block and of blocks, in the order in which it does.
func (x *Index) Candidates(ctx context.Context, loose []int64, blocks [][]int64, before int64) (out []int64, err error) {
	c := &candidates{before: before}
	for _, first := range loose {
		if first < before {
			c.read = append(c.read, first)
		}
	}
	c.order()
	for i, firsts := range blocks {
		_, err := x.db.Writes.ExecContext(ctx, "INSERT INTO longshore_blocks (tenant, block, made_at, oldest, newest, firsts) VALUES ('acme', ?, 0, ?, ?, ?)",
			i, firsts[0], firsts[len(firsts)-1], packed(firsts))
		if err != nil {
			return nil, err
		}
		every := openBlock{int64(i), firsts[len(firsts)-1], make([]byte, (len(firsts)+7)/8)}
		for k := range every.bits {
			every.bits[k] = 0xff
		}
		c.blocks = append(c.blocks, every)
	}
	slices.SortFunc(c.blocks, func(a, b openBlock) int { return cmp.Compare(b.newest, a.newest) })
	err = x.db.read(ctx, func(ctx context.Context, t *tx) error {
		for {
			part, err := c.next(ctx, t, "acme")
			out = append(out, part...)
			if err != nil || len(part) == 0 {
				return err
			}
		}
	})
	return out, err
}

// Blocks is how many there are, and how many runs are in none.
func (x *Index) Blocks(ctx context.Context) (blocks, loose int, err error) {
	err = x.db.read(ctx, func(ctx context.Context, t *tx) error {
		return t.One(ctx, []any{&blocks, &loose}, "SELECT (SELECT count(*) FROM longshore_blocks), (SELECT count(*) FROM longshore_loose)")
	})
	return blocks, loose, err
}

// Sums are those that the tables keep, and those that the rows make.
func (x *Index) Sums(ctx context.Context) (kept, made map[string]string, err error) {
	kept, made = map[string]string{}, map[string]string{}
	err = x.db.read(ctx, func(ctx context.Context, t *tx) error {
		c := newSumChanges()
		err := t.Each(ctx, func(scan func(...any) error) error {
			s, err := scanShare(scan)
			if err == nil {
				c.change(nil, &s.share)
			}
			return err
		}, "SELECT "+shareColumns+" FROM longshore_runs")
		if err != nil {
			return err
		}
		c.spread()
		for of, s := range c.runs {
			made[fmt.Sprint(of)] = fmt.Sprintf("%d %d %d %d %d %d %d %.9g %v", s.runs, s.steps, s.modelCalls, s.toolCalls, s.toolErrors, s.tokens, s.unpriced, s.cost, s.took)
		}
		for of, s := range c.tools {
			made[fmt.Sprint(of)] = fmt.Sprint(*s)
		}
		var steps int64
		if err := t.One(ctx, []any{&steps}, "SELECT count(*) FROM longshore_steps"); err != nil {
			return err
		}
		made["rows"] = fmt.Sprint(c.rows, steps)
		var rows int64
		if err := t.One(ctx, []any{&rows, &steps}, "SELECT runs, steps FROM longshore_kept"); err != nil {
			return err
		}
		kept["rows"] = fmt.Sprint(rows, steps)
		err = t.Each(ctx, func(scan func(...any) error) error {
			var (
				of     cell
				s      tally
				packed []byte
			)
			err := scan(&of.tenant, &of.span, &of.updated, &of.began, &of.agent, &of.model, &of.status, &of.code,
				&s.runs, &s.steps, &s.modelCalls, &s.toolCalls, &s.toolErrors, &s.tokens, &s.unpriced, &s.cost, &packed)
			s.took = times{}
			if err == nil {
				err = s.took.addPacked(packed)
			}
			kept[fmt.Sprint(of)] = fmt.Sprintf("%d %d %d %d %d %d %d %.9g %v", s.runs, s.steps, s.modelCalls, s.toolCalls, s.toolErrors, s.tokens, s.unpriced, s.cost, s.took)
			return err
		}, "SELECT "+sumColumns+" FROM longshore_sums")
		if err != nil {
			return err
		}
		return t.Each(ctx, func(scan func(...any) error) error {
			var (
				of toolCell
				s  toolTally
			)
			err := scan(&of.tenant, &of.span, &of.updated, &of.began, &of.agent, &of.status, &of.code, &of.tool, &s.runs, &s.calls, &s.errors, &s.millis)
			kept[fmt.Sprint(of)] = fmt.Sprint(s)
			return err
		}, "SELECT "+toolSumColumns+" FROM longshore_toolsums")
	})
	return kept, made, err
}

// StatsOfRuns is what Stats answers if it reads every run.
func (x *Index) StatsOfRuns(ctx context.Context, req control.StatsRequest) (control.RunStats, error) {
	return x.stats(ctx, req, fromRuns)
}
