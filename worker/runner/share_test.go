package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

type openNamed func(ctx context.Context, tenant, name string) (*sandbox.Workspace, error)

// sharing is a runner of tasks that name a workspace; asked counts its model calls.
func sharing(t *testing.T, log runlog.Log, open openNamed, hooks ...runner.Hook) (r *runner.Runner, asked *atomic.Int64) {
	t.Helper()
	set, err := tools.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	asked = &atomic.Int64{}
	var ids atomic.Int64
	return runner.New(runner.Config{
		Worker: "w", Tools: set, Named: open, Hooks: hooks,
		Controller: &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string {
			return "s" + strconv.FormatInt(ids.Add(1), 10)
		}},
		Model: rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			asked.Add(1)
			return say("ok"), nil
		}),
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, errors.New("none") },
		Agent: func(context.Context, string) (messages.Definition, error) {
			d := messages.Definition{Name: "a"}
			d.SetDefaults()
			return d, nil
		},
	}), asked
}

func sharingTicket() runner.Ticket {
	tk := rticket(1)
	tk.Body, _ = json.Marshal(map[string]string{"input": "hello", "workspace": "shared"})
	return tk
}

// released is the last record of the log.
func released(t *testing.T, log *runlog.Memory) *record.Released {
	t.Helper()
	var last record.Record
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Records[len(e.Records)-1]
	}
	r, ok := last.(*record.Released)
	if !ok {
		t.Fatalf("the log ends with %T", last)
	}
	return r
}

func TestSharedWorkspaceIsGivenBack(t *testing.T) {
	all, err := sandbox.NewWorkspaces(t.TempDir(), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	r, asked := sharing(t, &runlog.Memory{}, all.Named)
	if out, err := r.Run(t.Context(), sharingTicket()); out != runner.Done || err != nil || asked.Load() != 1 {
		t.Fatalf("%v %v, %d calls", out, err, asked.Load())
	}
	next, err := all.Named(t.Context(), rrun.Tenant, "shared")
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// A run that waits for a workspace when the worker stops is handed back without using an attempt and without any effect.
func TestDrainWhileAnotherHasTheWorkspace(t *testing.T) {
	log, waiting := &runlog.Memory{}, make(chan struct{})
	r, asked := sharing(t, log, func(ctx context.Context, _, _ string) (*sandbox.Workspace, error) {
		close(waiting)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	go func() {
		<-waiting
		r.Drain()
	}()
	out, err := r.Run(t.Context(), sharingTicket())
	if out != runner.Return || !errors.Is(err, runner.ErrShutdown) || asked.Load() != 0 {
		t.Errorf("%v %v, %d calls", out, err, asked.Load())
	}
	if released(t, log).Spent {
		t.Error("the attempt is spent")
	}
}

func TestWorkspaceCannotBeOpened(t *testing.T) {
	log, full := &runlog.Memory{}, errors.New("the disk is full")
	r, asked := sharing(t, log, func(context.Context, string, string) (*sandbox.Workspace, error) { return nil, full })
	out, err := r.Run(t.Context(), sharingTicket())
	if out != runner.Return || !errors.Is(err, full) || asked.Load() != 0 {
		t.Errorf("%v %v, %d calls", out, err, asked.Load())
	}
	if !released(t, log).Spent {
		t.Error("the attempt is not spent")
	}
}

// A run whose time is over while another has its workspace ends then, and its hooks are notified.
func TestDeadlineWhileAnotherHasTheWorkspace(t *testing.T) {
	log, told := &runlog.Memory{}, &heard{}
	r, asked := sharing(t, log, func(ctx context.Context, _, _ string) (*sandbox.Workspace, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}, told.at(messages.HookPostTask, messages.HookAnswer{}, nil))
	tk := sharingTicket()
	tk.Body, _ = json.Marshal(map[string]any{"input": "hello", "workspace": "shared", "deadline": time.Now().Add(200 * time.Millisecond)})
	if out, err := r.Run(t.Context(), tk); out != runner.Done || err != nil || asked.Load() != 0 {
		t.Fatalf("%v %v, %d calls", out, err, asked.Load())
	}
	if len(told.calls) != 1 || told.calls[0].Result == nil || told.calls[0].Result.Error.Code != messages.CodeDeadline {
		t.Errorf("told %+v", told.calls)
	}
}
