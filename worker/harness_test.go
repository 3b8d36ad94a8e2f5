package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/live"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// house is a dispatcher and the servers it needs; workers are added by the test.
type house struct {
	t       *testing.T
	servers *embedded.Servers
	nc      *nats.Conn
	newest  *nats.Conn // of the worker that was added last
	bus     *bus.Bus
	client  *dispatcher.Client
	dirs    *sandbox.Workspaces
	log     *slog.Logger

	conversations runner.Cache     // of the workers' runners
	longWait      time.Duration    // of the workers' runners; 0: the default
	here          func() time.Time // the clock of the machines of workers; nil: the right one
	maxSkew       time.Duration    // of that clock
	blobs         int              // the largest payload of a record; 0: the default

	policies func(tenant string) []policy.Layer // of the workers' runners
	memory   longterm.Store                     // of the workers' runners; nil: they have none
}

// open starts servers and a dispatcher. AckWait is how long a silent worker keeps a task.
func open(t *testing.T, ackWait time.Duration, agents ...messages.Definition) *house {
	t.Helper()
	return openWith(t, bus.Streams{AckWait: ackWait}, agents...)
}

// openWith is open with other settings of the streams.
func openWith(t *testing.T, streams bus.Streams, agents ...messages.Definition) *house {
	t.Helper()
	h := &house{t: t, servers: embeddedtest.Start(t), log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	ctx := t.Context()
	h.nc = h.conn()
	if err := bus.Setup(ctx, h.nc, streams); err != nil {
		t.Fatal(err)
	}
	h.bus = h.open(h.nc)
	svc := service.New(service.Config{Conn: h.nc, Bus: h.bus, Controller: controller(h.bus, h.logs()), Agents: agents, Version: "0.0.0", Log: h.log})
	h.run(svc.Run)
	if h.bus.Partitions(bus.StreamTasks).Divided() { // then what a test publishes as a program does comes there first
		h.run(taskqueue.New(h.bus).Intake)
	}
	select {
	case <-svc.Ready():
	case <-time.After(patience):
		t.Fatal("the dispatcher is not ready")
	}
	var err error
	if h.client, err = dispatcher.New(ctx, h.nc); err != nil {
		t.Fatal(err)
	}
	if h.dirs, err = sandbox.NewWorkspaces(t.TempDir(), sandbox.Limits{}); err != nil {
		t.Fatal(err)
	}
	return h
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (h *house) conn() *nats.Conn {
	h.t.Helper()
	opts, err := bus.Options(bus.ConnConfig{Log: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	return embeddedtest.Conn(h.t, h.servers, opts...)
}

func (h *house) open(nc *nats.Conn) *bus.Bus {
	h.t.Helper()
	b, err := bus.Open(h.t.Context(), nc, bus.Config{Log: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// logs are the logs of runs as the test reads and writes them.
func (h *house) logs() *runlogs.Store { return runlogs.New(h.bus, runlogs.Config{MaxBlob: h.blobs}) }

func controller(b *bus.Bus, logs *runlogs.Store) *runlog.Controller {
	return &runlog.Controller{
		Log: logs, Queue: taskqueue.New(b), Tasks: taskqueue.New(b), Events: logs, Sessions: sessions.New(b, logs), Quotas: quotas.New(b, logs), Asks: semaphores.New(b), Now: func() time.Time { return time.Now().UTC() },
		NewID: func() string { return messages.NewID(time.Now()) },
	}
}

// run runs something until the test ends or stop is called, which waits for its end.
func (h *house) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			h.t.Errorf("run: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	h.t.Cleanup(stop)
	return stop
}

// worker adds a worker. More tools are added to the file tools.
func (h *house) worker(name string, m model.Provider, cfg worker.Config, more ...tools.Tool) (w *worker.Worker, stop func()) {
	h.t.Helper()
	fileTools, err := files.Tools()
	if err != nil {
		h.t.Fatal(err)
	}
	set, err := tools.NewSet(append(fileTools, more...)...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.newest = h.conn()
	b := h.open(h.newest)
	cfg.Bus, cfg.Logs, cfg.Log = b, runlogs.New(b, runlogs.Config{MaxBlob: h.blobs}), h.log
	cfg.Controller = controller(b, cfg.Logs)
	granted := quotas.New(b, cfg.Logs)
	cfg.Caps = granted.NewCaps(20 * time.Millisecond)
	cfg.Controller.Semaphores, cfg.Controller.Caps = semaphores.New(b), cfg.Caps
	if h.here != nil {
		cfg.Clock = b.NewClock(bus.ClockConfig{Here: h.here, Most: h.maxSkew})
		cfg.Controller.Now = cfg.Clock.Now
	}
	text := live.New(live.Config{Publish: events.New(b).PublishLive})
	cfg.Runner = runner.New(runner.Config{
		Worker: name, Controller: cfg.Controller, Model: m, Tools: set, Workspace: h.dirs.Open, Agent: catalog.New(b).Agent, Log: h.log,
		Live: func(run messages.Ref, step, attempt int, shown *record.Shown) runner.LiveReply {
			return text.Open(run, step, attempt, shown)
		},
		LiveOutput: func(run messages.Ref, step, attempt int, call messages.ToolCall, shown *record.Shown) runner.LiveOutput {
			return text.OpenOutput(run, step, attempt, call, shown)
		},
		LongWait: h.longWait, Conversations: h.conversations, Quotas: granted, Rates: granted, Policies: h.policies, Labels: cfg.Labels, Memory: h.memory, Budget: cfg.Memory,
	})
	if cfg.Tools == nil {
		cfg.Tools = set.Names
	}
	if cfg.Look == 0 {
		cfg.Look = 300 * time.Millisecond
	}
	w = worker.New(cfg)
	return w, h.run(w.Run)
}

// script parses a script for the scripted model.
func script(t *testing.T, yaml string) model.Provider {
	t.Helper()
	s, err := scripted.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

// submit submits a task and returns its run.
func (h *house) submit(task messages.Task) messages.Ref {
	h.t.Helper()
	id, err := h.client.Submit(h.t.Context(), task)
	if err != nil {
		h.t.Fatal(err)
	}
	ref := messages.Ref{Tenant: task.Tenant, Run: id}
	if ref.Tenant == "" {
		ref.Tenant = messages.DefaultTenant
	}
	return ref
}

// events waits for the end of a run and returns its events.
func (h *house) events(run messages.Ref) []messages.Event {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	var out []messages.Event
	for e, err := range h.client.Watch(ctx, run) {
		if err != nil {
			h.t.Fatalf("watch %s: %v after %v", run, err, names(out))
		}
		out = append(out, e)
	}
	return out
}

// until waits for an event of a run.
func (h *house) until(run messages.Ref, name string) messages.Event {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for e, err := range h.client.Watch(ctx, run) {
		if err != nil {
			h.t.Fatalf("wait for %s: %v", name, err)
		}
		if e.Name() == name {
			return e
		}
	}
	h.t.Fatalf("the run ended without %s", name)
	return messages.Event{}
}

// result waits for the end of a run.
func (h *house) result(run messages.Ref) *messages.AgentResult {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	r, err := h.client.Wait(ctx, run)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func names(events []messages.Event) []string {
	out := make([]string, len(events))
	for i := range events {
		out[i] = events[i].Name()
	}
	return out
}
