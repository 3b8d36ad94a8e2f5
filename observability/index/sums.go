package index

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Statistics read sums, not runs: a run is added up in the cell of the day, one of the hour and one of the minute in which it began and had its newest
// event, together with the runs that have the same agent, model, status and code. The cells are written with the rows, in one
// transaction: what a row said before is subtracted, what it says now is added. So they are always those of the rows.

// spans are how long the cells are, in microseconds, the longest first. Each is a multiple of the next.
func spans() []int64 {
	return []int64{day.Microseconds(), day.Microseconds() / 24, day.Microseconds() / (24 * 60)}
}

// at is the beginning of the span that a time is in.
func at(micros, span int64) int64 {
	if micros < 0 { // division rounds towards zero
		return (micros+1)/span*span - span
	}
	return micros / span * span
}

// cell is what the runs of a sum have in common.
type cell struct {
	tenant         string
	span           int64
	updated, began int64 // beginnings of spans
	agent, model   string
	status         messages.Status
	code           messages.Code
}

// toolCell is what the calls of a tool have in common that are added up. The model of the run is not among it.
type toolCell struct {
	cell

	tool string
}

// tally is what runs amount to.
type tally struct {
	runs, steps, modelCalls, toolCalls, toolErrors, tokens, unpriced int64

	cost float64
	took times
}

// toolTally is what the calls of a tool amount to.
type toolTally struct{ runs, calls, errors, millis int64 }

// share is what a run adds.
type share struct {
	of    cell // its span is 0: the times are as they are
	sum   tally
	tools map[string]toolTally
}

// share is that of a row, as it is stored.
func (r *row) share() *share {
	s := &share{
		of: cell{r.Tenant, 0, r.Updated.UnixMicro(), r.began.UnixMicro(), r.Agent, r.Model, r.Status, r.Code},
		sum: tally{
			1, amount(int64(r.Steps)), amount(int64(r.ModelCalls)), amount(int64(r.ToolCalls)), amount(int64(r.ToolErrors)), amount(r.Usage.Total),
			bit(r.unpriced), price(r.cost), nil,
		},
		tools: make(map[string]toolTally, len(r.tools)),
	}
	if ms := r.took(); ms != nil {
		s.sum.took = times{timeBucket(*ms): 1}
	}
	for name, u := range r.tools {
		s.tools[name] = toolTally{1, amount(u.calls), amount(u.errors), amount(u.millis)}
	}
	return s
}

func (s *share) equal(to *share) bool {
	a, b := s.sum, to.sum
	return s.of == to.of && a.runs == b.runs && a.steps == b.steps && a.modelCalls == b.modelCalls && a.toolCalls == b.toolCalls && a.toolErrors == b.toolErrors &&
		a.tokens == b.tokens && a.unpriced == b.unpriced && a.cost == b.cost && maps.Equal(a.took, b.took) && maps.Equal(s.tools, to.tools)
}

// add adds what others amount to, or subtracts it if sign is -1.
func (t *tally) add(of *tally, sign int64) {
	t.runs += sign * of.runs
	t.steps += sign * of.steps
	t.modelCalls += sign * of.modelCalls
	t.toolCalls += sign * of.toolCalls
	t.toolErrors += sign * of.toolErrors
	t.tokens += sign * of.tokens
	t.unpriced += sign * of.unpriced
	t.cost += float64(sign) * of.cost
	if t.took == nil {
		t.took = times{}
	}
	t.took.add(of.took, sign)
}

func (t *tally) empty() bool {
	return t.runs == 0 && t.steps == 0 && t.modelCalls == 0 && t.toolCalls == 0 && t.toolErrors == 0 && t.tokens == 0 && t.unpriced == 0 && t.cost == 0 && len(t.took) == 0
}

func (t *toolTally) add(of toolTally, sign int64) {
	t.runs += sign * of.runs
	t.calls += sign * of.calls
	t.errors += sign * of.errors
	t.millis += sign * of.millis
}

