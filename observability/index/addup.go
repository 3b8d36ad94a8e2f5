package index

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/messages/control"
)

// source is what statistics read.
type source int

const (
	fromSums source = iota // cells, and the runs at their edges
	fromRuns               // every run that fits
)

// sourceOf is where the runs of a request can be read from: cells do not know whose labels, session, parent, id and text are asked for.
func sourceOf(req *control.RunsRequest) source {
	if len(req.Labels) > 0 || req.Session != "" || req.Parent != "" || req.Search != "" || req.ID != "" || req.Prefix != "" {
		return fromRuns
	}
	return fromSums
}

// summed is what is read of cells, and of runs. The first columns are when they were updated and when they began.
type summed struct{ table, ofCells, ofRuns string }

func runSums() summed {
	const values = "steps, model_calls, tool_calls, tool_errors, tokens, unpriced, cost, "
	return summed{
		"longshore_sums",
		"updated, began, agent, model, status, code, runs, " + values + "took, NULL",
		"updated_at, began_at, agent, model, status, code, 1, " + values + "NULL, took",
	}
}

func toolSums() summed {
	return summed{"longshore_toolsums", "updated, began, tool, runs, calls, errors, millis, ''", "updated_at, began_at, '', 0, 0, 0, 0, tools"}
}

// asked is the times that a request asks for, in microseconds.
type asked struct{ since, until int64 } // updated at since or later, began before until

// How much of a cell is asked for.
const (
	nothing = iota
	some
	everything
)

func (a asked) of(updated, began, span int64) int {
	switch {
	case updated+span <= a.since || began >= a.until:
		return nothing
	case updated >= a.since && began+span <= a.until:
		return everything
	default:
		return some
	}
}

// reader reads what summed names: it scans a row, and returns the cell or run that the row is of and a function that adds it up.
type reader func(scan func(...any) error) (of cell, add func() error, err error)

// addUp adds up what a request asks for. Of a cell of which it asks for a part the cells of the next shorter span are read, and in the end the runs.
func (t *tx) addUp(ctx context.Context, req *control.StatsRequest, from source, what summed, read reader) error {
	in := asked{-longAgo, longAgo}
	if req.Since != nil {
		in.since = req.Since.UnixMicro()
	}
	if req.Until != nil {
		in.until = req.Until.UnixMicro()
	}
	if from == fromRuns {
		return t.addRuns(ctx, req, what, read, extent{in.since, longAgo}, func(cell) bool { return true })
	}
	longest, _ := spanOf(req.By)
	open, above := []extent{{in.since, longAgo}}, int64(0)
	isOpen := func(c cell) bool { // it was not added as part of a longer one
		return above == 0 || in.of(at(c.updated, above), at(c.began, above), above) == some
	}
	for _, span := range spans() {
		if longest > 0 && span > longest.Microseconds() {
			continue
		}
		var parts []int64
		for _, e := range open {
			e.from = at(e.from, span)
			err := t.addCells(ctx, req, what, read, span, e, func(c cell) bool {
				how := nothing
				if isOpen(c) {
					how = in.of(c.updated, c.began, span)
				}
				if how == some {
					parts = append(parts, c.updated)
				}
				return how == everything
			})
			if err != nil {
				return err
			}
		}
		open, above = extents(parts, span), span
	}
	for _, e := range open {
		if err := t.addRuns(ctx, req, what, read, e, isOpen); err != nil {
			return err
		}
	}
	return nil
}

// longAgo is further from 1970 than any time of an event, in microseconds; a span more is still a number.
const longAgo = 1 << 61

// extent is a range of the times at which runs were updated: from is in it, to is not.
type extent struct{ from, to int64 }

// maxExtents bounds the ranges that are read one by one. If there are more, so is what is between them.
const maxExtents = 64

// extents are the ranges of spans that begin at these times.
func extents(begin []int64, span int64) (out []extent) {
	slices.Sort(begin)
	for _, b := range slices.Compact(begin) {
		if n := len(out); n > 0 && out[n-1].to == b {
			out[n-1].to = b + span
		} else {
			out = append(out, extent{b, b + span})
		}
	}
	if len(out) > maxExtents {
		out = []extent{{out[0].from, out[len(out)-1].to}}
	}
	return out
}

// addCells adds the cells of a span that were updated in a range and that take, which sees each, says.
func (t *tx) addCells(ctx context.Context, req *control.StatsRequest, what summed, read reader, span int64, e extent, take func(cell) bool) error {
	w := &where{}
	w.add("r.tenant = ? AND r.span = ? AND r.updated >= ? AND r.updated < ?", req.Tenant, span, e.from, e.to)
	w.common(&req.RunsRequest)
	return t.Each(ctx, func(scan func(...any) error) error {
		of, add, err := read(scan)
		if err != nil || !take(of) {
			return err
		}
		return add()
	}, "SELECT "+what.ofCells+" FROM "+what.table+" r"+w.String(), w.args...)
}

// addRuns adds the runs that fit, were updated in a range, and that take says.
func (t *tx) addRuns(ctx context.Context, req *control.StatsRequest, what summed, read reader, e extent, take func(cell) bool) error {
	by, err := t.access(ctx, &req.RunsRequest)
	if err != nil {
		return err
	}
	by.byTime = true
	w := filter(&req.RunsRequest, by)
	if e.from > -longAgo || e.to < longAgo {
		w.add("r.updated_at >= ? AND r.updated_at < ?", e.from, e.to)
	}
	return t.Each(ctx, func(scan func(...any) error) error {
		of, add, err := read(scan)
		if err != nil || !take(of) {
			return err
		}
		return add()
	}, "SELECT "+what.ofRuns+" FROM longshore_runs r"+w.String(), w.args...)
}
