package command_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/command"
	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// The number of streams is chosen once, and changed only when no log is stored.
func TestInit(t *testing.T) {
	servers := embeddedtest.Start(t, embedded.Config{NoRedis: true})
	conn := embeddedtest.Conn(t, servers)
	run := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		p := command.Process{Version: "test", Environ: func() []string {
			return []string{"NATS_URL=" + servers.NATSURL, "LONGSHORE_ENCRYPTION=off"}
		}, Stdout: &out, Stderr: &errs}
		code := command.Run(context.WithoutCancel(t.Context()), p, append([]string{"init"}, args...))
		if text := out.String() + errs.String(); code != want || !strings.Contains(text, says) {
			t.Errorf("init %q: exit code %d, want %d\n%s", args, code, want, text)
		}
	}
	run(2, "--partitions", "--partitions", "65")
	run(0, "RUNS_0, RUNS_1, RUNS_2, events in EVENTS_0, EVENTS_1, EVENTS_2.", "--partitions", "3")
	run(0, `"partitions":3`, "-o", "json")
	run(1, "in 3 streams, not in 2", "--partitions", "2")

	b := bustest.Reopen(t, conn)
	ref := messages.Ref{Tenant: "acme", Run: "r1"}
	bustest.MustAppend(t, bustest.Logs(b), ref, 0, bustest.Step("01", 1))
	run(1, "messages of runs (1)", "--partitions", "2", "--move")
	if err := b.Stream(bustest.LogIn(b, ref)).Clear(t.Context(), ref.LogSubject()); err != nil {
		t.Fatal(err)
	}
	run(0, "in RUNS, events in EVENTS.", "--partitions", "1", "--move")
	run(1, "EVENTS is in 1 streams, not in 2", "--partitions", "2", "--divide", "events")
	run(0, "Tasks are in TASKS, logs of runs in RUNS, events in EVENTS_0, EVENTS_1.", "--partitions", "2", "--divide", "events", "--move")
	run(0, `"partitions":2`, "-o", "json")
	run(0, "Tasks are in TASKS_0, TASKS_1, logs of runs in RUNS, events in EVENTS_0, EVENTS_1.", "--partitions", "2", "--divide", "events,queue", "--move")
	run(2, `"tasks" must be logs, events or queue`, "--partitions", "2", "--divide", "tasks")
	run(2, "needs --partitions", "--divide", "events")

	config := filepath.Join(t.TempDir(), "longshore.conf")
	if err := os.WriteFile(config, []byte(`allow: [ "runs.*.*.log" ]`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(0, `allow: [ "part.4.*.runs.*.*.log" ]`, "--partitions", "4", "--nats-config", config)
	run(0, `allow: [ "runs.*.*.log" ]`, "--partitions", "4", "--divide", "events", "--nats-config", config)
}
