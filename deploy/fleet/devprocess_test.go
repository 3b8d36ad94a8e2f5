//go:build unix

package fleet_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/deploy/fleet"
)

// A taken port is reported with its flag, or the next free one is used if any will do.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	got := call(t, nil, "dev", "--nats-addr", taken, "--addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0", "--data", t.TempDir())
	if want := "longshore: --nats-addr " + taken + ": something listens there already"; got.code != 2 || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v, want %q", got, want)
	}
	other, err := fleet.FreeAddress(t.Context(), "--addr", taken, false)
	if err != nil || other == taken || !strings.HasPrefix(other, "127.0.0.1:") {
		t.Errorf("%q, %v", other, err)
	}
	if l, err := net.Listen("tcp", other); err != nil {
		t.Error(err)
	} else {
		l.Close()
	}
	if same, err := fleet.FreeAddress(t.Context(), "--addr", "127.0.0.1:0", true); err != nil || same != "127.0.0.1:0" {
		t.Errorf("%q, %v", same, err)
	}
}

// A file of an agent counts as soon as it is written; one that is wrong says why and changes nothing.
func TestDevReloadsAgents(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "berths.yaml")
	put := func(spec string) {
		t.Helper()
		text := "apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: berths}\nspec: {" + spec + "}\n"
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	put("maxSteps: 3")
	dev := spawn(t, "dev", nil, binary, "dev", "--data", t.TempDir(), "--agents", dir, "--addr", "127.0.0.1:0",
		"--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
	ready := dev.line("longshore is ready: ")
	put("maxStep: 4")
	dev.line("agent files are wrong", "berths.yaml", "did you mean maxSteps?")
	put("maxSteps: 4")
	dev.line("agent reloaded from its file", `"agent":"berths"`)
	address := strings.Split(strings.TrimPrefix(ready, "longshore is ready: "), ", ")[1]
	if got := call(t, []string{"NATS_URL=" + address}, "agents", "get", "berths"); got.code != 0 || !strings.Contains(got.stdout, "maxSteps: 4") {
		t.Errorf("%+v", got)
	}
	dev.signal(syscall.SIGINT)
	dev.line("Stopping: there are no runs to wait for.")
	if code := dev.wait(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// Ctrl-C says how many runs it waits for; they end their step, and the process ends.
func TestDevSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		runs int
		says string
	}{
		{1, "Stopping: waiting for 1 run to end its current step, at most 25s; it continues at the next start. Press Ctrl-C again to end at once."},
		{3, "Stopping: waiting for 3 runs to end their current step, at most 25s; they continue at the next start. Press Ctrl-C again to end at once."},
	} {
		t.Run(strconv.Itoa(tc.runs), func(t *testing.T) {
			t.Parallel()
			model := newModel(t, func(*modelCall) reply { return reply{Hold: true} })
			dev := spawn(t, "dev", append(model.env(apiKey), "LONGSHORE_DRAIN_TIMEOUT=25s"), binary, "dev", "--data", t.TempDir(),
				"--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
			address := strings.Split(strings.TrimPrefix(dev.line("longshore is ready: "), "longshore is ready: "), ", ")[1]
			var calls []*modelCall
			for i := range tc.runs {
				if got := call(t, []string{"NATS_URL=" + address}, "submit", "work "+strconv.Itoa(i)); got.code != 0 {
					t.Fatalf("%+v", got)
				}
				calls = append(calls, model.next(t))
			}
			dev.signal(syscall.SIGINT)
			if said := dev.line("Stopping: "); said != tc.says {
				t.Errorf("it says %q, want %q", said, tc.says)
			}
			dev.line("draining: waiting for the runs") // else a run may begin its next step
			for _, c := range calls {
				c.answer <- turn(c, 2)
			}
			if code := dev.wait(); code != 0 {
				t.Errorf("it ended with %d", code)
			}
		})
	}
}
