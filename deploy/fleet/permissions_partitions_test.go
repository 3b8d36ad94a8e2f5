//go:build unix

package fleet_test

import (
	"context"
	"fmt"
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
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// With the configuration that `longshore init --nats-config` prints, each role reads and writes logs, events and tasks in four streams each as it does in one.
func TestPermissionsOfPartitions(t *testing.T) {
	const n = 4
	config := guardedConfig(t)
	fleet := filepath.Join(filepath.Dir(config), "longshore.conf")
	text, err := os.ReadFile(fleet)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fleet, []byte(bus.DividePermissions(string(text), bus.Streams{Partitions: n})), 0o600); err != nil {
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
	queued(t, g)
	if denied := subjectsDenied(g.violations()); len(denied) > 0 {
		t.Errorf("denied: %q", denied)
	}
}

// queued has tasks submitted, published, delivered, handed over, woken and acknowledged by those who do so, in all partitions.
func queued(t *testing.T, g *guarded) {
	t.Helper()
	open := map[string]*bus.Bus{}
	for _, user := range []string{"dispatcher", "operator", "worker"} {
		b, err := bus.Open(t.Context(), g.connect(user), bus.Config{Direct: user == "dispatcher", Budget: 5 * time.Second, Streams: []string{bus.StreamTasks, bus.StreamEvents}})
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		open[user] = b
	}
	intake, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- taskqueue.New(open["dispatcher"]).Intake(intake) }()
	const each = 8
	at := time.Now().Add(time.Second)
	for i := range each {
		for _, user := range []string{"dispatcher", "operator", "worker"} { // a worker submits children
			task := bustest.NewTask(messages.Ref{Tenant: "acme", Run: fmt.Sprintf("%s-%d", user, i)})
			if _, err := taskqueue.New(open[user]).Submit(t.Context(), task, user == "worker"); err != nil {
				t.Errorf("%s submits: %v", user, err)
			}
		}
		direct := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("direct-%d", i)}
		bustest.Hand(t, open["operator"].Conn(), direct.TaskSubject(messages.PriorityLow), string(bustest.NewTask(direct).Encode()), nil)
		later := bustest.NewTask(messages.Ref{Tenant: "acme", Run: fmt.Sprintf("later-%d", i)})
		later.NotBefore = &at
		if _, err := taskqueue.New(open["dispatcher"]).Submit(t.Context(), later, true); err != nil {
			t.Errorf("a dispatcher delays: %v", err)
		}
		if err := taskqueue.New(open["dispatcher"]).Net(t.Context(), later.Ref(), "c", at); err != nil {
			t.Errorf("a dispatcher sets a net: %v", err)
		}
		if err := taskqueue.New(open["worker"]).Timer(t.Context(), direct, 1, at); err != nil {
			t.Errorf("a worker sets a timer: %v", err)
		}
		if err := taskqueue.New(open["worker"]).Wake(t.Context(), direct, 7); err != nil {
			t.Errorf("a worker wakes: %v", err)
		}
	}
	partitions := map[string]bool{}
	for _, d := range bustest.Pull(t, open["worker"], each*(3+1+1+1+1+1)) {
		_, run, _ := messages.ParseTaskSubject(d.Subject)
		if partitions[d.Stream] = true; !d.Belongs(run) {
			t.Errorf("%s came from %s", d.Subject, d.Stream)
		}
		if err := d.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if err := d.Ack(t.Context()); err != nil {
			t.Error(err)
		}
		if ok, err := taskqueue.New(open["worker"]).Holds(t.Context(), run, d.Seq); ok || err != nil {
			t.Errorf("%s after its ack: %v, %v", d.Subject, ok, err)
		}
	}
	if len(partitions) != 4 {
		t.Errorf("tasks came from %v", partitions)
	}
	if err := open["worker"].NewClock(bus.ClockConfig{}).Measure(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := taskqueue.New(open["dispatcher"]).LaneList(t.Context(), control.LanesRequest{All: true}); err != nil {
		t.Error(err)
	}
	if err := taskqueue.NewSweeps(open["dispatcher"]).ScheduleSweep(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
