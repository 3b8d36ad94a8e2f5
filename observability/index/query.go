package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNotReady means that the index cannot be asked yet, or not at all for now.
var ErrNotReady = errors.New("the index is not ready")

const (
	catchUp      = time.Second           // how long a query waits for the events that were stored before it
	catchUpEvery = 10 * time.Millisecond // how often it looks
	farBehind    = 5000                  // events beyond which it does not wait
	fewRuns      = 1000                  // that fit: it is cheaper to sort them than to read past all others
)

// answer makes queries of one state of the index: one that has all events that were stored when it was asked, or says how
// far it is behind.
func (x *Index) answer(ctx context.Context, lag *control.IndexLag, do func(context.Context, *tx) error) error {
	for end := time.Now().Add(catchUp); !x.ready.Load(); wait(ctx, catchUpEvery) { // it has only begun
		if err := x.failure(); err != nil || ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(ErrNotReady, err)
		}
	}
	state, err := x.from.State(ctx)
	if err != nil {
		return err
	}
	if err := x.catchUp(ctx, state.Last); err != nil {
		return err
	}
	return x.db.read(ctx, func(ctx context.Context, t *tx) error {
		h, err := t.head(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotReady, err)
		}
		if h.position < state.Last {
			lag.Behind = state.Last - h.position
			lag.AsOf = unstamp(&h.asOf)
		}
		return do(ctx, t)
	})
}

// catchUp waits a while until the index is at a position.
func (x *Index) catchUp(ctx context.Context, last uint64) error {
	for end := time.Now().Add(catchUp); ; wait(ctx, catchUpEvery) {
		position := x.position.Load()
		if !x.leads.Load() && position < last { // others apply
			err := x.db.read(ctx, func(ctx context.Context, t *tx) error {
				h, err := t.head(ctx)
				position = h.position
				return err
			})
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotReady, err)
			}
		}
		if position >= last || last-position > farBehind || time.Now().After(end) || ctx.Err() != nil {
			return nil //nolint:nilerr // the answer says how far it is
		}
	}
}

// where is conditions and their parameters.
type where struct {
	conditions []string
	args       []any
}

func (w *where) add(condition string, args ...any) {
	w.conditions, w.args = append(w.conditions, condition), append(w.args, args...)
}

func (w *where) String() string { return " WHERE " + strings.Join(w.conditions, " AND ") }

// filter is what a request asks for, but for its page. Unless byTime, the time of the newest event is no reason for a
// database to choose an index over that of the order.
func filter(req *control.RunsRequest, byTime bool) *where {
	w := &where{}
	w.add("r.tenant = ?", req.Tenant)
	if req.Since != nil {
		column := "r.updated_at + 0"
		if byTime {
			column = "r.updated_at"
		}
		w.add(column+" >= ?", req.Since.UnixMicro())
	}
	if req.Until != nil {
		w.add("r.began_at < ?", req.Until.UnixMicro())
	}
	if len(req.Statuses) > 0 {
		args := make([]any, len(req.Statuses))
		for i, s := range req.Statuses {
			args[i] = clean(string(s), maxName)
		}
		w.add("r.status IN "+tuples(len(args), 1), args...)
	}
	for _, is := range []struct{ column, value string }{ // in one order, for the connection keeps statements
		{"agent", req.Agent}, {"session", req.Session}, {"parent", req.Parent}, {"code", string(req.Code)},
	} {
		if is.value != "" {
			w.add("r."+is.column+" = ?", clean(is.value, maxName))
		}
	}
	if req.ID != "" {
		w.add("r.id = ?", req.ID)
	}
	if req.Prefix != "" { // not by order: databases collate differently
		w.add("substr(r.id, 1, ?) = ?", len(req.Prefix), req.Prefix)
	}
	for k, v := range req.Labels {
		w.add("EXISTS (SELECT 1 FROM longshore_labels l WHERE l.tenant = r.tenant AND l.run = r.id AND l.k = ? AND l.v = ?)",
			clean(k, maxName), clean(v, maxName))
	}
	if req.Search != "" { // LIKE takes seconds for texts that nearly fit in many places
		w.add("instr(r.words, ?) > 0", strings.ToLower(clean(req.Search, maxText)))
	}
	return w
}

// Runs are the runs that fit, those that began last first. A *messages.FieldError says that After is no run.
func (x *Index) Runs(ctx context.Context, req control.RunsRequest) (control.RunPage, error) {
	page := control.RunPage{Runs: []control.RunSummary{}}
	err := x.answer(ctx, &page.IndexLag, func(ctx context.Context, t *tx) error {
		after := int64(-1)
		if req.After != "" {
			err := t.One(ctx, []any{&after}, "SELECT first FROM longshore_runs WHERE tenant = ? AND id = ?", req.Tenant, req.After)
			if errors.Is(err, sql.ErrNoRows) {
				return &messages.FieldError{Field: "after", Reason: "is not a known run"}
			}
			if err != nil {
				return err
			}
		}
		few := false
		if req.Count {
			w := filter(&req, true)
			if after >= 0 {
				w.add("r.first < ?", after)
			}
			err := t.One(ctx, []any{&page.Found},
				"SELECT count(*) FROM (SELECT 1 FROM longshore_runs r"+w.String()+" LIMIT ?) AS found", append(w.args, control.MaxRunsFound+1)...)
			if err != nil {
				return err
			}
			few = page.Found <= fewRuns
			if page.Found > control.MaxRunsFound {
				page.Found, page.More = control.MaxRunsFound, true
			}
		}
		w := filter(&req, few)
		if after >= 0 {
			w.add("r.first < ?", after)
		}
		err := t.Each(ctx, func(scan func(...any) error) error {
			r, err := scanRow(scan)
			if err == nil {
				page.Runs = append(page.Runs, r.RunSummary)
			}
			return err
		}, "SELECT "+runColumns+" FROM longshore_runs r"+w.String()+" ORDER BY r.first DESC LIMIT ?", append(w.args, req.Limit+1)...)
		if len(page.Runs) > req.Limit {
			page.Runs = page.Runs[:req.Limit]
			page.Next = page.Runs[req.Limit-1].ID
		}
		return err
	})
	return page, err
}

// Begun are those of some runs that have an event.
func (x *Index) Begun(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	begun := map[string]bool{}
	if len(ids) == 0 {
		return begun, nil
	}
	var lag control.IndexLag
	err := x.answer(ctx, &lag, func(ctx context.Context, t *tx) error {
		for part := range slices.Chunk(ids, chunk) {
			args := []any{tenant}
			for _, id := range part {
				args = append(args, id)
			}
			err := t.Each(ctx, func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				begun[id] = true
				return err
			}, "SELECT id FROM longshore_runs WHERE tenant = ? AND id IN "+tuples(len(part), 1), args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return begun, err
}

// Steps are the steps of a run, in order.
func (x *Index) Steps(ctx context.Context, ref messages.Ref) (control.StepList, error) {
	list := control.StepList{Steps: []control.StepSummary{}}
	err := x.answer(ctx, &list.IndexLag, func(ctx context.Context, t *tx) error {
		return t.Each(ctx, func(scan func(...any) error) error {
			s, err := scanStep(scan)
			if err == nil {
				list.Steps = append(list.Steps, s.StepSummary)
			}
			return err
		}, "SELECT "+stepColumns+" FROM longshore_steps WHERE tenant = ? AND run = ? ORDER BY step, COALESCE(started_at, 0), id LIMIT ?", ref.Tenant, ref.Run, maxSteps)
	})
	return list, err
}

// maxSteps bounds the steps of an answer.
const maxSteps = 1000
