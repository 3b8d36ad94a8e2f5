//go:build unix

package index_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// Benchmark of filling an index from what is stored: events a second, read from NATS in the same process, and the processor time of both.
func BenchmarkFill(b *testing.B) {
	h := newHarbour(b)
	n := store(b, h)
	used := usedCPU(b)
	for b.Loop() {
		x := h.open(filepath.Join(b.TempDir(), "index.db"))
		stop := h.keep(x)
		h.caughtUp(x)
		stop()
	}
	filled(b, n, used)
}

// Benchmark of a rebuild, which removes the rows of before and fills the index again.
func BenchmarkRebuild(b *testing.B) {
	h := newHarbour(b)
	n := store(b, h)
	x := h.open(filepath.Join(b.TempDir(), "index.db"))
	h.keep(x)
	h.caughtUp(x)
	used := usedCPU(b)
	for b.Loop() {
		if err := x.Rebuild(b.Context()); err != nil {
			b.Fatal(err)
		}
		h.caughtUp(x)
	}
	filled(b, n, used)
}

// filled reports what it took to apply a number of events in each turn.
func filled(b *testing.B, events int, used time.Duration) {
	b.Helper()
	b.ReportMetric(float64((usedCPU(b)-used).Microseconds())/float64(events*b.N), "cpu-µs/event")
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}

// store stores the events of runs, and returns how many those are.
func store(b *testing.B, h *harbour) int {
	b.Helper()
	const runs = 10_000
	n := 0
	for i := range runs {
		for _, e := range made(acme(fmt.Sprintf("run-%07d", i)), noon.Add(time.Duration(i)*time.Second), func(q *messages.RunQueued, _ *messages.AgentResult) {
			q.Input = strings.Repeat("and more ", 20)
		}) {
			body, err := json.Marshal(e)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := h.js.PublishAsync(e.Ref().EventSubject(e.Name()), body, jetstream.WithStallWait(patience)); err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	<-h.js.PublishAsyncComplete()
	return n
}
