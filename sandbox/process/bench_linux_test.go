//go:build amd64 || arm64

package process_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/sandbox/process"
)

const (
	startGoal = 6 * time.Millisecond // more than a plain start, median
	enough    = 100                  // starts, for a median that is judged
)

// BenchmarkStart measures a process from its start to its end in the sandbox, and a plain one beside each. It reports medians, and fails if that
// of the sandbox is more than startGoal above the other. The child is longshore-sandbox, or the program that LONGSHORE_BINARY names, such
// as longshore itself.
func BenchmarkStart(b *testing.B) {
	for name, cfg := range map[string]process.Config{"landlock": {NoNamespaces: true}, "namespaces": {Require: process.LayerNamespaces}} {
		b.Run(name, func(b *testing.B) {
			path, sum := childOfBench(b)
			n, err := process.NewWith(b.Context(), cfg, path, sum)
			if err != nil {
				b.Skip("left out: ", err)
			}
			if n.StartedBy() != path {
				b.Fatal("started by ", n.StartedBy())
			}
			var plain, sandboxed []time.Duration
			for b.Loop() {
				b.StopTimer()
				plain = append(plain, timed(b, func() error { return exec.Command("/bin/true").Run() }))
				b.StartTimer()
				sandboxed = append(sandboxed, timed(b, func() error {
					_, err := n.Run(b.Context(), process.Command{Path: "/bin/true"})
					return err
				}))
			}
			floor, median := quantile(plain, 50), quantile(sandboxed, 50)
			for unit, d := range map[string]time.Duration{
				"ms-plain": floor, "ms-plain-p95": quantile(plain, 95), "ms-median": median, "ms-p95": quantile(sandboxed, 95), "ms-more": median - floor,
			} {
				b.ReportMetric(float64(d.Microseconds())/1e3, unit)
			}
			if len(sandboxed) >= enough && median-floor > startGoal {
				b.Errorf("a start takes %v more than a plain one, the goal is %v: is this machine busy?", median-floor, startGoal)
			}
		})
	}
}

func childOfBench(b *testing.B) (path, sum string) {
	b.Helper()
	if path = os.Getenv("LONGSHORE_BINARY"); path == "" {
		var err error
		if path, err = smallStarter(); err != nil {
			b.Fatal(err)
		}
	}
	return path, sumOf(b, path)
}

func timed(b *testing.B, do func() error) time.Duration {
	b.Helper()
	began := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func quantile(took []time.Duration, percent int) time.Duration {
	slices.Sort(took)
	return took[len(took)*percent/100]
}
