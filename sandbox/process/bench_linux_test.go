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

// BenchmarkStart measures a process from its start to its end, with and without the sandbox, and reports medians. The child of the
// sandbox is longshore-sandbox, or the program that LONGSHORE_BINARY names, such as longshore itself.
func BenchmarkStart(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		median(b, func() error { return exec.Command("/bin/true").Run() })
	})
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
			median(b, func() error {
				_, err := n.Run(b.Context(), process.Command{Path: "/bin/true"})
				return err
			})
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

func median(b *testing.B, do func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-median")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1e3, "ms-p95")
}
