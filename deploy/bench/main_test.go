package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// The processes of a measurement are this test binary again.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(context.Background(), role, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// tinyPlan is enough to see that everything is measured, not how fast it is.
func tinyPlan() plan {
	return plan{
		Limit: time.Minute, Warmup: 10, Rounds: 1, Runs: 50, Slots: 16, Submitters: 4, LatencyRuns: 5, CapacityRuns: 20,
		ModelDelay: 50 * time.Millisecond, AdmissionSubmits: 10, FirstEvents: 3, Watchers: 20, WatchersPerRun: 10,
		Backlog: 50, FairRuns: 3, FairSlots: 4, FairDelay: time.Millisecond,
	}
}

func lines(t *testing.T, out []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var line map[string]any
		if err := dec.Decode(&line); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		all = append(all, line)
	}
	return all
}

func TestMeasure(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	profile := t.TempDir() + "/cpu"
	if err := measure(t.Context(), tinyPlan(), "", profile, &out, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	got := lines(t, out.Bytes())
	var names []any
	for _, l := range got {
		names = append(names, l["name"])
	}
	want := []any{
		"submit", "throughput", "floor", "latency", "latency", "capacity", "fairness",
		"admission", "admission", "admission", "firstEvent", "firstEvent", "firstEvent", "watchers", "summary",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("lines (-want +got):\n%s", diff)
	}
	ours, floor, capacity, watchers, summary := got[1], got[2], got[5], got[13], got[14]
	// 3 model calls and 2 tool calls: a claim with the first step, one entry for each of the others but the last
	// reply, and that with the end.
	saved := ours["statesSavedPerRun"].(float64) // with the second step, and with the third unless that comes at once
	if ours["appendsPerRun"] != 6.0 || saved < 1 || saved > 2 || ours["eventsPerRun"].(float64) < 12 {
		t.Errorf("a run is not the workload: %v", ours)
	}
	for _, l := range []map[string]any{ours, floor} {
		// Each append, event, ack and pulled task is a message to or from the server.
		if n := l["messagesToServerPerRun"].(float64); n < 6+17+1 || n > 6+17+3 {
			t.Errorf("%s: %v messages to the server per run", l["name"], n)
		}
		if l["runsPerSecond"].(float64) <= 0 || l["workCpuMicrosPerRun"].(float64) <= 0 || l["serversCpuMicrosPerRun"].(float64) <= 0 {
			t.Errorf("nothing was measured: %v", l)
		}
	}
	if capacity["ofIdeal"].(float64) < 1 || capacity["workerPeakResidentMb"].(float64) < 10 {
		t.Errorf("a worker was faster or smaller than possible: %v", capacity)
	}
	if watchers["watchers"] != 20.0 || watchers["goroutinesAfter"].(float64) > watchers["goroutinesBefore"].(float64) {
		t.Errorf("watchers leave something behind: %v", watchers)
	}
	if n := len(summary["targets"].([]any)); n != 6 {
		t.Errorf("%d targets: %v", n, summary)
	}
	for _, suffix := range []string{"", ".servers", ".floor", ".floor.servers", ".allocs"} {
		if info, err := os.Stat(profile + suffix); err != nil || info.Size() == 0 {
			t.Errorf("profile %q: %v", suffix, err)
		}
	}
	nothingLeft(t)
}

// nothingLeft checks that no file is left, and on Linux that no process still works in the folder of the measurement.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if dir, err := os.Readlink(f); err == nil && strings.HasPrefix(dir, os.TempDir()) {
			t.Errorf("left running: %s in %s", f, dir)
		}
	}
}

func TestMeasureEndsWithItsLimit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := tinyPlan()
	p.Limit, p.ModelDelay = 2*time.Second, time.Hour
	begun := time.Now()
	err := measure(t.Context(), p, partCapacity, "", &bytes.Buffer{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), errLimit.Error()) {
		t.Errorf("error is %v", err)
	}
	if took := time.Since(begun); took > p.Limit+killGrace {
		t.Errorf("it took %s", took)
	}
	nothingLeft(t)
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "everything"}, `-only: "everything" is not one of throughput, latency, capacity, fairness, submit, admission`},
		{[]string{"throughput"}, `unexpected argument "throughput"`},
		{[]string{"-fast"}, "flag provided but not defined: -fast"},
	} {
		err := run(t.Context(), tc.args, &bytes.Buffer{}, &bytes.Buffer{}, slog.New(slog.DiscardHandler))
		if err == nil || err.Error() != tc.want {
			t.Errorf("%q: error is %v", tc.args, err)
		}
	}
}

func TestUnknownRole(t *testing.T) {
	err := play(t.Context(), "king", strings.NewReader(""), &bytes.Buffer{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), `"king" is not a role`) {
		t.Errorf("error is %v", err)
	}
}
