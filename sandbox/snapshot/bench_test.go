package snapshot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/sandbox/snapshot"
)

const (
	unchangedGoal = 50 * time.Millisecond // median, if no file has changed
	changedGoal   = 4                     // times what it takes to read and hash the file that has changed, beyond that
	enough        = 20                    // snapshots, for a median that is judged
)

// BenchmarkSnapshot saves a workspace of 10,000 files in 100 folders after a call that has changed none, or one of a size, and reads and hashes
// that file beside each. It reports medians, and fails beyond the goals. What a store takes is not in it.
func BenchmarkSnapshot(b *testing.B) {
	for _, bm := range []struct {
		name    string
		changed int // bytes of the file that changes; less than 0: none
	}{{"unchanged", -1}, {"1KiB", 1 << 10}, {"1MiB", 1 << 20}, {"16MiB", 16 << 20}} {
		b.Run(bm.name, func(b *testing.B) {
			dir := b.TempDir()
			folders, err := snapshot.NewFolders(snapshot.Config{Dir: dir, Store: &snapshot.Memory{}, Limits: snapshot.Limits{Files: 11_000}})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = folders.Close() }()
			f, err := folders.Of(messages.Ref{Tenant: "acme", Run: "r1"}, "c1")
			if err != nil {
				b.Fatal(err)
			}
			ws := f.Workspace(b.Context(), "")
			if err := ws.Write("first", nil); err != nil {
				b.Fatal(err)
			}
			at, err := filepath.Glob(filepath.Join(dir, ".claims", "*", "*"))
			if err != nil || len(at) != 1 {
				b.Fatal(at, err)
			}
			for i := range 10_000 {
				write(b, at[0], fmt.Sprintf("d%02d/file-%04d.txt", i%100, i), fmt.Sprint("file ", i))
			}
			time.Sleep(snapshot.Tick) // or the newest files would be read once more
			if _, err := f.Save(b.Context(), true); err != nil {
				b.Fatal(err)
			}
			content := make([]byte, max(0, bm.changed))
			changes := filepath.Join(at[0], "d00", "changes")
			var floor, took []time.Duration
			for n := 0; b.Loop(); n++ {
				ws.Touch(true)
				if bm.changed >= 0 {
					b.StopTimer()
					copy(content, strconv.Itoa(n))
					if err := os.WriteFile(changes, content, 0o600); err != nil {
						b.Fatal(err)
					}
					began := time.Now()
					data, err := os.ReadFile(changes)
					if err != nil || manifest.HashOf(data) == "" {
						b.Fatal(err)
					}
					floor = append(floor, time.Since(began))
					b.StartTimer()
				}
				began := time.Now()
				if saved, err := f.Save(b.Context(), true); err != nil || (saved != nil) != (bm.changed >= 0) {
					b.Fatal(saved, err)
				}
				took = append(took, time.Since(began))
			}
			goal, median := unchangedGoal, medianOf(took)
			b.ReportMetric(float64(median.Microseconds())/1e3, "ms-median")
			if bm.changed >= 0 {
				file := medianOf(floor)
				b.ReportMetric(float64(file.Microseconds())/1e3, "ms-file")
				goal += changedGoal * file
			}
			if len(took) >= enough && median > goal {
				b.Errorf("a snapshot takes %v, the goal is %v: is this machine busy?", median, goal)
			}
		})
	}
}

func medianOf(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}