// sumChanges is what a transaction changes in the sums, by cells, and in how many rows there are.
type sumChanges struct {
	runs  map[cell]*tally
	tools map[toolCell]*toolTally
	rows  int64 // of runs
	steps int64 // rows of them
}

func newSumChanges() *sumChanges {
	return &sumChanges{runs: map[cell]*tally{}, tools: map[toolCell]*toolTally{}}
}

// change takes a run into account that was something else before; nil: there was, or is, no row.
func (c *sumChanges) change(was, is *share) {
	switch {
	case was == nil:
		c.rows++
	case is == nil:
		c.rows--
	case was.equal(is):
		return
	}
	if was != nil {
		c.add(was, -1)
	}
	if is != nil {
		c.add(is, 1)
	}
}

// add adds a run to its cells of the shortest span, or subtracts it if sign is -1.
func (c *sumChanges) add(s *share, sign int64) {
	all := spans()
	of := s.of.within(all[len(all)-1])
	entry(c.runs, of).add(&s.sum, sign)
	of.model = ""
	for name, u := range s.tools {
		entry(c.tools, toolCell{of, name}).add(u, sign)
	}
}

// within is the cell of a longer span that has all of a cell.
func (c cell) within(span int64) cell {
	c.span, c.updated, c.began = span, at(c.updated, span), at(c.began, span)
	return c
}

func entry[K comparable, V any](of map[K]*V, key K) *V {
	v := of[key]
	if v == nil {
		v = new(V)
		of[key] = v
	}
	return v
}

// spread adds what is in the cells of the shortest span to those of the longer ones.
func (c *sumChanges) spread() {
	all := spans()
	for i := len(all) - 2; i >= 0; i-- {
		for of, sum := range maps.Clone(c.runs) {
			if of.span == all[i+1] {
				entry(c.runs, of.within(all[i])).add(sum, 1)
			}
		}
		for of, sum := range maps.Clone(c.tools) {
			if of.span == all[i+1] {
				entry(c.tools, toolCell{of.within(all[i]), of.tool}).add(*sum, 1)
			}
		}
	}
}

const (
	cellColumns = "tenant, span, updated, began, agent, model, status, code"
	sumColumns  = cellColumns + ", runs, steps, model_calls, tool_calls, tool_errors, tokens, unpriced, cost, took"
	cellKeys    = 8

	toolCellColumns = "tenant, span, updated, began, agent, status, code, tool"
	toolSumColumns  = toolCellColumns + ", runs, calls, errors, millis"
)

// tablesOfSums are the sums of runs and of their tools, and how many rows there are.
func tablesOfSums() []string {
	return []string{
		`CREATE TABLE longshore_sums (
			tenant TEXT NOT NULL, span BIGINT NOT NULL, updated BIGINT NOT NULL, began BIGINT NOT NULL,
			agent TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, code TEXT NOT NULL,
			runs BIGINT NOT NULL, steps BIGINT NOT NULL, model_calls BIGINT NOT NULL, tool_calls BIGINT NOT NULL, tool_errors BIGINT NOT NULL,
			tokens BIGINT NOT NULL, unpriced BIGINT NOT NULL, cost DOUBLE PRECISION NOT NULL, took BYTEA NOT NULL,
			PRIMARY KEY (` + cellColumns + `))`,
		`CREATE TABLE longshore_toolsums (
			tenant TEXT NOT NULL, span BIGINT NOT NULL, updated BIGINT NOT NULL, began BIGINT NOT NULL,
			agent TEXT NOT NULL, status TEXT NOT NULL, code TEXT NOT NULL, tool TEXT NOT NULL,
			runs BIGINT NOT NULL, calls BIGINT NOT NULL, errors BIGINT NOT NULL, millis BIGINT NOT NULL,
			PRIMARY KEY (` + toolCellColumns + `))`,
		`CREATE TABLE longshore_kept (one BIGINT PRIMARY KEY, runs BIGINT NOT NULL, steps BIGINT NOT NULL, clearing BIGINT NOT NULL)`,
		`INSERT INTO longshore_kept (one, runs, steps, clearing) VALUES (1, 0, 0, -1)`,
	}
}

