//go:build unix

package index_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/observability/index"
)

// usedCPU is the processor time of this process so far: on a busy machine it tells more than the clock.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Benchmark of applying: how many events a second, in full batches of runs whose events come together, and one event at a time.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{500, 7, 1} {
		b.Run(fmt.Sprintf("events=%d", size), func(b *testing.B) {
			x := newHarbour(b).open(filepath.Join(b.TempDir(), "index.db"))
			if err := x.Prepare(b.Context()); err != nil {
				b.Fatal(err)
			}
			var waiting []messages.Event
			position, runs, used := uint64(0), 0, time.Duration(0)
			for b.Loop() {
				for ; len(waiting) < size; runs++ {
					waiting = append(waiting, made(acme(fmt.Sprintf("run-%07d", runs)), noon.Add(time.Duration(runs)*time.Second),
						func(q *messages.RunQueued, _ *messages.AgentResult) { q.Input = strings.Repeat("and more ", 20) })...)
				}
				batch := make([]index.Placed, size)
				for i := range batch {
					batch[i] = index.NewPlaced(waiting[i], position+uint64(i)+1)
				}
				waiting = waiting[size:]
				began := usedCPU(b)
				if err := x.Apply(b.Context(), position, position+uint64(size), batch...); err != nil {
					b.Fatal(err)
				}
				used += usedCPU(b) - began
				position += uint64(size)
			}
			b.ReportMetric(float64(used.Microseconds())/float64(position), "cpu-µs/event")
			b.ReportMetric(float64(position)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
