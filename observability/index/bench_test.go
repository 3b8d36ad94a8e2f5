//go:build unix

package index_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

// Lists are read along an index, in their order, and not sorted.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	x := h.open(filepath.Join(t.TempDir(), "index.db"))
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	since := noon
	for name, tc := range map[string]struct {
		req  control.RunsRequest
		few  bool
		want string
	}{
		"newest":         {control.RunsRequest{Since: &since}, false, "longshore_runs_first"},
		"of a status":    {control.RunsRequest{Since: &since, Statuses: []messages.Status{messages.StatusFailed}}, false, "longshore_runs_status"},
		"of an agent":    {control.RunsRequest{Agent: "a"}, false, "longshore_runs_agent"},
		"of a session":   {control.RunsRequest{Session: "s"}, false, "longshore_runs_session"},
		"few since then": {control.RunsRequest{Since: &since}, true, "longshore_runs_updated"},
	} {
		tc.req.Tenant, tc.req.Limit = "acme", 100
		plan, err := x.Explain(t.Context(), tc.req, tc.few)
		if err != nil || !strings.Contains(plan, "USING INDEX "+tc.want) || !tc.few && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s, %v", name, plan, err)
		}
	}
}

// Benchmark of an index with 100,000 runs: how fast they are applied, and how long a list takes.
func BenchmarkIndex(b *testing.B) {
	places := map[string]string{"sqlite": filepath.Join(b.TempDir(), "index.db")}
	if server := postgrestest.Open(b); server != nil {
		places["postgres"] = server.URL("longshore", server.Database(b))
	}
	for kind, place := range places {
		b.Run(kind, func(b *testing.B) { benchmark(b, place) })
	}
}

func benchmark(b *testing.B, place string) {
	b.Helper()
	const runs = 100_000
	h := newHarbour(b)
	x := h.open(place)
	if err := x.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	s, err := x.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if s.Runs < runs { // a benchmark is run several times
		position, began := s.Position, time.Now()
		var batch []index.Placed
		for i := range runs {
			at := noon.Add(time.Duration(i) * time.Second)
			ref := acme(fmt.Sprintf("run-%07d", i))
			for _, e := range made(ref, at, func(q *messages.RunQueued, r *messages.AgentResult) {
				q.Input = fmt.Sprintf("Write about number %d, %s", i, strings.Repeat("and more ", 20))
				if i%20 == 0 {
					r.Status, r.Error = messages.StatusFailed, &messages.RunError{Code: messages.CodeToolFailed, Message: "it broke"}
				}
			}) {
				batch = append(batch, index.NewPlaced(e, position+uint64(len(batch))+1))
			}
			if len(batch) >= 500 || i == runs-1 {
				to := position + uint64(len(batch))
				if err := x.Apply(b.Context(), position, to, batch...); err != nil {
					b.Fatal(err)
				}
				position, batch = to, batch[:0]
			}
		}
		b.Logf("%.0f events a second", 7*runs/time.Since(began).Seconds())
	}
	since, recent := noon, noon.Add(99_900*time.Second)
	for name, req := range map[string]control.RunsRequest{
		"newest":       {Since: &since},
		"last minutes": {Since: &recent},
		"failed":       {Statuses: []messages.Status{messages.StatusFailed}},
		"search":       {Search: "number 4711,"},
		"page":         {After: "run-0050000"},
	} {
		b.Run(name, func(b *testing.B) {
			req.Tenant, req.Limit, req.Count = "acme", 100, true
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if page, err := x.Runs(b.Context(), req); err != nil || len(page.Runs) == 0 {
					b.Fatal(page, err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
	b.Run("stats", func(b *testing.B) {
		for b.Loop() {
			if _, err := x.Stats(b.Context(), control.StatsRequest{RunsRequest: control.RunsRequest{Tenant: "acme"}, By: control.StatsByDay}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
