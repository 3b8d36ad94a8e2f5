//go:build unix

package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/runlog"
)

// With the configuration that `longshore init --nats-config` prints, each role reads and writes logs in four streams as it does in one.
func TestPermissionsOfPartitions(t *testing.T) {
	const n = 4
	config := guardedConfig(t)
	fleet := filepath.Join(filepath.Dir(config), "longshore.conf")
	text, err := os.ReadFile(fleet)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fleet, []byte(bus.DividePermissions(string(text), n)), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGuardedBy(t, config)
	if err := bus.Setup(t.Context(), g.connect("dispatcher"), bus.Streams{AckWait: guardedAckWait, Partitions: n}); err != nil {
		t.Fatal(err)
	}
	logs := map[string]*runlogs.Store{}
	for user, cfg := range map[string]bus.Config{
		"dispatcher": {Direct: true}, "worker": {}, "auditor": {Streams: []string{bus.StreamEvents, bus.StreamRuns}},
	} {
		cfg.Budget = 5 * time.Second
		b, err := bus.Open(t.Context(), g.connect(user), cfg)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		logs[user] = bustest.Logs(b)
	}
	for i := range 12 {
		run := messages.Ref{Tenant: "acme", Run: messages.NewID(time.Now())}
		last := uint64(0)
		for j, user := range []string{"worker", "dispatcher"} {
			last = bustest.MustAppend(t, logs[user], run, last, bustest.Step(user, j+1))
		}
		for user, log := range logs {
			read := 0
			for range bustest.Values(t, log.Read(t.Context(), run, 0, runlog.Tail)) {
				read++
			}
			if read != 2 {
				t.Errorf("%s reads %d entries of run %d", user, read, i)
			}
		}
	}
	var looked int
	open := runlogs.OpenRuns{Logs: logs["worker"], Keep: true, Look: func(context.Context, messages.Ref) (runlog.Swept, error) {
		looked++
		return runlog.Swept{}, nil
	}}
	if _, err := open.Each(t.Context()); err != nil || looked != 12 {
		t.Errorf("a sweep looked at %d runs, %v", looked, err)
	}
	if denied := subjectsDenied(g.violations()); len(denied) > 0 {
		t.Errorf("denied: %q", denied)
	}
}
