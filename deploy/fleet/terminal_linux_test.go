package fleet_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/ptytest"
)

// terminal is a terminal with a program in the foreground, as a person has it.
type terminal struct {
	*ptytest.PTY
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
}

// foreground starts longshore on a terminal. It is killed when the test ends.
func foreground(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	f := &terminal{PTY: ptytest.Open(t), t: t, cmd: exec.Command(binary, args...), done: make(chan struct{})}
	f.cmd.Dir = t.TempDir()
	f.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "TERM=xterm", "LONGSHORE_ENCRYPTION=off"}, env...)
	f.cmd.Stdin, f.cmd.Stdout, f.cmd.Stderr = f.Slave, f.Slave, f.Slave
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that Ctrl-C is a signal
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		_ = f.cmd.Wait() // the exit code tells
	}()
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill()
		<-f.done
		if t.Failed() {
			t.Logf("longshore %s showed:\n%s", args[0], f.Shown())
		}
	})
	return f
}

// waitFor waits for a text.
func (f *terminal) waitFor(text string) {
	f.t.Helper()
	f.Wait(text, func(shown string) bool { return strings.Contains(shown, text) })
}

// ends waits for the end of the program, and returns its exit code.
func (f *terminal) ends() int {
	f.t.Helper()
	select {
	case <-f.done:
		return f.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		f.t.Fatal("it does not end")
		return 0
	}
}

// On a terminal `longshore dev` tells a person where it is and what to do next, which works as printed; its log
// is lines to read. Ctrl-C says what it waits for.
func TestDevOnATerminal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		env   []string
		color bool
	}{
		{"in color", nil, true},
		{"without color", []string{"NO_COLOR="}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t, func(c *modelCall) reply {
				if c.Task == "Say hello" {
					return reply{Text: "Hello."}
				}
				return reply{Hold: true}
			})
			data := t.TempDir()
			dev := foreground(t, append(model.env(apiKey), tc.env...), "dev", "--data", data,
				"--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
			dev.waitFor("Stop: Ctrl-C\r\n")
			banner := regexp.MustCompile(`\r\n\r\n  In another terminal:\r\n    export (NATS_URL=nats://127\.0\.0\.1:\d+) LONGSHORE_CONSOLE_URL=http://127\.0\.0\.1:\d+\r\n    longshore run "Say hello"\r\n\r\n` +
				`  HTTP API: (http://127\.0\.0\.1:\d+)   Data: (\S+)   Stop: Ctrl-C\r\n`).FindStringSubmatch(dev.Shown())
			if banner == nil || banner[3] != data {
				t.Fatalf("the banner is %q", banner)
			}
			if got := call(t, []string{banner[1]}, "run", "Say hello"); got.code != 0 || got.stdout != "Hello.\n" {
				t.Errorf("the next command: %+v", got)
			}
			if resp, err := http.Get(banner[2] + "/healthz"); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("the HTTP API: %v, %v", resp, err)
			}
			if got := call(t, []string{banner[1]}, "submit", "work"); got.code != 0 {
				t.Fatalf("%+v", got)
			}
			held := model.next(t)
			dev.Press("\x03")
			dev.waitFor("Stopping: waiting for 1 run to end its current step, at most 30s; it continues at the next start. Press Ctrl-C again to end at once.\r\n")
			dev.waitFor("draining: waiting for the runs") // else the run may begin its next step
			held.answer <- turn(held, 2)
			if code := dev.ends(); code != 0 {
				t.Errorf("it ended with %d", code)
			}
			line := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d INFO worker: draining: waiting for the runs in hand to end their current step held=1 timeout=30s\r$`)
			shown := dev.Close()
			if tc.color {
				line = regexp.MustCompile(`(?m)^\x1b\[2m\d\d:\d\d:\d\d\x1b\[0m \x1b\[32mINFO\x1b\[0m \x1b\[2mworker:\x1b\[0m draining: waiting for the runs in hand to end their current step\x1b\[2m held=\x1b\[0m1\x1b\[2m timeout=\x1b\[0m30s\r$`)
			}
			if !line.MatchString(shown) || strings.Contains(shown, "\x1b") != tc.color || strings.Contains(shown, `{"`) {
				t.Errorf("it shows %q", shown)
			}
		})
	}
}

// Where its output is no terminal, `longshore dev` says that it is ready and logs JSON, as it is read by a program.
func TestDevInAPipe(t *testing.T) {
	t.Parallel()
	dev := spawn(t, "dev", nil, binary, "dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
	dev.line("No model is configured")
	dev.signal(syscall.SIGINT)
	if code := dev.wait(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	entries := 0
	for _, line := range dev.log() {
		if strings.Contains(line, "\x1b") || strings.Contains(line, "In another terminal") || strings.Contains(line, "export ") {
			t.Errorf("it writes %q", line)
		}
		if json.Valid([]byte(line)) {
			entries++
		} else if !strings.HasPrefix(line, "longshore is ready: ") && !strings.HasPrefix(line, "console: ") && !strings.HasPrefix(line, "Authentication is disabled: ") &&
			!strings.HasPrefix(line, "No model is configured: ") && !strings.HasPrefix(line, "Stopping: ") {
			t.Errorf("it writes %q, which is no log entry", line)
		}
	}
	if entries == 0 {
		t.Error("it writes no log entry")
	}
}

// A worker on a terminal says in a sentence what its stop waits for.
func TestWorkerOnATerminal(t *testing.T) {
	t.Parallel()
	w := open(t, longAckWait, func(*modelCall) reply { return reply{Hold: true} })
	worker := foreground(t, w.workerEnv("first"), "worker")
	w.submit("work")
	held := w.model.next(t)
	worker.Press("\x03")
	worker.waitFor("Stopping: waiting for 1 run to end its current step, at most 30s; it continues with another worker. Press Ctrl-C again to end at once.\r\n")
	worker.waitFor("draining: waiting for the runs") // else the run may begin its next step
	held.answer <- turn(held, 2)
	if code := worker.ends(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