// sumNames are the tables of the sums.
func sumNames() []string { return []string{"longshore_sums", "longshore_toolsums", "longshore_kept"} }

// saveSums writes the cells that change. Those that no run is left in are removed.
func (t *tx) saveSums(ctx context.Context, c *sumChanges) error {
	c.spread()
	maps.DeleteFunc(c.runs, func(_ cell, s *tally) bool { return s.empty() })
	maps.DeleteFunc(c.tools, func(_ toolCell, s *toolTally) bool { return *s == toolTally{} })
	cells := slices.SortedFunc(maps.Keys(c.runs), cell.compare)
	if err := t.saveCells(ctx, cells, c.runs); err != nil {
		return err
	}
	if err := t.saveToolSums(ctx, c.tools); err != nil {
		return err
	}
	if c.rows == 0 && c.steps == 0 {
		return nil
	}
	_, err := t.Exec(ctx, "UPDATE longshore_kept SET runs = runs + ?, steps = steps + ? WHERE one = 1", c.rows, c.steps)
	return err
}

// shareColumns are what a row adds to the sums, and its place.
const shareColumns = "tenant, id, first, updated_at, began_at, agent, model, status, code, steps, model_calls, tool_calls, tool_errors, tokens, unpriced, cost, took, tools"

// storedShare is what a row adds to the sums, and which it is.
type storedShare struct {
	share

	run   string
	first int64
}

func scanShare(scan func(...any) error) (s storedShare, err error) {
	var (
		took  *int64
		tools string
	)
	s.sum.runs = 1
	err = scan(&s.of.tenant, &s.run, &s.first, &s.of.updated, &s.of.began, &s.of.agent, &s.of.model, &s.of.status, &s.of.code,
		&s.sum.steps, &s.sum.modelCalls, &s.sum.toolCalls, &s.sum.toolErrors, &s.sum.tokens, &s.sum.unpriced, &s.sum.cost, &took, &tools)
	if err != nil {
		return s, err
	}
	if took != nil {
		s.sum.took = times{timeBucket(*took): 1}
	}
	s.tools, err = unpackTools(tools)
	return s, err
}

// saveCells adds what is stored of the cells that change to the changes, and writes them.
func (t *tx) saveCells(ctx context.Context, cells []cell, changed map[cell]*tally) error {
	for part := range padded(cells) {
		if err := t.addStored(ctx, part, changed); err != nil {
			return err
		}
	}
	var rows, gone [][]any
	for _, c := range cells {
		s := changed[c]
		if s.runs <= 0 {
			gone = append(gone, c.args())
			continue
		}
		rows = append(rows, append(c.args(), s.runs, s.steps, s.modelCalls, s.toolCalls, s.toolErrors, s.tokens, s.unpriced, s.cost, s.took.pack()))
	}
	if err := t.removeCells(ctx, "longshore_sums WHERE ("+cellColumns+")", gone); err != nil {
		return err
	}
	return t.upsert(ctx, "longshore_sums", sumColumns, cellKeys, rows)
}

// addStored adds what is stored of cells to their changes.
func (t *tx) addStored(ctx context.Context, part []cell, changed map[cell]*tally) error {
	args := make([]any, 0, len(part)*cellKeys)
	for _, c := range part {
		args = append(args, c.args()...)
	}
	return t.Each(ctx, func(scan func(...any) error) error {
		var (
			c      cell
			s      tally
			packed []byte
		)
		err := scan(&c.tenant, &c.span, &c.updated, &c.began, &c.agent, &c.model, &c.status, &c.code,
			&s.runs, &s.steps, &s.modelCalls, &s.toolCalls, &s.toolErrors, &s.tokens, &s.unpriced, &s.cost, &packed)
		if err != nil {
			return err
		}
		to := changed[c]
		if to == nil {
			return fmt.Errorf("sums of %q that were not asked for", c.tenant)
		}
		to.add(&s, 1)
		return to.took.addPacked(packed)
	}, "SELECT "+sumColumns+" FROM longshore_sums WHERE ("+cellColumns+") IN (VALUES "+cellTuples(len(part))+")", args...)
}

