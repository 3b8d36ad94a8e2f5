package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNotReady means that the index cannot be asked yet, or not at all for now.
var ErrNotReady = errors.New("the index is not ready")

const (
	catchUp      = time.Second           // how long a query waits for the events that were stored before it
	catchUpEvery = 10 * time.Millisecond // how often it looks
	farBehind    = 20_000                // events beyond which it does not wait
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
		if behind := h.at().Behind(state.Last); behind > 0 {
			lag.Behind = behind
			lag.AsOf = unstamp(&h.asOf)
		}
		return do(ctx, t)
	})
}

// catchUp waits a while until the index is at a position.
func (x *Index) catchUp(ctx context.Context, last events.Position) error {
	x.want(last)
	for end := time.Now().Add(catchUp); ; wait(ctx, catchUpEvery) {
		position := *x.position.Load()
		if !x.leads.Load() && !position.Reaches(last) { // others apply
			err := x.db.read(ctx, func(ctx context.Context, t *tx) error {
				h, err := t.head(ctx)
				position = h.at()
				return err
			})
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotReady, err)
			}
		}
		if position.Reaches(last) || position.Behind(last) > farBehind || time.Now().After(end) || ctx.Err() != nil {
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

// access is how a database should get at the runs that fit. The zero value is in their order.
type access struct {
	byTime  bool   // the time of the newest event may be a reason to choose an index over that of the order
	byLabel string // begin with the few runs that have this label
	noText  bool   // leave the search out
}

// filter is what a request asks for, but for its page.
func filter(req *control.RunsRequest, by access) *where {
	w := &where{}
	if v, ok := req.Labels[by.byLabel]; ok {
		w.add("(r.tenant, r.id) IN (SELECT l.tenant, l.run FROM longshore_labels l WHERE l.tenant = ? AND l.k = ? AND l.v = ?)",
			req.Tenant, clean(by.byLabel, maxName), clean(v, maxName))
	} else {
		w.add("r.tenant = ?", req.Tenant)
	}
	if req.Since != nil {
		column := "r.updated_at + 0"
		if by.byTime {
			column = "r.updated_at"
		}
		w.add(column+" >= ?", req.Since.UnixMicro())
	}
	if req.Until != nil {
		w.add("r.began_at < ?", req.Until.UnixMicro())
	}
	w.common(req)
	for _, is := range []struct{ column, value string }{ // in one order, for the connection keeps statements
		{"session", req.Session}, {"parent", req.Parent},
	} {
		if is.value != "" {
			w.add("r."+is.column+" = ? AND r."+is.column+" <> ''", clean(is.value, maxName)) // as its index says
		}
	}
	if req.ID != "" {
		w.add("r.id = ?", req.ID)
	}
	if req.Prefix != "" { // not by order: databases collate differently
		w.add("substr(r.id, 1, ?) = ?", len(req.Prefix), req.Prefix)
	}
	for k, v := range req.Labels {
		if k == by.byLabel {
			continue
		}
		w.add("EXISTS (SELECT 1 FROM longshore_labels l WHERE l.tenant = r.tenant AND l.run = r.id AND l.k = ? AND l.v = ?)",
			clean(k, maxName), clean(v, maxName))
	}
	if req.Search != "" && !by.noText { // LIKE takes seconds for texts that nearly fit in many places
		w.add("instr(r.words, ?) > 0", searched(req))
	}
	return w
}

// common adds what is known of runs and of sums.
func (w *where) common(req *control.RunsRequest) {
	if len(req.Statuses) > 0 {
		args := make([]any, len(req.Statuses))
		for i, s := range req.Statuses {
			args[i] = clean(string(s), maxName)
		}
		w.add("r.status IN "+tuples(len(args), 1), args...)
	}
	if req.Agent != "" {
		w.add("r.agent = ?", clean(req.Agent, maxName))
	}
	if req.Code != "" {
		w.add("r.code = ? AND r.code <> ''", clean(string(req.Code), maxName)) // as its index says
	}
}

// searched is the text of a search, as it is stored of runs.
func searched(req *control.RunsRequest) string { return strings.ToLower(clean(req.Search, maxText)) }

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
		return t.page(ctx, &req, after, &page)
	})
	return page, err
}

// page finds the runs that fit and that began before another.
func (t *tx) page(ctx context.Context, req *control.RunsRequest, after int64, page *control.RunPage) error {
	by, err := t.access(ctx, req)
	if err != nil {
		return err
	}
	if req.Search != "" {
		before := int64(math.MaxInt64)
		if after >= 0 {
			before = after
		}
		found, ok, err := t.candidates(ctx, req, by, before)
		if err != nil {
			return err
		}
		if ok {
			return t.among(ctx, req, found, page)
		}
	}
	if req.Count {
		n, err := t.count(ctx, req, access{byTime: true, byLabel: by.byLabel}, after, control.MaxRunsFound+1)
		if err != nil {
			return err
		}
		by.byTime = n <= fewRuns
		page.Found, page.More = min(n, control.MaxRunsFound), n > control.MaxRunsFound
	}
	w := filter(req, by)
	if after >= 0 {
		w.add("r.first < ?", after)
	}
	if err := t.list(ctx, req, w, page); err != nil {
		return err
	}
	end(page, req.Limit)
	return nil
}

// access chooses how to get at the runs that fit: by a label, if it is rare.
func (t *tx) access(ctx context.Context, req *control.RunsRequest) (by access, err error) {
	fewest := control.MaxRunsFound + 1
	for k, v := range req.Labels {
		var n int
		err := t.One(ctx, []any{&n}, "SELECT count(*) FROM (SELECT 1 FROM longshore_labels WHERE tenant = ? AND k = ? AND v = ? LIMIT ?) AS found",
			req.Tenant, clean(k, maxName), clean(v, maxName), fewest)
		if err != nil {
			return by, err
		}
		if n < fewest {
			by.byLabel, fewest = k, n
		}
	}
	return by, nil
}

// count counts the runs that fit, up to a number.
func (t *tx) count(ctx context.Context, req *control.RunsRequest, by access, after int64, most int) (n int, err error) {
	w := filter(req, by)
	if after >= 0 {
		w.add("r.first < ?", after)
	}
	err = t.One(ctx, []any{&n}, "SELECT count(*) FROM (SELECT 1 FROM longshore_runs r"+w.String()+" LIMIT ?) AS found", append(w.args, most)...)
	return n, err
}

// list adds runs to a page until it has one more than it may have.
func (t *tx) list(ctx context.Context, req *control.RunsRequest, w *where, page *control.RunPage) error {
	return t.Each(ctx, func(scan func(...any) error) error {
		r, err := scanRow(scan)
		if err == nil {
			page.Runs = append(page.Runs, r.RunSummary)
		}
		return err
	}, "SELECT "+runColumns+" FROM longshore_runs r"+w.String()+" ORDER BY r.first DESC LIMIT ?", append(w.args, req.Limit+1-len(page.Runs))...)
}

// end says where the next page begins.
func end(page *control.RunPage, limit int) {
	if len(page.Runs) > limit {
		page.Runs = page.Runs[:limit]
		page.Next = page.Runs[limit-1].ID
	}
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
