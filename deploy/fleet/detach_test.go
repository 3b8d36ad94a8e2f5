//go:build unix

package fleet_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// exitInterrupted is how a command ends that a person or an init system stopped.
const exitInterrupted = 130

// followers are the consumers of those who follow a run. A dispatcher has some of its own for the events of all.
func (w *town) followers() map[string]bool {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		w.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range append(bustest.EventStreams(w.t, w.nc), bus.StreamLogs) {
		stream, err := js.Stream(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		list := stream.ListConsumers(w.t.Context())
		for info := range list.Info() {
			if filter := info.Config.FilterSubject; filter != "" && !strings.HasPrefix(filter, "events.*") && filter != bus.EveryEvent {
				names[name+" "+info.Name] = true
			}
		}
		if err := list.Err(); err != nil {
			w.t.Fatal(err)
		}
	}
	return names
}

// awaitFollowers waits until there are so many consumers that were not there before.
func (w *town) awaitFollowers(t *testing.T, p *process, before map[string]bool, n int) {
	t.Helper()
	deadline, look := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for {
		now := w.followers()
		maps.DeleteFunc(now, func(name string, _ bool) bool { return before[name] })
		if len(now) >= n {
			return
		}
		select {
		case <-look.C:
		case <-p.done:
			t.Fatalf("%s ended with %d", p.name, p.code())
		case <-deadline:
			t.Fatalf("%s follows nothing", p.name)
		}
	}
}

const asks = -1

// awaitAsked waits until a process has asked for a result when there is one.
func awaitAsked(t *testing.T, p *process, asked *nats.Subscription) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		m, err := asked.NextMsg(time.Until(end))
		if err != nil {
			t.Fatalf("%s asks for no result: %v", p.name, err)
		}
		if strings.HasSuffix(m.Subject, ".result") && bytes.Contains(m.Data, []byte(`"wait":`)) {
			return
		}
	}
}

// What follows a run, and is stopped, says that the run continues, and ends as an interrupted command does.
func TestStoppedCommandsDetach(t *testing.T) {
	w := open(t, 30*time.Second, nil) // without a worker: runs stay queued
	dir := t.TempDir()
	suite, lines, task := filepath.Join(dir, "suite.yaml"), filepath.Join(dir, "lines.jsonl"), filepath.Join(dir, "task.json")
	for file, text := range map[string]string{
		suite: "apiVersion: longshore.run/v1\nkind: EvalSuite\nmetadata: {name: s}\nspec:\n  cases:\n    - {name: one, input: x, expect: {contains: [x]}}\n",
		lines: `{"custom_id": "a", "input": "x"}` + "\n",
		task:  `{"input": "x"}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"NATS_URL=" + w.nats}
	if code := spawn(t, "submit", env, binary, "submit", "x", "--id", "slow").wait(); code != 0 {
		t.Fatalf("submit ended with %d", code)
	}
	const follow = "Detached; run slow is still running. Follow: longshore watch slow. Stop: longshore cancel slow."
	for name, tt := range map[string]struct {
		args      []string
		followers int    // asks: it asks for a result, and waits for the answer
		said      string // when it has no follower: what it says once it follows
		want      string
	}{
		"run":           {[]string{"run", "x"}, 1, "", "Detached; run "},
		"runs":          {[]string{"run", "--file", task, "--file", task}, 2, "", "Detached; runs "},
		"watch":         {[]string{"watch", "slow"}, 1, "", follow},
		"watch JSON":    {[]string{"watch", "slow", "-o", "json"}, 1, "", follow},
		"result --wait": {[]string{"result", "slow", "--wait"}, asks, "", follow},
		"logs -f":       {[]string{"logs", "slow", "-f"}, 1, "", follow},
		"batch --wait": {
			[]string{"batch", "submit", lines, "--id", "BATCH", "--wait"},
			0, "submitted: follow them",
			"Detached; batch BATCH is still running. Follow: longshore batch status BATCH --wait. Stop: longshore batch cancel BATCH.",
		},
		"eval": {
			[]string{"eval", suite},
			asks, "",
			"Detached; the runs of the suite that were submitted are still running. See them: longshore list. Stop one: longshore cancel ID.",
		},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				fill := strings.NewReplacer("BATCH", "b-"+sig.String()).Replace
				args := make([]string, len(tt.args))
				for i, a := range tt.args {
					args[i] = fill(a)
				}
				before := w.followers()
				asked, err := w.nc.SubscribeSync("longshore.>")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = asked.Unsubscribe() }()
				if err := w.nc.Flush(); err != nil {
					t.Fatal(err)
				}
				p := spawn(t, name, env, binary, args...)
				if tt.said != "" {
					p.line(tt.said)
				}
				if tt.followers == asks {
					awaitAsked(t, p, asked)
				} else {
					w.awaitFollowers(t, p, before, tt.followers)
				}
				p.signal(sig)
				if code := p.wait(); code != exitInterrupted {
					t.Errorf("it ended with %d", code)
				}
				if log, want := p.log(), fill(tt.want); len(log) == 0 || !strings.HasPrefix(log[len(log)-1], want) {
					t.Errorf("its last line is not %q: %q", want, log)
				}
			})
		}
	}
}

// What ends together with the fleet in its process says so.
func TestStoppedRunOfItsOwnFleet(t *testing.T) {
	slow := newModel(t, func(*modelCall) reply { return reply{Hold: true} })
	p := spawn(t, "run", slow.env(apiKey), binary, "run", "x")
	slow.next(t)
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != exitInterrupted {
		t.Errorf("it ended with %d", code)
	}
	if log := strings.Join(p.log(), "\n"); !strings.Contains(log, "Interrupted; the run was given up together with the fleet in this process.") {
		t.Error(log)
	}
}