// removeCells removes the cells of a table that have these keys.
func (t *tx) removeCells(ctx context.Context, from string, keys [][]any) error {
	for part := range pieces(keys) {
		if _, err := t.Exec(ctx, "DELETE FROM "+from+" IN (VALUES "+cellTuples(len(part))+")", slices.Concat(part...)...); err != nil {
			return fmt.Errorf("remove sums: %w", err)
		}
	}
	return nil
}

// saveToolSums writes the cells of tools that change. The database adds: unlike those of runs they have no more than numbers.
func (t *tx) saveToolSums(ctx context.Context, changed map[toolCell]*toolTally) error {
	cells := slices.SortedFunc(maps.Keys(changed), func(a, b toolCell) int { return cmp.Or(a.compare(b.cell), strings.Compare(a.tool, b.tool)) })
	for part := range pieces(cells) {
		var args []any
		var fewer [][]any
		for _, c := range part {
			s := changed[c]
			args = append(append(args, c.args()...), s.runs, s.calls, s.errors, s.millis)
			if s.runs < 0 {
				fewer = append(fewer, c.args())
			}
		}
		_, err := t.Exec(ctx, "INSERT INTO longshore_toolsums ("+toolSumColumns+") VALUES "+tuples(cellKeys+4, len(part))+" ON CONFLICT ("+toolCellColumns+
			") DO UPDATE SET runs = longshore_toolsums.runs + excluded.runs, calls = longshore_toolsums.calls + excluded.calls, "+
			"errors = longshore_toolsums.errors + excluded.errors, millis = longshore_toolsums.millis + excluded.millis", args...)
		if err != nil {
			return fmt.Errorf("write sums of tools: %w", err)
		}
		if err := t.removeCells(ctx, "longshore_toolsums WHERE runs <= 0 AND ("+toolCellColumns+")", fewer); err != nil {
			return err
		}
	}
	return nil
}

func (c cell) args() []any {
	return []any{c.tenant, c.span, c.updated, c.began, c.agent, c.model, string(c.status), string(c.code)}
}

func (c toolCell) args() []any {
	return []any{c.tenant, c.span, c.updated, c.began, c.agent, string(c.status), string(c.code), c.tool}
}

func (c cell) compare(to cell) int {
	return cmp.Or(strings.Compare(c.tenant, to.tenant), cmp.Compare(c.span, to.span), cmp.Compare(c.updated, to.updated), cmp.Compare(c.began, to.began),
		strings.Compare(c.agent, to.agent), strings.Compare(c.model, to.model), cmp.Compare(c.status, to.status), cmp.Compare(c.code, to.code))
}

// cellTuples are the parameters of n cells, or of n cells of tools. PostgreSQL takes what is not said to be a number for a text.
func cellTuples(n int) string {
	return strings.TrimSuffix(strings.Repeat("(?, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), ?, ?, ?, ?),", n), ",")
}

// packTools is how a row keeps how its run called tools: name, then calls, errors and milliseconds.
func packTools(tools map[string]toolTally) (string, error) {
	if len(tools) == 0 {
		return "", nil
	}
	out := make(map[string][3]int64, len(tools))
	for name, u := range tools {
		out[name] = [3]int64{amount(u.calls), amount(u.errors), amount(u.millis)}
	}
	text, err := json.Marshal(out)
	return string(text), err
}

func unpackTools(text string) (map[string]toolTally, error) {
	if text == "" {
		return nil, nil
	}
	var in map[string][3]int64
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("read the tools of a run: %w", err)
	}
	out := make(map[string]toolTally, len(in))
	for name, u := range in {
		out[name] = toolTally{1, u[0], u[1], u[2]}
	}
	return out, nil
}
