package stage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/live"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// WorkerConfig is the setup of a worker.
type WorkerConfig struct {
	NATSURL  string        `json:"natsUrl"`
	RedisURL string        `json:"redisUrl"`
	Dir      string        `json:"dir"` // for the files of runs
	Slots    int           `json:"slots"`
	Steps    int           `json:"steps"` // model calls of a run: all but the last ask for the tool. Default 3
	Delay    time.Duration `json:"delay"` // of each model call
	Profile  string        `json:"profile,omitempty"`
}

// FleetWorker is a worker put together as a fleet has it: with short-term memory, redaction, the router and the
// retries of models.
type FleetWorker struct {
	worker *worker.Worker
	memory *memory.ShortTerm
	redis  redis.UniversalClient
	saves  *saves
}

// drainTimeout is short: at the end of a measurement nothing is in flight, and after a time limit nothing waits for the result.
const drainTimeout = time.Second

// NewWorker makes one; Run works.
func (e Env) NewWorker(ctx context.Context, nc *nats.Conn, cfg WorkerConfig) (*FleetWorker, error) {
	b, err := bus.Open(ctx, nc, bus.Config{Log: e.Log})
	if err != nil {
		return nil, err
	}
	ring, err := e.keys(b)
	if err != nil {
		return nil, err
	}
	provider, err := models(cmp.Or(cfg.Steps, steps), cfg.Delay)
	if err != nil {
		return nil, err
	}
	tool, err := noop()
	if err != nil {
		return nil, err
	}
	set, err := tools.NewSet(tool)
	if err != nil {
		return nil, fmt.Errorf("make toolset: %w", err)
	}
	dirs, err := sandbox.NewWorkspaces(cfg.Dir, sandbox.Limits{})
	if err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	rdb, err := memory.Connect(cfg.RedisURL)
	if err != nil {
		return nil, err
	}
	short, err := memory.New(rdb, memory.Config{Sealer: ring, Log: e.Log})
	if err != nil {
		return nil, err
	}
	f := &FleetWorker{memory: short, redis: rdb, saves: &saves{memory: short}}
	redact := policy.NewRedactor("the-key-of-a-model-provider")
	budget := fleet.RunBudget(settings.MemoryLimit{})
	text := live.New(live.Config{Publish: events.New(b).PublishLive, Redact: redact})
	run := runner.New(runner.Config{
		Worker: "bench", Controller: e.controller(b, ring), Cache: f.saves, Model: provider, Tools: set, Workspace: dirs.Open,
		Agent: catalog.New(b).Agent, Redact: redact.String, Log: e.Log, Budget: budget,
		Live: func(run messages.Ref, step, attempt int, shown *record.Shown) runner.LiveReply {
			return text.Open(run, step, attempt, shown)
		},
		LiveOutput: func(run messages.Ref, step, attempt int, call messages.ToolCall, shown *record.Shown) runner.LiveOutput {
			return text.OpenOutput(run, step, attempt, call, shown)
		},
	})
	f.worker = worker.New(worker.Config{Bus: b, Controller: e.controller(b, ring), Runner: run, Slots: cfg.Slots, DrainTimeout: drainTimeout, Log: e.Log, Memory: budget})
	return f, nil
}

func models(steps int, delay time.Duration) (model.Provider, error) {
	played, err := newTurns(steps, delay)
	if err != nil {
		return nil, err
	}
	router, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{{Name: "scripted", Provider: played}}, Default: "scripted",
	})
	if err != nil {
		return nil, fmt.Errorf("route models: %w", err)
	}
	return router, nil
}

func (e Env) controller(b *bus.Bus, ring *keyring.Keyring) *runlog.Controller {
	logs := runlogs.New(b, runlogs.Config{Sealer: ring, Bundles: e.bundles()})
	return &runlog.Controller{
		Log: logs, Queue: taskqueue.New(b), Events: logs, Now: func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) },
		NewID: func() string { return messages.NewID(time.Now()) },
	}
}

// Run works until ctx ends. Memory outlives the worker: the last states are written.
func (f *FleetWorker) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	rest, stop := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer stop()
		return f.worker.Run(ctx)
	})
	group.Go(func() error { return f.memory.Run(rest) })
	return errors.Join(group.Wait(), f.redis.Close())
}

// saves is short-term memory as the runner's cache. It counts.
type saves struct {
	memory       *memory.ShortTerm
	count, bytes atomic.Uint64
}

var _ runner.Cache = (*saves)(nil)

// Load implements runner.Cache.
func (s *saves) Load(ctx context.Context, run messages.Ref) (seq uint64, entryID string, data []byte, ok bool) {
	snap, ok := s.memory.Load(ctx, run)
	return snap.Seq, snap.EntryID, snap.Data, ok
}

// Save implements runner.Cache.
func (s *saves) Save(run messages.Ref, seq uint64, entryID string, data []byte) {
	s.count.Add(1)
	s.bytes.Add(uint64(len(data)))
	s.memory.Save(run, memory.Snapshot{Seq: seq, EntryID: entryID, Data: data})
}

// Wants implements runner.Cache.
func (*saves) Wants() bool { return true }

// WorkerName is the name of the worker's connection, by which the server's statistics are found.
const WorkerName = "bench worker"

// workerRole is a worker in a process of its own.
type workerRole struct {
	env     Env
	nc      *nats.Conn
	slots   int
	worker  *FleetWorker
	profile func() error
	cancel  context.CancelFunc
	done    chan error
}

func (w *workerRole) Setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg WorkerConfig
	err := json.Unmarshal(args, &cfg)
	if err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	if w.nc, err = bus.Connect(ctx, bus.ConnConfig{URL: cfg.NATSURL, Name: WorkerName, Log: w.env.Log}); err != nil {
		return nil, err
	}
	if w.worker, err = w.env.NewWorker(ctx, w.nc, cfg); err != nil {
		return nil, err
	}
	w.slots = cfg.Slots
	w.profile, err = measure.Profile(cfg.Profile)
	return nil, err
}

func (w *workerRole) Start(ctx context.Context) error {
	ctx, w.cancel = context.WithCancel(ctx)
	w.done = make(chan error, 1)
	heap := w.env.KeepHeap(ctx, w.slots)
	go func() { w.done <- errors.Join(w.worker.Run(ctx), heap.Stop()) }()
	return nil
}

func (w *workerRole) Usage(context.Context) (measure.Usage, error) {
	u, err := measure.OwnUsage()
	stats := w.worker.memory.Stats()
	u.Saves, u.SaveBytes = w.worker.saves.count.Load(), w.worker.saves.bytes.Load()
	u.Written, u.Dropped = stats.Saves, stats.Dropped
	return u, err
}

func (w *workerRole) Stop() error {
	var errs []error
	if w.cancel != nil {
		w.cancel()
		errs = append(errs, <-w.done)
	}
	if w.profile != nil {
		errs = append(errs, w.profile())
	}
	if w.nc != nil {
		w.nc.Close()
	}
	return errors.Join(errs...)
}
