package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// The processes of a measurement are this test binary again.
func TestMain(m *testing.M) {
	if role := os.Getenv(measure.RoleVariable); role != "" {
		if err := measure.Play(context.Background(), testEnv().Players(), role, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func testEnv() stage.Env { return stage.Env{Log: slog.New(slog.DiscardHandler), Get: os.Getenv} }

// tinyPlan is enough to see that everything is measured, not how fast it is.
func tinyPlan() plan {
	return plan{
		Limit: 5 * time.Minute, Warmup: 10, Rounds: 1, Runs: 50, Slots: 16, Submitters: 4, LatencyRuns: 5, CapacityRuns: 20,
		ModelDelay: 50 * time.Millisecond, AdmissionSubmits: 10, FirstEvents: 3, Watchers: 20, WatchersPerRun: 10,
		Backlog: 50, FairRuns: 3, FairSlots: 4, FairDelay: time.Millisecond, Retained: []int{20, 60},
		Lengths: []int{4, 8}, LongSteps: 16, Tenants: 5, WideRuns: 20, Workers: []int{1, 2}, FleetRuns: 20,
		Retention: 100 * time.Millisecond, Copies: []int{20_000},
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
	if err := measureParts(t.Context(), tinyPlan(), "", profile, &out, testEnv()); err != nil {
		t.Fatal(err)
	}
	got := lines(t, out.Bytes())
	var names []any
	for _, l := range got {
		names = append(names, l["name"])
	}
	want := []any{
		"submit", "throughput", "floor", "latency", "latency", "capacity", "fairness",
		"admission", "admission", "admission", "firstEvent", "firstEvent", "firstEvent", "watchers", "whole", "long", "long", "wide", "wide", "fleet", "fleet",
		"retention", "growth", "growth", "growthSettled", "growthOfFirst", "summary",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("lines (-want +got):\n%s", diff)
	}
	ours, floor, capacity, watchers, whole, summary := got[1], got[2], got[5], got[13], got[14], got[len(got)-1]
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
	for _, l := range got[3:5] {
		// Its runs are whole: a client that saw none would not have ended, and one that read before the end fails.
		if l["floorSubmitToFinishedEventP50Ms"].(float64) <= 0 || l["floorSubmitToResultP50Ms"].(float64) <= 0 || l["latencyOfFloor"].(float64) <= 0 {
			t.Errorf("the floor was not measured: %v", l)
		}
	}
	if capacity["ofIdeal"].(float64) < 1 || capacity["workerPeakResidentMb"].(float64) < 10 {
		t.Errorf("a worker was faster or smaller than possible: %v", capacity)
	}
	if watchers["watchers"] != 20.0 || watchers["goroutinesAfter"].(float64) > watchers["goroutinesBefore"].(float64) {
		t.Errorf("watchers leave something behind: %v", watchers)
	}
	sum := 0.0
	for _, part := range []string{"work", "servers", "redis", "dispatcher", "audit"} {
		cpu := whole[part+"CpuMicrosPerRun"].(float64)
		if sum += cpu; cpu <= 0 && part != "redis" {
			t.Errorf("the %s was not counted: %v", part, whole)
		}
	}
	if all := whole["allCpuMicrosPerRun"].(float64); math.Abs(all-sum) > 1 {
		t.Errorf("all is %v, its parts are %v: %v", all, sum, whole)
	}
	for _, follower := range []string{"dispatcher", "audit"} { // each receives every event; the dispatcher for its index and its metrics
		if whole[follower+"MessagesFromServerPerRun"].(float64) < 17 || whole[follower+"PeakResidentMb"].(float64) < 10 {
			t.Errorf("the %s was not counted: %v", follower, whole)
		}
	}
	if n := len(summary["targets"].([]any)); n != 9 {
		t.Errorf("%d targets: %v", n, summary)
	}
	for i, want := range []map[string]any{
		{"name": "long", "steps": 4.0, "runs": 4.0},
		{"name": "long", "steps": 8.0, "runs": 2.0},
		{"name": "wide", "tenants": 1.0, "runs": 20.0},
		{"name": "wide", "tenants": 5.0, "runs": 20.0},
		{"name": "fleet", "workers": 1.0, "runs": 20.0},
		{"name": "fleet", "workers": 2.0, "runs": 20.0},
	} {
		at := got[15+i]
		for k, v := range want {
			if at[k] != v {
				t.Errorf("%s is not %v: %v", k, v, at)
			}
		}
		for _, what := range []string{"workCpuMicros", "dispatcherCpuMicros", "serversCpuMicros", "messagesToServer", "runsPerSecond", "workPeakResidentMb"} {
			if at[what].(float64) <= 0 {
				t.Errorf("%s was not measured: %v", what, at)
			}
		}
	}
	if at := got[21]; at["runs"] != 50.0 || at["purgedOfEnded"].(float64) <= 0 || at["allCpuMicrosWithoutPurge"].(float64) <= 0 {
		t.Errorf("the purges were not measured: %v", at)
	}
	for i, n := range []float64{20, 60} {
		at := got[22+i]
		if at["retained"] != n || at["natsDiskBytesPerRun"].(float64) < 1000 || at["indexDiskBytesPerRun"].(float64) <= 0 {
			t.Errorf("not %v runs are retained: %v", n, at)
		}
		if _, rested := at["natsSettledMb"]; rested != (n == 60) {
			t.Errorf("NATS at rest is not measured once, at the end: %v", at)
		}
		for _, what := range []string{"workCpuMicrosPerRun", "natsMb", "natsRestartedMb", "sweepSeconds", "doctorRunsSeconds", "listMs", "statsMs", "logMs", "indexRebuildEventsPerSecond", "natsRestartSeconds"} {
			if at[what].(float64) <= 0 {
				t.Errorf("%s was not measured: %v", what, at)
			}
		}
	}
	for _, suffix := range []string{"", ".servers", ".floor", ".floor.servers", ".allocs", ".whole", ".whole.servers", ".whole.dispatcher", ".whole.audit"} {
		if info, err := os.Stat(profile + suffix); err != nil || info.Size() == 0 {
			t.Errorf("profile %q: %v", suffix, err)
		}
	}
	nothingLeft(t)
}

// A fleet on a cluster with its streams divided does the same, and each process sees all of it.
func TestDivided(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	env := testEnv()
	env.Replicas, env.Partitions = 3, 2
	for _, part := range []string{partWhole, partThroughput} {
		var out bytes.Buffer
		if err := measureParts(t.Context(), tinyPlan(), part, "", &out, env); err != nil {
			t.Fatal(err)
		}
		for _, l := range lines(t, out.Bytes()) {
			switch l["name"] {
			case "whole":
				if l["replicas"] != 3.0 || l["partitions"] != 2.0 || l["dispatcherMessagesFromServerPerRun"].(float64) < 17 || l["auditMessagesFromServerPerRun"].(float64) < 17 {
					t.Errorf("the dispatcher or the auditor did not get each event: %v", l)
				}
			case "throughput":
				if l["replicas"] != 3.0 || l["partitions"] != 2.0 || l["appendsPerRun"] != 6.0 || l["eventsPerRun"].(float64) < 12 {
					t.Errorf("a run is not the workload: %v", l)
				}
			case "floor":
				if l["replicas"] != 3.0 || l["partitions"] != 1.0 || l["throughputOfFloor"].(float64) <= 0 {
					t.Errorf("the floor was not measured, undivided: %v", l)
				}
			}
		}
	}
	nothingLeft(t)
}

// Each subject that a run leaves takes some 100 bytes, so bundles show.
func TestMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	heap := map[bool]float64{}
	for _, bundled := range []bool{false, true} {
		t.Setenv(stage.BundlesVariable, strconv.FormatBool(bundled))
		p := tinyPlan()
		p.HeapProfile = filepath.Join(t.TempDir(), "heap")
		var out bytes.Buffer
		if err := measureParts(t.Context(), p, partMemory, "", &out, testEnv()); err != nil {
			t.Fatal(err)
		}
		got := lines(t, out.Bytes())
		if len(got) != 2 || got[0]["runs"] != float64(p.Copies[0]) || got[0]["natsSettledMb"].(float64) < 10 {
			t.Fatalf("the memory of NATS was not measured: %s", &out)
		}
		heap[bundled] = got[0]["natsRestartedHeapBytesPerRun"].(float64)
		if info, err := os.Stat(p.HeapProfile); err != nil || info.Size() == 0 {
			t.Errorf("profile: %v", err)
		}
	}
	if heap[false] < heap[true]+300 {
		t.Errorf("NATS holds %v bytes of a run, and %v of one with bundles", heap[false], heap[true])
	}
	nothingLeft(t)
}

// The bounds are twenty times the targets: it fails for a process that is busy with nothing, however loaded the machine is.
func TestIdle(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := tinyPlan()
	p.IdleSettle, p.IdleFor = 2*time.Second, 3*time.Second
	var out bytes.Buffer
	if err := measureParts(t.Context(), p, partIdle, "", &out, testEnv()); err != nil {
		t.Fatal(err)
	}
	got := lines(t, out.Bytes())
	if len(got) != 5 {
		t.Fatalf("%s", &out)
	}
	for _, l := range got[:4] {
		if l["cpuPercentOfACore"].(float64) > 20 || l["wakeupsPerSecond"].(float64) > 2000 {
			t.Errorf("not idle: %v", l)
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
	err := measureParts(t.Context(), p, partCapacity, "", &bytes.Buffer{}, testEnv())
	if err == nil || !strings.Contains(err.Error(), errLimit.Error()) {
		t.Errorf("error is %v", err)
	}
	if took := time.Since(begun); took > p.Limit+measure.KillGrace {
		t.Errorf("it took %s", took)
	}
	nothingLeft(t)
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "everything"}, `-only: "everything" is not one of throughput, latency, capacity, fairness, submit, admission, whole, long, wide, fleet, retention, memory, growth, idle`},
		{[]string{"-retained", "200,100"}, `-retained: "200,100" must be numbers that increase, such as 1000,5000`},
		{[]string{"-calls", "0"}, "-calls must be at least 1"},
		{[]string{"-only", "whole", "-replicas", "2"}, "-replicas must be 1, 3 or 5"},
		{[]string{"-only", "whole", "-partitions", "65"}, "-partitions must be from 1 to 64"},
		{[]string{"-only", "latency", "-partitions", "4"}, "-replicas and -partitions need -only whole or -only throughput"},
		{[]string{"throughput"}, `unexpected argument "throughput"`},
		{[]string{"-fast"}, "flag provided but not defined: -fast"},
	} {
		err := run(t.Context(), tc.args, &bytes.Buffer{}, &bytes.Buffer{}, testEnv())
		if err == nil || err.Error() != tc.want {
			t.Errorf("%q: error is %v", tc.args, err)
		}
	}
}

func TestUnknownRole(t *testing.T) {
	err := measure.Play(t.Context(), testEnv().Players(), "king", strings.NewReader(""), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), `"king" is not a role`) {
		t.Errorf("error is %v", err)
	}
}
