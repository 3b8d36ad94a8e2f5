package index

import (
	"context"

	"github.com/longshore-run/longshore/messages"
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
	err = x.db.apply(ctx, x.db.Writes, h, next, events)
	if err == nil {
		x.position.Store(to)
	}
	return err
}

// Retain removes old rows.
func (x *Index) RetainNow(ctx context.Context) error { return x.retain(ctx, x.db.Writes) }

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
	w := filter(&req, few)
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
