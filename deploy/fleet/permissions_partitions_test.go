//go:build unix

package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/runlog"
)

// With the configuration that `longshore init --nats-config` prints, each role reads and writes logs and events in four streams each as it does in one.
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
	logs, told := map[string]*runlogs.Store{}, map[string]*events.Store{}
	for user, cfg := range map[string]bus.Config{
		"dispatcher": {Direct: true}, "worker": {}, "auditor": {Streams: []string{bus.StreamEvents, bus.StreamRuns}},
		"operator": {Streams: []string{bus.StreamEvents}},
	} {
		cfg.Budget = 5 * time.Second
		b, err := bus.Open(t.Context(), g.connect(user), cfg)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		told[user] = events.New(b)
		if user != "operator" { // it may not read logs
			logs[user] = bustest.Logs(b)
		}
	}
	for i := range 12 {
		run := messages.Ref{Tenant: "acme", Run: messages.NewID(time.Now())}
		last := uint64(0)
		for j, user := range []string{"worker", "dispatcher"} {
			last = bustest.MustAppend(t, logs[user], run, last, bustest.Step(user, j+1))
		}
		event := bustest.Event(run, 1, messages.EventStepStart)
		out := logs["worker"].Open(run)
		out.Publish(t.Context(), last, slices.Values([]messages.Event{event}))
		if err := out.Finish(t.Context(), bustest.Event(run, 2, messages.EventRunFinished)); err != nil {
			t.Fatal(err)
		}
		for user, of := range told {
			if user == "worker" { // it may only look for an end
				if ended, err := of.HasEnded(t.Context(), run); !ended || err != nil {
					t.Errorf("%s sees no end of run %d: %v", user, i, err)
				}
				continue
			}
			read := 0
			for range bustest.Values(t, of.Watch(t.Context(), run)) {
				read++
			}
			if read != 2 {
				t.Errorf("%s sees %d events of run %d", user, read, i)
			}
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
	if err := told["dispatcher"].AnnounceTo(t.Context(), "acme", "something", nil); err != nil {
		t.Error(err)
	}
	for _, user := range []string{"dispatcher", "auditor"} {
		read := 0
		for f, err := range told[user].Feed(t.Context(), nil) {
			if err != nil {
				t.Fatalf("%s: %v", user, err)
			}
			if f.Position == 0 {
				break
			}
			read++
		}
		if read != 25 {
			t.Errorf("%s is fed %d events", user, read)
		}
	}
	if denied := subjectsDenied(g.violations()); len(denied) > 0 {
		t.Errorf("denied: %q", denied)
	}
}
