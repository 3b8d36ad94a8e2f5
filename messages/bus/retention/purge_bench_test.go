//go:build unix

package retention_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/retention"
)

// Benchmark of purging runs as Retain does, with a server in the same process: runs a second, and the processor time of both, which
// is to be far less than a run costs. The runs are in the order in which they ended, as their ends come.
func BenchmarkPurge(b *testing.B) {
	const runs, entries, atOnce = 4000, 6, 64
	house, nc := bustest.OpenNew(b)
	js := bustest.NewJetStream(b, nc)
	kept := retention.New(house, bustest.Logs(house))
	ref := func(round, i int) messages.Ref {
		return messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d-%05d", round, i)}
	}
	body := []byte(strings.Repeat("x", 2000))
	var used time.Duration
	rounds := 0
	for b.Loop() {
		b.StopTimer()
		for e := range entries {
			for i := range runs {
				subjects := []string{ref(rounds, i).LogSubject()}
				if e == 0 {
					subjects = append(subjects, ref(rounds, i).LogEntriesSubject())
				}
				for _, s := range subjects {
					if _, err := js.PublishAsync(s, body, jetstream.WithStallWait(time.Minute)); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		<-js.PublishAsyncComplete()
		b.StartTimer()
		began := usedCPU(b)
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i := range runs {
			group.Go(func() error { return kept.Purge(b.Context(), ref(rounds, i)) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		used += usedCPU(b) - began
		rounds++
	}
	if n := bustest.StreamLength(b, nc, bus.StreamRuns); n != 0 {
		b.Errorf("%d entries are left", n)
	}
	b.ReportMetric(float64(used.Microseconds())/float64(rounds*runs), "cpu-µs/run")
	b.ReportMetric(float64(rounds*runs)/b.Elapsed().Seconds(), "runs/s")
}

// usedCPU is the processor time of this process so far.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
