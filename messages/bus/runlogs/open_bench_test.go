package runlogs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Benchmark of a pass with ten open runs and more and more that have ended, beside reading the head of each log.
func BenchmarkOpenRuns(b *testing.B) {
	bs, _ := bustest.OpenNew(b)
	logs := bustest.Logs(bs)
	put := func(id string, phase record.Phase) {
		e := bustest.Step(id, 1)
		e.Head.Phase = phase
		bustest.MustAppend(b, logs, yardRun(id), 0, e)
	}
	look := func(ctx context.Context, run messages.Ref) (runlog.Swept, error) {
		last, ok, err := logs.Last(ctx, run)
		ended := !ok || last.Head.Phase == record.PhaseFinished
		return runlog.Swept{Ended: ended, Over: ended, Seq: last.Seq}, err
	}
	o := runlogs.OpenRuns{Logs: logs, Keep: true, Settle: time.Nanosecond, Look: look}
	for i := range 10 {
		put(fmt.Sprintf("open-%d", i), record.PhaseParked)
	}
	stored := 0
	for _, retained := range []int{100, 1000, 10_000} {
		for ; stored < retained; stored++ {
			put(fmt.Sprintf("ended-%d", stored), record.PhaseFinished)
		}
		for range 3 { // the ends are looked at once
			if _, err := o.Each(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("retained=%d/open", retained), func(b *testing.B) {
			read := 0
			for b.Loop() {
				did, err := o.Each(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				read += did.Read
			}
			b.ReportMetric(float64(read)/float64(b.N), "entries/op")
		})
		b.Run(fmt.Sprintf("retained=%d/all", retained), func(b *testing.B) {
			for b.Loop() {
				for run, err := range logs.Runs(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
					if _, err := look(b.Context(), run); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
