package runs_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// A run is found in the queue and then in its log. A cancel ends one that no worker has begun, with a log of its own.
func TestAQueuedRunIsCancelled(t *testing.T) {
	t.Parallel()
	ctx := bustest.Context(t)
	b, nc := bustest.OpenNew(t)
	tasks := taskqueue.New(b)
	logs := runlogs.New(b, runlogs.Config{})
	found := runs.New(runs.Config{
		Queue: tasks, Room: nc.MaxPayload, Log: slog.New(slog.DiscardHandler),
		Controller: &runlog.Controller{Log: logs, Queue: tasks, Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }},
	})
	run := bustest.Run()
	if _, _, err := found.Find(ctx, run); !errors.Is(err, runlog.ErrNotFound) {
		t.Fatalf("an unknown run: %v", err)
	}
	if err := found.Cancel(ctx, run, "too early"); !errors.Is(err, runlog.ErrNotFound) {
		t.Fatalf("a cancel of an unknown run: %v", err)
	}
	task := bustest.NewTask(run)
	if _, err := tasks.Submit(ctx, task, false); err != nil {
		t.Fatal(err)
	}
	if _, q, err := found.Find(ctx, run); err != nil || q == nil || q.Priority != task.Priority || q.Later != nil {
		t.Fatalf("a queued run: %+v, %v", q, err)
	}
	var p *messages.Problem
	if err := found.HasLog(ctx, run); !errors.As(err, &p) || p.Code != messages.CodeConflict {
		t.Errorf("the log of a queued run: %v", err)
	}
	if err := found.Cancel(ctx, run, "not needed"); err != nil {
		t.Fatal(err)
	}
	last, q, err := found.Find(ctx, run)
	if err != nil || q != nil {
		t.Fatalf("%+v, %v", q, err)
	}
	if st, err := found.StatusOf(ctx, run, last); err != nil || st.Status != messages.StatusCancelled {
		t.Errorf("%+v, %v", st, err)
	}
	if got, err := found.Task(ctx, run, true); err != nil || got.Fingerprint() != task.Fingerprint() {
		t.Errorf("the task: %+v, %v", got, err)
	}
	if tasks, err := tasks.TasksOf(ctx, run.Tenant); tasks != 0 || err != nil {
		t.Errorf("%d tasks are left in the queue: %v", tasks, err)
	}
	if err := found.Cancel(ctx, run, "again"); !errors.Is(err, runlog.ErrEnded) {
		t.Errorf("a second cancel: %v", err)
	}
	answer, err := found.Handlers()[control.SubjectResult](ctx, []byte(`{"tenant":"acme","id":"run-1"}`))
	if r, ok := answer.(*messages.AgentResult); !ok || err != nil || r.Status != messages.StatusCancelled || r.Error == nil || r.Error.Code != messages.CodeCancelled {
		t.Errorf("the result: %+v, %v", answer, err)
	}
}
