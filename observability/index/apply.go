package index

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/messages/erasure"
)

// chunk is how many rows a statement has that is not kept; the parameters of one are bounded.
const chunk = 200

// pieces cuts a list into parts of a few lengths, so that the statements for them are few, and a connection keeps them.
func pieces[T any](all []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for _, n := range []int{64, 16, 4, 1} {
			for ; len(all) >= n; all = all[n:] {
				if !yield(all[:n]) {
					return
				}
			}
		}
	}
}

// padded cuts a list into parts of the same lengths. The last one repeats its last item: to look for it again costs less than another statement.
func padded[T any](all []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for part := range slices.Chunk(all, 64) {
			for _, n := range []int{1, 4, 16, 64} {
				if len(part) > n {
					continue
				}
				last := part[len(part)-1]
				for part = slices.Clip(part); len(part) < n; {
					part = append(part, last)
				}
				break
			}
			if !yield(part) {
				return
			}
		}
	}
}

// batch is the rows that a batch of events changes.
type batch struct {
	runs   map[messages.Ref]*row
	steps  map[stepKey]*step
	erased map[messages.Ref]bool // whose rows are removed before the others are written
	texts  map[string]int        // runs, by tenant, whose texts are stored anew
	sums   *sumChanges
}

// applied is what applying did.
type applied struct {
	erased bool           // runs were
	texts  map[string]int // runs, by tenant, whose texts are in no block of the search
}

// apply applies events and moves the index, or does nothing.
func (d *projection) apply(ctx context.Context, on database.Beginner, from, to head, events []placed) (done applied, err error) {
	err = d.transaction(ctx, on, func(t *tx) error {
		if err := t.move(ctx, from, to); err != nil { // first: it keeps others out
			return err
		}
		b, err := t.load(ctx, events)
		if err != nil {
			return err
		}
		b.apply(events)
		done = applied{len(b.erased) > 0, b.texts}
		return t.save(ctx, b)
	})
	return done, err
}

// isRun reports whether an event is one of a run.
func isRun(e *messages.Event) bool { return e.Subject != "_" && e.Ref().Check() == nil }

// apply folds events into the rows.
func (b *batch) apply(events []placed) {
	for i := range events {
		e := &events[i]
		if !isRun(&e.Event) {
			b.erase(&e.Event)
			continue
		}
		ref := e.Ref()
		r := b.runs[ref]
		if r == nil {
			r = newRow(ref)
			b.runs[ref] = r
		}
		if !r.apply(e) || e.step == "" {
			continue
		}
		key := stepKey{ref, e.step}
		s := b.steps[key]
		if s == nil {
			s = newStep(key)
			b.steps[key] = s
		}
		s.apply(e)
	}
}

// erase gives up the rows of the runs that an event says were erased. Events that follow make new ones.
func (b *batch) erase(e *messages.Event) {
	if e.Name() != erasure.EventErased {
		return
	}
	d := read[erasure.Erased](e.Data)
	if d == nil {
		return
	}
	for _, id := range d.Runs {
		ref := messages.Ref{Tenant: e.Ref().Tenant, Run: id}
		b.erased[ref] = true
		delete(b.runs, ref)
		maps.DeleteFunc(b.steps, func(k stepKey, _ *step) bool { return k.run == ref })
	}
}

