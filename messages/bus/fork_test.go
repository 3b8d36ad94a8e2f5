package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// dying is the logs and the queue of a process that dies before one kind of write.
type dying struct {
	*runlogs.Store
	*taskqueue.Queue

	before string
}

var errDied = errors.New("died")

func (d *dying) dies(what string) error {
	if d.before == what {
		return errDied
	}
	return nil
}

func (d *dying) Net(ctx context.Context, run messages.Ref, control string, at time.Time) error {
	return errors.Join(d.dies("net"), d.Queue.Net(ctx, run, control, at))
}

func (d *dying) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if err := d.dies("append"); err != nil {
		return 0, err
	}
	return d.Store.Append(ctx, run, last, e)
}

func (d *dying) Wake(ctx context.Context, run messages.Ref, after uint64) error {
	if err := d.dies("wake"); err != nil {
		return err
	}
	return d.Queue.Wake(ctx, run, after)
}

func forkOf(run messages.Ref) *record.Started {
	return &record.Started{
		Task: *bustest.NewTask(run), Agent: messages.BuiltinAgent(), QueuedAt: time.Now(), ForkedFrom: &messages.Origin{Run: "old", Seq: 7, Step: 2},
		Prefix: record.Records{&record.StepStarted{Step: 1}, &record.StepEnded{Step: 1, Status: messages.StepCompleted}},
	}
}

// A fork is there whole, with a wake-up sooner or later, or not at all.
func TestForkThatIsKilled(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	controller := func(before string) *runlog.Controller {
		d := &dying{bustest.Logs(b), taskqueue.New(b), before}
		return &runlog.Controller{Log: d, Queue: d, Events: d, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	}
	for _, tt := range []struct {
		before  string
		Message bool
	}{{"net", false}, {"append", false}, {"wake", true}} {
		t.Run(tt.before, func(t *testing.T) {
			run := messages.Ref{Tenant: "t", Run: "killed-" + tt.before}
			ctx := bustest.Context(t)
			if _, err := controller(tt.before).Fork(ctx, run, forkOf(run)); !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			last, ok, err := bustest.Logs(b).Last(ctx, run)
			if err != nil || ok != tt.Message {
				t.Fatalf("stored %t, want %t: %v", ok, tt.Message, err)
			}
			if _, ok, err := taskqueue.New(b).Queued(ctx, run); ok || err != nil {
				t.Fatalf("a message is queued: %v", err)
			}
			healthy := controller("")
			if _, err := healthy.Sweep(ctx, bustest.Logs(b).Runs(ctx)); err != nil {
				t.Fatal(err)
			}
			if err := healthy.Errand(ctx, run, messages.Wake{Errand: messages.ErrandNet}); err != nil {
				t.Fatal(err)
			}
			wantWake(t, b, run, last.Seq)
			again, err := healthy.Fork(ctx, run, forkOf(run))
			if err != nil || again != tt.Message {
				t.Errorf("forked again: duplicate %t, %v", again, err)
			}
			if last, _, err = bustest.Logs(b).Last(ctx, run); err != nil || last.Head.Phase != record.PhaseReady {
				t.Errorf("%+v, %v", last.Head, err)
			}
			wantWake(t, b, run, last.Seq)
			other := forkOf(run)
			other.Agent.Model = "other"
			if _, err := healthy.Fork(ctx, run, other); !errors.Is(err, runlog.ErrConflict) {
				t.Errorf("another fork of the same id: %v", err)
			}
		})
	}
}

// wantWake wants the wake-up that names an entry, and nothing for 0.
func wantWake(t *testing.T, b *bus.Bus, run messages.Ref, after uint64) {
	t.Helper()
	q, ok, err := taskqueue.New(b).Queued(bustest.Context(t), run)
	if err != nil || ok != (after != 0) {
		t.Fatalf("queued %t: %v", ok, err)
	}
	if !ok {
		return
	}
	var w messages.Wake
	if err := json.Unmarshal(q.Body, &w); err != nil || w != (messages.Wake{After: after}) {
		t.Errorf("%+v, want a wake-up after %d: %v", w, after, err)
	}
}
