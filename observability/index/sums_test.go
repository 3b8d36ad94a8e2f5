//go:build unix

package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/observability/index"
)

// sumsAreRight compares the sums of an index with its rows.
func sumsAreRight(t *testing.T, x *index.Index) {
	t.Helper()
	kept, made, err := x.Sums(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, kept); diff != "" {
		t.Fatalf("the sums are not those of the rows: %s", diff)
	}
}

// history makes the events of runs that begin, fail, wait and end at random times, with an erasure here and there.
type history struct {
	*rand.Rand

	runs int
	open [][]messages.Event // of each run those that have not come
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// next is some events, in the order of each run or nearly so.
func (h *history) next(n int) (out []messages.Event) {
	for len(out) < n {
		if len(h.open) == 0 || h.IntN(3) == 0 {
			h.open = append(h.open, h.run())
		}
		i := h.IntN(len(h.open))
		of := h.open[i]
		k := 1 + h.IntN(len(of))
		out = append(out, of[:k]...)
		if h.IntN(8) == 0 { // again
			out = append(out, of[0])
		}
		if h.open[i] = of[k:]; len(of) == k {
			h.open = slices.Delete(h.open, i, i+1)
		}
		if h.runs > 0 && h.IntN(25) == 0 {
			e := event(messages.Ref{Tenant: "acme", Run: "_"}, 1, noon, erasure.EventErased, fmt.Sprintf(`{"of":"subject","runs":["run-%04d"]}`, h.IntN(h.runs)))
			out = append(out, e)
		}
	}
	return out
}

func (h *history) run() []messages.Event {
	ref := messages.Ref{Tenant: pick(h.Rand, "acme", "acme", "other"), Run: fmt.Sprintf("run-%04d", h.runs)}
	h.runs++
	at := noon.Add(time.Duration(h.IntN(200*3600)) * time.Second)
	events := made(ref, at, func(q *messages.RunQueued, r *messages.AgentResult) {
		q.Agent = pick(h.Rand, "a", "b", "c")
		q.Labels = map[string]string{"team": pick(h.Rand, "x", "y")}
		r.Steps, r.TokenUsage.Total = h.IntN(9), int64(h.IntN(1000))
		r.StartedAt = at.Add(time.Duration(h.IntN(100_000)) * time.Millisecond)
		if h.IntN(3) == 0 {
			r.Status, r.Error = messages.StatusFailed, &messages.RunError{Code: pick(h.Rand, messages.CodeToolFailed, messages.CodeMemoryLimit), Message: "it broke"}
		}
		if h.IntN(4) == 0 {
			r.CostEstimate = nil
		}
	})
	if h.IntN(3) == 0 { // it takes long, or ends before it began
		d := time.Duration(h.IntN(50*3600)-3600) * time.Second
		for i := 3; i < len(events); i++ {
			events[i].Time = events[i].Time.Add(d)
		}
	}
	if h.IntN(4) == 0 {
		h.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	return events
}

// statsAreRight compares what is answered from sums with what the rows amount to.
func (h *history) statsAreRight(t *testing.T, x *index.Index) {
	t.Helper()
	for range 40 {
		req := control.StatsRequest{RunsRequest: control.RunsRequest{Tenant: "acme"}, By: pick(h.Rand, "", control.StatsByAgent, control.StatsByModel, control.StatsByCode,
			control.StatsByDay, control.StatsByHour, control.StatsByMinute, control.StatsByStatus, control.StatsByTool)}
		somewhen := func() *time.Time {
			at := noon.Add(time.Duration(h.Int64N(int64(220*time.Hour))) - 5*time.Hour).Truncate(pick(h.Rand, time.Microsecond, time.Minute, time.Hour, 24*time.Hour))
			return &at
		}
		if h.IntN(2) == 0 {
			req.Since = somewhen()
		}
		if h.IntN(2) == 0 {
			req.Until = somewhen()
		}
		switch h.IntN(4) {
		case 0:
			req.Agent = "b"
		case 1:
			req.Statuses = []messages.Status{messages.StatusFailed, messages.StatusRunning}
		case 2:
			req.Code = messages.CodeToolFailed
		}
		got, err := x.Stats(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		want, err := x.StatsOfRuns(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v: %s", req, diff)
		}
	}
}

// Whatever happens to runs, in whatever batches, the sums are those of the rows, and what is answered from them is what the rows amount to.
func TestSumsAreThoseOfTheRows(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		for seed := range uint64(3) {
			h := history{Rand: rand.New(rand.NewPCG(seed, 2))}
			x := newHarbour(t).open(place())
			if err := x.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			position := uint64(0)
			for round := range 60 {
				events := h.next(1 + h.IntN(60))
				var batch []index.Placed
				for i, e := range events {
					batch = append(batch, index.NewPlaced(e, position+uint64(i)+1))
				}
				to := position + uint64(len(events))
				if err := x.Apply(t.Context(), position, to, batch...); err != nil {
					t.Fatal(err)
				}
				position = to
				if round%20 == 19 {
					sumsAreRight(t, x)
					h.statsAreRight(t, x)
				}
			}
			if s, err := x.Status(t.Context()); err != nil || s.Runs < 100 || s.Steps < 50 {
				t.Errorf("%+v, %v", s, err)
			}
			if err := x.RetainSince(t.Context(), noon.Add(100*time.Hour)); err != nil {
				t.Fatal(err)
			}
			sumsAreRight(t, x)
			h.statsAreRight(t, x)
		}
	})
}