// load reads the rows that events are about.
func (t *tx) load(ctx context.Context, events []placed) (*batch, error) {
	b := &batch{map[messages.Ref]*row{}, map[stepKey]*step{}, map[messages.Ref]bool{}, map[string]int{}, newSumChanges()}
	refs, keys := map[messages.Ref]bool{}, map[stepKey]bool{}
	for i := range events {
		e := &events[i]
		if !isRun(&e.Event) {
			continue
		}
		refs[e.Ref()] = true
		if e.step != "" {
			keys[stepKey{e.Ref(), e.step}] = true
		}
	}
	for part := range padded(slices.Collect(maps.Keys(refs))) {
		var args []any
		for _, r := range part {
			args = append(args, r.Tenant, r.Run)
		}
		err := t.Each(ctx, func(scan func(...any) error) error {
			r, err := scanRow(scan)
			if err != nil {
				return err
			}
			if r.tools, err = unpackTools(r.packed); err != nil {
				return err
			}
			r.was = r.share()
			b.runs[messages.Ref{Tenant: r.Tenant, Run: r.ID}] = r
			return nil
		}, "SELECT "+runColumns+" FROM longshore_runs WHERE (tenant, id) IN (VALUES "+tuples(2, len(part))+")", args...)
		if err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(keys, func(k stepKey, _ bool) bool { return b.runs[k.run] == nil }) // a run without a row has no steps
	for part := range padded(slices.Collect(maps.Keys(keys))) {
		var args []any
		for _, k := range part {
			args = append(args, k.run.Tenant, k.run.Run, k.id)
		}
		err := t.Each(ctx, func(scan func(...any) error) error {
			s, err := scanStep(scan)
			if err == nil {
				s.stored = true
				b.steps[s.key] = s
			}
			return err
		}, "SELECT "+stepColumns+" FROM longshore_steps WHERE (tenant, run, id) IN (VALUES "+tuples(3, len(part))+")", args...)
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// tuples is n times m parameters.
func tuples(m, n int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", m), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}

// save writes rows. They are in order, so that two who write do not wait for each other in a circle.
func (t *tx) save(ctx context.Context, b *batch) error {
	erased := slices.SortedFunc(maps.Keys(b.erased), func(a, b messages.Ref) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Run, b.Run))
	})
	if err := t.unsearch(ctx, erased); err != nil {
		return err
	}
	if err := t.remove(ctx, erased, b.sums); err != nil {
		return err
	}
	runs := slices.SortedFunc(maps.Values(b.runs), func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	var rows, loose, labels, steps [][]any
	for _, r := range runs {
		words := r.words()
		args, err := runArgs(r, words)
		if err != nil {
			return err
		}
		rows = append(rows, args)
		b.sums.change(r.was, r.share())
		if words != r.searched {
			loose = append(loose, []any{r.Tenant, place(r.first)})
			b.texts[r.Tenant]++
		}
		if r.labelled {
			for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
				labels = append(labels, []any{r.Tenant, r.ID, k, r.Labels[k]})
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(b.steps), func(a, b *step) int {
		return cmp.Or(cmp.Compare(a.key.run.Tenant, b.key.run.Tenant), cmp.Compare(a.key.run.Run, b.key.run.Run), cmp.Compare(a.key.id, b.key.id))
	})
	for _, s := range sorted {
		args, err := stepArgs(s)
		if err != nil {
			return err
		}
		steps = append(steps, args)
		if !s.stored {
			b.sums.steps++
		}
	}
	for _, w := range []struct {
		table, columns string
		keys           int
		rows           [][]any
	}{
		{"longshore_runs", runColumns, 2, rows},
		{"longshore_loose", "tenant, first", 2, loose},
		{"longshore_labels", "tenant, run, k, v", 3, labels},
		{"longshore_steps", stepColumns, 3, steps},
	} {
		if err := t.upsert(ctx, w.table, w.columns, w.keys, w.rows); err != nil {
			return err
		}
	}
	return t.saveSums(ctx, b.sums)
}

// remove removes all that is known of runs, but for the blocks of the search, and subtracts them from the sums.
func (t *tx) remove(ctx context.Context, runs []messages.Ref, sums *sumChanges) error {
	var stored []*storedShare
	for part := range pieces(runs) {
		var args []any
		for _, r := range part {
			args = append(args, r.Tenant, r.Run)
		}
		err := t.Each(ctx, func(scan func(...any) error) error {
			s, err := scanShare(scan)
			stored = append(stored, &s)
			return err
		}, "SELECT "+shareColumns+" FROM longshore_runs WHERE (tenant, id) IN (VALUES "+tuples(2, len(part))+")", args...)
		if err != nil {
			return err
		}
	}
	return t.removeStored(ctx, stored, sums)
}

// removeStored is remove for runs of which it was read what they add to the sums.
func (t *tx) removeStored(ctx context.Context, runs []*storedShare, sums *sumChanges) error {
	for part := range pieces(runs) {
		var args, places []any
		for _, r := range part {
			sums.change(&r.share, nil)
			args = append(args, r.of.tenant, r.run)
			places = append(places, r.of.tenant, r.first)
		}
		of := strings.TrimSuffix(strings.Repeat("(?, CAST(? AS BIGINT)),", len(part)), ",") // else PostgreSQL takes it for a text
		if _, err := t.Exec(ctx, "DELETE FROM longshore_loose WHERE (tenant, first) IN (VALUES "+of+")", places...); err != nil {
			return fmt.Errorf("remove runs from the search: %w", err)
		}
		for _, table := range tableNames() {
			n, err := t.Exec(ctx, "DELETE FROM "+table+" WHERE (tenant, "+runColumn(table)+") IN (VALUES "+tuples(2, len(part))+")", args...)
			if err != nil {
				return fmt.Errorf("remove runs from %s: %w", table, err)
			}
			if table == "longshore_steps" {
				sums.steps -= n
			}
		}
	}
	return nil
}

// upsert writes rows of which the first columns are the key.
func (t *tx) upsert(ctx context.Context, table, columns string, keys int, rows [][]any) error {
	names := strings.Split(columns, ", ")
	sets := make([]string, 0, len(names))
	for _, n := range names[keys:] {
		sets = append(sets, n+" = excluded."+n)
	}
	do := "NOTHING"
	if len(sets) > 0 {
		do = "UPDATE SET " + strings.Join(sets, ", ")
	}
	for part := range pieces(rows) {
		var args []any
		for _, r := range part {
			args = append(args, r...)
		}
		_, err := t.Exec(ctx, "INSERT INTO "+table+" ("+columns+") VALUES "+tuples(len(names), len(part))+
			" ON CONFLICT ("+strings.Join(names[:keys], ", ")+") DO "+do, args...)
		if err != nil {
			return fmt.Errorf("write %s: %w", table, err)
		}
	}
	return nil
}

const runColumns = "tenant, id, status, agent, model, session, priority, labels, input, waits, code, error, summary, words, " +
	"steps, model_calls, tool_calls, tool_errors, tokens, tokens_detail, cost, unpriced, " +
	"queued_at, started_at, finished_at, began_at, updated_at, took, first, last, fold, parent, tools"

func runArgs(r *row, words string) ([]any, error) {
	labels, err1 := json.Marshal(r.Labels)
	usage, err2 := json.Marshal(r.Usage)
	fold, err3 := json.Marshal(r.fold())
	tools, err4 := packTools(r.tools)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.ID, err)
	}
	return []any{
		r.Tenant, r.ID, string(r.Status), r.Agent, r.Model, r.Session, string(r.Priority), string(labels), r.Input, r.Waits, string(r.Code),
		r.Error, r.Summary, words, amount(int64(r.Steps)), amount(int64(r.ModelCalls)), amount(int64(r.ToolCalls)), amount(int64(r.ToolErrors)),
		amount(r.Usage.Total), string(usage), price(r.cost), bit(r.unpriced), stamp(r.Queued), stamp(r.Started), stamp(r.Finished), r.began.UnixMicro(), r.Updated.UnixMicro(), r.took(),
		place(r.first), place(r.last), string(fold), r.Parent, tools,
	}, nil
}

// most bounds what one row may add to a sum, so that no row keeps others from being added up.
const most = 1e12

func amount(n int64) int64 { return min(max(n, 0), most) }

func price(c float64) float64 { return min(max(c, 0), most) }

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// scanRow reads a row of runColumns.
func scanRow(scan func(...any) error) (*row, error) {
	var (
		r                                  row
		labels, usage, fold                string
		tokens, unpriced, began, updated   int64
		queued, started, finished, took    *int64
		first, last                        int64
		steps, modelCalls, calls, failures int64
	)
	err := scan(&r.Tenant, &r.ID, &r.Status, &r.Agent, &r.Model, &r.Session, &r.Priority, &labels, &r.Input, &r.Waits, &r.Code, &r.Error, &r.Summary,
		&r.searched, &steps, &modelCalls, &calls, &failures, &tokens, &usage, &r.cost, &unpriced,
		&queued, &started, &finished, &began, &updated, &took, &first, &last, &fold, &r.Parent, &r.packed)
	if err != nil {
		return nil, err
	}
	var f folded
	err = errors.Join(json.Unmarshal([]byte(labels), &r.Labels), json.Unmarshal([]byte(usage), &r.Usage), json.Unmarshal([]byte(fold), &f))
	if err != nil {
		return nil, fmt.Errorf("read the row of %s: %w", r.ID, err)
	}
	if err := r.unfold(f); err != nil {
		return nil, err
	}
	r.Steps, r.ModelCalls, r.ToolCalls, r.ToolErrors = int(steps), int(modelCalls), int(calls), int(failures)
	r.Queued, r.Started, r.Finished, r.Updated = unstamp(queued), unstamp(started), unstamp(finished), unstamp(&updated)
	r.began, r.unpriced = *unstamp(&began), unpriced != 0
	r.first, r.last = uint64(max(first, 0)), uint64(max(last, 0))
	r.Cost = priced(r.cost, r.unpriced)
	return &r, nil
}

const stepColumns = "tenant, run, id, step, status, model, code, reason, model_calls, model_millis, tokens, cost, unpriced, started_at, ended_at, tools, fold"

func stepArgs(s *step) ([]any, error) {
	tools, err1 := json.Marshal(s.Tools)
	fold, err2 := json.Marshal(stepFold{s.modelAt, s.endAt, s.failedAt})
	if err := cmp.Or(err1, err2); err != nil {
		return nil, fmt.Errorf("encode %s: %w", s.key.id, err)
	}
	return []any{
		s.key.run.Tenant, s.key.run.Run, s.key.id, amount(int64(s.Step)), string(s.Status), s.Model, string(s.Code), s.Reason,
		amount(int64(s.ModelCalls)), amount(s.ModelMillis), amount(s.Tokens), price(s.cost), bit(s.unpriced), stamp(s.Started), stamp(s.Ended), string(tools), string(fold),
	}, nil
}

func scanStep(scan func(...any) error) (*step, error) {
	var (
		s                     step
		number, calls, priceX int64
		started, ended        *int64
		tools, fold           string
		f                     stepFold
	)
	err := scan(&s.key.run.Tenant, &s.key.run.Run, &s.key.id, &number, &s.Status, &s.Model, &s.Code, &s.Reason, &calls, &s.ModelMillis, &s.Tokens,
		&s.cost, &priceX, &started, &ended, &tools, &fold)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(tools), &s.Tools); err != nil {
		return nil, fmt.Errorf("read the row of %s: %w", s.key.id, err)
	}
	if err := json.Unmarshal([]byte(fold), &f); err != nil {
		return nil, fmt.Errorf("read the row of %s: %w", s.key.id, err)
	}
	s.StepID, s.Step, s.ModelCalls, s.unpriced = s.key.id, int(number), int(calls), priceX != 0
	s.Started, s.Ended = unstamp(started), unstamp(ended)
	s.modelAt, s.endAt, s.failedAt = f.ModelAt, f.EndAt, f.FailedAt
	s.Cost = priced(s.cost, s.unpriced)
	return &s, nil
}
