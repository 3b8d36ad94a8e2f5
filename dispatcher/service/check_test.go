package service_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/replay"
)

// logged stores a run that says "Two." in its one step, and ends with a result.
func logged(t *testing.T, logs *runlogs.Store, id, result string, change func(*record.Head)) messages.Ref {
	t.Helper()
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: id}
	task := messages.Task{ID: id, Tenant: run.Tenant, Input: messages.TextInput("One?")}
	task.SetDefaults()
	var (
		head record.Head
		last uint64
		err  error
	)
	for i, records := range [][]record.Record{
		{&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: time.Now()}, &record.Claimed{Claim: "k", Worker: "w", Ticket: 1}, &record.StepStarted{Step: 1}},
		{&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("Two.")}, Stop: messages.StopEnd}},
		{&record.StepEnded{Step: 1, Status: messages.StepCompleted}, &record.Finished{Result: messages.AgentResult{ID: id, Status: messages.StatusCompleted, Success: true, Result: result, Steps: 1}}},
	} {
		head = record.Follow(head, records...)
		head.ID, head.Time = fmt.Sprintf("%s-%d", id, i), time.Unix(1_700_000_000+int64(i), 0).UTC()
		if change != nil {
			change(&head)
		}
		if last, err = logs.Append(t.Context(), run, last, record.Entry{Head: head, Records: records}); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// opened is a bus with the logs of runs on it.
func opened(t testing.TB, nc *nats.Conn) (*bus.Bus, *runlogs.Store) {
	t.Helper()
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return b, runlogs.New(b, runlogs.Config{})
}

// A run is planned again by its log. Of one that is decided differently, the reply says where and how; of others, how much was the same.
func TestCheck(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{Check: replay.Check})()
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	_, logs := opened(t, nc)
	same, other := logged(t, logs, "same", "Two.", nil), logged(t, logs, "other", "Three.", nil)
	newer := logged(t, logs, "newer", "Two.", func(h *record.Head) { h.Version = record.Version + 1 })
	if _, err := c.Submit(t.Context(), messages.Task{ID: "queued", Input: messages.TextInput("Go.")}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Runs().Check(t.Context(), same)
	if diff := cmp.Diff(&control.RunCheck{Decisions: 3, Version: "0.0.0"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	got, err = c.Runs().Check(t.Context(), other)
	if err != nil || got.Difference == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Difference.Seq == 0 {
		t.Error("it does not say which entry is different")
	}
	got.Difference.Seq = 0
	want := &control.RunCheck{Decisions: 2, Version: "0.0.0", Difference: &control.OtherDecision{
		At: time.Unix(1_700_000_002, 0).UTC(), Step: 1, Recorded: "end: completed: Three.", Planned: "end: completed: Two.",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var p *messages.Problem
	if _, err := c.Runs().Check(t.Context(), newer); !errors.As(err, &p) || p.Status != http.StatusNotImplemented || !strings.Contains(p.Detail, "newer version") {
		t.Errorf("a log of a newer version: %v", err)
	}
	if _, err := c.Runs().Check(t.Context(), dispatcher.Run("queued")); !errors.Is(err, dispatcher.ErrNotBegun) {
		t.Errorf("a run in the queue: %v", err)
	}
	if _, err := c.Runs().Check(t.Context(), dispatcher.Run("none")); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("no run: %v", err)
	}
}

// What a dispatcher cannot check, it refuses, and says what to do. It answers other requests afterwards.
func TestCheckRefused(t *testing.T) {
	nc := start(t)
	_, logs := opened(t, nc)
	run := logged(t, logs, "run", "Two.", nil)
	for name, tt := range map[string]struct {
		check func(context.Context, iter.Seq2[record.Entry, error]) (control.RunCheck, error)
		want  string
	}{
		"without planners": {nil, "longshore replay run --check"},
		"a planner that panics": {func(_ context.Context, log iter.Seq2[record.Entry, error]) (control.RunCheck, error) {
			for e := range log {
				panic(e)
			}
			return control.RunCheck{}, nil
		}, "panicked"},
		"a log that does not fold": {func(context.Context, iter.Seq2[record.Entry, error]) (control.RunCheck, error) {
			return control.RunCheck{}, errors.New("fold entry 7: no call c1")
		}, "fold entry 7: no call c1"},
	} {
		t.Run(name, func(t *testing.T) {
			defer serve(t, nc, service.Config{Check: tt.check})()
			c, err := dispatcher.New(t.Context(), nc)
			if err != nil {
				t.Fatal(err)
			}
			var p *messages.Problem
			if _, err := c.Runs().Check(t.Context(), run); !errors.As(err, &p) || p.Status != http.StatusNotImplemented || !strings.Contains(p.Detail, tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if _, err := c.Status(t.Context(), run); err != nil {
				t.Error(err)
			}
		})
	}
}

// A run whose tenant's key was destroyed is refused as its log is. Another tenant cannot name it.
func TestCheckOfASealedRun(t *testing.T) {
	nc := start(t)
	b, _ := opened(t, nc)
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(b, keyring.Config{Master: master, Required: true})
	logs := runlogs.New(b, runlogs.Config{Sealer: ring})
	defer serve(t, nc, service.Config{Check: replay.Check, Logs: logs})()
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	run := logged(t, logs, "sealed", "Two.", nil)
	if r, err := c.Runs().Check(t.Context(), run); err != nil || r.Decisions != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	other, err := nc.Request(control.TenantSubject("acme", control.SubjectCheck), []byte(`{"tenant":"default","id":"sealed"}`), 10*time.Second)
	if err != nil || !strings.Contains(string(other.Data), `"code":"forbidden"`) {
		t.Errorf("another tenant is told %s, %v", other.Data, err)
	}
	if err := ring.Destroy(t.Context(), run.Tenant, "test"); err != nil {
		t.Fatal(err)
	}
	var log error
	for _, err := range c.Runs().Log(t.Context(), run) {
		log = err
	}
	var p *messages.Problem
	if _, err := c.Runs().Check(t.Context(), run); !errors.As(err, &p) || log == nil || err.Error() != log.Error() {
		t.Errorf("the check says %v, the log %v", err, log)
	}
}

// A check ends when its caller has gone.
func TestCheckEndsWithItsCaller(t *testing.T) {
	nc := start(t)
	_, logs := opened(t, nc)
	run := logged(t, logs, "run", "Two.", nil)
	begun, gone, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := service.New(withController(t, nc, service.Config{Check: func(_ context.Context, log iter.Seq2[record.Entry, error]) (control.RunCheck, error) {
		var last error
		for _, err := range log {
			if last = err; err == nil {
				close(begun) // a second entry would panic
				<-gone
			}
		}
		ended <- last
		return control.RunCheck{}, last
	}}))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
		close(gone)
	}()
	if _, err := s.Answer(ctx, control.SubjectCheck, []byte(`{"id":"`+run.Run+`"}`), control.Caller{}); err == nil {
		t.Error("the check of a caller who has gone was made")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the log ended with %v", err)
	}
}
