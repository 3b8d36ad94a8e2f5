//go:build unix

// Package fleet_test runs the real binary: processes that are killed, stopped and told to drain, against servers that
// go away. What one process can show is tested in package worker.
package fleet_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/tools"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// binary is the longshore command, built from this tree.
var binary string

// Variables that make this test binary a process of the fleet.
const (
	roleVariable = "LONGSHORE_TEST_ROLE" // worker: one with the tools of this package
	gateVariable = "LONGSHORE_TEST_GATE" // the URL that the tool "gate" asks

	minuteVariable = "LONGSHORE_TEST_MINUTE" // how long a minute of rates lasts
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "worker" {
		os.Exit(workerRole())
	}
	// These tests wait for processes, which leave most of the cores idle: more of them run at once than there are cores.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
	dir, err := os.MkdirTemp("", "longshore-fleet-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "longshore")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "github.com/longshore-run/longshore")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build longshore: %v\n%s", err, out)
		os.RemoveAll(dir)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		if err := postgrestest.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// harbour is the example program in Go that serves tools, built once for all tests.
var harbour = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(binary), "harbour")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "github.com/longshore-run/longshore/deploy/examples/remote/go")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the example: %w\n%s", err, out)
	}
	return program, nil
})

// workerRole is `longshore worker` with more tools.
func workerRole() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var s settings.Worker
	if err := settings.Load(&s, os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	log, err := observability.NewLogger(os.Stderr, observability.LogConfig{Redact: settings.Secrets(s)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	parts := fleet.Parts{Tools: []tools.Tool{crash{}, panics{}, gate{os.Getenv(gateVariable)}}}
	if minute := os.Getenv(minuteVariable); minute != "" {
		if parts.Minute, err = time.ParseDuration(minute); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	for name, effect := range map[string]messages.Effect{"moor": messages.EffectIdempotent, "cast_off": messages.EffectOnce} {
		parts.Tools = append(parts.Tools, buoy{name, effect, os.Getenv(gateVariable), s.Name})
	}
	if err := fleet.Worker(ctx, s, "test", log, parts, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// crash is a tool that takes its worker down.
type crash struct{}

func (crash) Spec() messages.ToolSpec {
	return messages.ToolSpec{
		Name: "crash", Description: "Ends the process.", Effect: messages.EffectIdempotent,
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

func (crash) Call(context.Context, tools.Call) (tools.Result, error) {
	os.Exit(crashed)
	panic("unreachable")
}

// crashed is how a worker exits that worked the tool crash.
const crashed = 3

// panics is a tool with a defect.
type panics struct{}

func (panics) Spec() messages.ToolSpec {
	return messages.ToolSpec{
		Name: "panics", Description: "Panics.", Effect: messages.EffectRead,
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

func (panics) Call(context.Context, tools.Call) (tools.Result, error) { panic("the defect") }

// gate is a tool that asks the test and is held there.
type gate struct{ url string }

func (gate) Spec() messages.ToolSpec {
	return messages.ToolSpec{
		Name: "gate", Description: "Waits for the test.", Effect: messages.EffectIdempotent,
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

func (g gate) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, strings.NewReader(c.Key))
	if err != nil {
		return tools.Result{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tools.Result{}, err
	}
	defer resp.Body.Close()
	return tools.Text("passed"), nil
}
