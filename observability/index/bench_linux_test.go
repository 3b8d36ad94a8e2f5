package index_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

// Flags of BenchmarkIndex.
var (
	benchRuns = flag.Int("runs", 200_000, "runs of the index that is measured")
	benchFile = flag.String("index", "", "SQLite `file` of the index that is measured, which is kept; default: one of each kind, which are removed")
)

// Benchmark of an index with 200,000 runs: how fast they are applied, and how long a list takes. It fails if a list without a search
// takes much longer than the 200 ms that it may take on an idle machine.
func BenchmarkIndex(b *testing.B) {
	places := map[string]string{"sqlite": filepath.Join(b.TempDir(), "index.db")}
	if *benchFile != "" {
		places["sqlite"] = *benchFile
	} else if server := postgrestest.Open(b); server != nil {
		places["postgres"] = server.URL("longshore", server.Database(b))
	}
	for kind, place := range places {
		b.Run(kind, func(b *testing.B) { benchmark(b, place) })
	}
}

func benchmark(b *testing.B, place string) {
	b.Helper()
	h := newHarbour(b)
	x := h.open(place)
	if err := x.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	grow(b, x, *benchRuns)
	since, recent := noon, noon.Add(time.Duration(*benchRuns-100)*time.Second)
	for name, req := range map[string]control.RunsRequest{
		"newest":       {Since: &since},
		"last minutes": {Since: &recent},
		"failed":       {Statuses: []messages.Status{messages.StatusFailed}},
		"of an agent":  {Agent: "agent-7"},
		"label":        {Labels: map[string]string{"team": "harbour"}},
		"rare label":   {Labels: map[string]string{"ticket": "T-4711"}},
		"search":       {Search: "number 4711,"},
		"search often": {Search: "and more"},
		"search never": {Search: "and moreover"},
		"search id":    {Search: "run-0004711"},
		"page":         {After: "run-0050000"},
	} {
		req.Tenant, req.Limit, req.Count = "acme", 100, true
		timed(b, name, place, func(x *index.Index) error {
			page, err := x.Runs(b.Context(), req)
			if err == nil && len(page.Runs) == 0 && name != "search never" {
				err = errors.New("no run is found")
			}
			return err
		}, x)
	}
	for name, req := range map[string]control.StatsRequest{
		"stats":            {By: control.StatsByDay},
		"stats of a day":   {By: control.StatsByHour, RunsRequest: control.RunsRequest{Since: new(noon.Add(time.Duration(*benchRuns)*time.Second - 24*time.Hour))}},
		"stats of an hour": {By: control.StatsByMinute, RunsRequest: control.RunsRequest{Since: new(noon.Add(time.Duration(*benchRuns)*time.Second - time.Hour))}},
		"stats of tools":   {By: control.StatsByTool, RunsRequest: control.RunsRequest{Since: new(noon.Add(time.Duration(*benchRuns)*time.Second - 24*time.Hour))}},
	} {
		req.Tenant = "acme"
		timed(b, name, place, func(x *index.Index) error {
			_, err := x.Stats(b.Context(), req)
			return err
		}, x)
	}
	timed(b, "status", place, func(x *index.Index) error {
		_, err := x.Status(b.Context())
		return err
	}, x)
}

// grow applies the events of further runs until an index has a number of them.
func grow(b *testing.B, x *index.Index, runs int) {
	b.Helper()
	s, err := x.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	position, began := s.Position, time.Now()
	var batch []index.Placed
	for i := int(s.Runs); i < runs; i++ {
		at := noon.Add(time.Duration(i) * time.Second)
		for _, e := range made(acme(fmt.Sprintf("run-%07d", i)), at, func(q *messages.RunQueued, r *messages.AgentResult) {
			q.Agent = fmt.Sprintf("agent-%d", i%10)
			q.Labels = map[string]string{"team": []string{"harbour", "quay"}[i%2], "ticket": fmt.Sprintf("T-%d", i)}
			q.Input = fmt.Sprintf("Write about number %d, %s", i, strings.Repeat("and more ", 20))
			if i%20 == 0 {
				r.Status, r.Error = messages.StatusFailed, &messages.RunError{Code: messages.CodeToolFailed, Message: "it broke"}
			}
		}) {
			batch = append(batch, index.NewPlaced(e, position+uint64(len(batch))+1))
		}
		if len(batch) >= 1500 || i == runs-1 {
			to := position + uint64(len(batch))
			if err := x.Apply(b.Context(), position, to, batch...); err != nil {
				b.Fatal(err)
			}
			position, batch = to, batch[:0]
		}
	}
	if err := x.GatherTexts(b.Context()); err != nil {
		b.Fatal(err)
	}
	if more := runs - int(s.Runs); more > 0 {
		b.Logf("%.0f events a second", 7*float64(more)/time.Since(began).Seconds())
	}
}

// timed measures a question, first of an index that was just opened and of whose file nothing is in memory, then again and again.
func timed(b *testing.B, name, place string, ask func(*index.Index) error, x *index.Index) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		cold := 0.0
		if fresh := forgotten(b, place); fresh != nil {
			began := time.Now()
			if err := ask(fresh); err != nil {
				b.Fatal(err)
			}
			cold = time.Since(began).Seconds()
		}
		var took []time.Duration
		before := worked(b)
		for b.Loop() {
			began := time.Now()
			if err := ask(x); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		if p50 := took[len(took)/2]; p50 > 2*time.Second {
			b.Errorf("half of the answers take longer than %s", p50)
		}
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		b.ReportMetric(cold*1000, "cold-ms")
		b.ReportMetric((worked(b)-before).Seconds()*1000/float64(len(took)), "cpu-ms")
	})
}

// worked is the time that processors spent on this process, which others on the machine change less than how long it takes.
func worked(b *testing.B) time.Duration {
	b.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// forgotten opens a file of which the kernel keeps nothing in memory; nil: it is no file.
func forgotten(b *testing.B, place string) *index.Index {
	b.Helper()
	if strings.Contains(place, "://") {
		return nil
	}
	f, err := os.Open(place)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
	x := newHarbour(b).open(place)
	if err := x.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	return x
}
