//go:build unix

package index_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Benchmark of filling an index from what is stored, as after a rebuild: events a second, read from NATS in the same process, and the
// processor time of both.
func BenchmarkFill(b *testing.B) {
	const runs = 10_000
	h := newHarbour(b)
	n := 0
	for i := range runs {
		for _, e := range made(acme(fmt.Sprintf("run-%07d", i)), noon.Add(time.Duration(i)*time.Second), func(q *messages.RunQueued, _ *messages.AgentResult) {
			q.Input = strings.Repeat("and more ", 20)
		}) {
			body, err := json.Marshal(e)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := h.js.PublishAsync(e.Ref().EventSubject(e.Name()), body); err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	<-h.js.PublishAsyncComplete()
	used := usedCPU(b)
	for b.Loop() {
		x := h.open(filepath.Join(b.TempDir(), "index.db"))
		stop := h.keep(x)
		h.caughtUp(x)
		stop()
	}
	b.ReportMetric(float64((usedCPU(b)-used).Microseconds())/float64(n*b.N), "cpu-µs/event")
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
}
