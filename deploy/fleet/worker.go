package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/live"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memorylimit"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// Parts are what a worker may be given instead of the usual.
type Parts struct {
	Model model.Provider // in place of all models of the settings; default: those
	// Endpoints are models in addition to those of the settings, such as your own planners: an agent names one by its model. With
	// Model they do not count, nor does Selector.
	Endpoints []model.Endpoint
	Selector  model.Selector                                     // chooses among the models of an agent; default: their order
	Tools     []tools.Tool                                       // in addition to those of package toolbox
	Files     func(run messages.Ref) (*sandbox.Workspace, error) // default: a folder for each claim, whose files follow the run
	Cache     runner.Cache                                       // holds the states of runs; default: Redis, from the settings
	Hooks     []runner.Hook                                      // called in every run
	// Begun is called once, before the worker takes its first task. What it gets counts the runs in hand, and may be called at
	// any time from any goroutine.
	Begun func(held func() int)
	// Minute is how long a minute lasts in the rates of policies of the fleet and of tenants, in whole seconds, for tests. Default: a minute.
	Minute time.Duration

	alone  bool             // no other worker can join
	guard  *guard           // before the models; nil: none. The caller closes it.
	redact *policy.Redactor // of all that this process was told; never nil
}

// Worker runs a worker process until ctx ends and it has drained. Once its HTTP address answers it calls ready, unless
// that is nil.
func Worker(ctx context.Context, s settings.Worker, version string, log *slog.Logger, parts Parts, ready func(addr string)) error {
	parts.redact = policy.NewRedactor(settings.Secrets(s)...)
	if parts.Model == nil {
		var err error
		if parts.guard, err = newGuard(s, limitsOf(s.Models), parts.redact, log); err != nil {
			return err
		}
		defer func() { _ = parts.guard.close() }()
		if parts.Model, err = models(s.Models, s.ModelTimeout, nil, parts); err != nil {
			return err
		}
	}
	nc, err := Connect(ctx, s.NATS, "longshore worker "+s.Name, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	return runWorker(ctx, nc, s, version, log, parts, ready)
}

func runWorker(ctx context.Context, nc *nats.Conn, s settings.Worker, version string, log *slog.Logger, parts Parts, ready func(string)) error {
	keys, err := controlKeys(s.ControlKeys)
	if err != nil {
		return err
	}
	redact := parts.redact
	said := newLogs(log, redact, s.Name)
	log = said.of("worker")
	b, err := bus.Open(ctx, nc, bus.Config{Log: said.of("bus"), Keys: keys})
	if err != nil {
		return err
	}
	said.store = logentries.New(b)
	ring, err := Keys(b, &s.Encryption)
	if err != nil {
		return err
	}
	if parts.guard != nil {
		parts.guard.sealer.keys.Store(ring)
	}
	logs := runlogs.New(b, runlogs.Config{Sealer: ring, Inline: s.BlobBytes, Bundles: s.Bundles})
	remembered, err := openLongTerm(s.LongTerm, &s.Policy, s.RedisURL, ring, said.of("memory"))
	if err != nil {
		return err
	}
	defer func() { _ = remembered.close() }()
	box, err := toolbox.Open(ctx, &s.Tools, toolbox.Needs{
		Log: said.of("tools"), RedisURL: s.RedisURL, NATS: nc, Sealer: ring, Memory: remembered.kept(), Version: version, Gone: gone(logs, sessions.New(b, logs)),
	})
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }()
	set, err := box.Set(parts.Tools...)
	if err != nil {
		return fmt.Errorf("make toolset: %w", err)
	}
	set.Log, set.Timeout = said.of("tools"), s.ToolTimeout
	metrics := observability.NewMetrics(version)
	for _, name := range s.PlainKeys() {
		log.WarnContext(ctx, "a key stands in the providers file; keyEnv or keyFile keep it out of there", "provider", name)
	}
	short, shut, err := shortTerm(s, ring, said.of("memory"))
	if err != nil {
		return err
	}
	defer func() { _ = shut() }()
	if short != nil {
		if err := short.Reach(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, noRedis, "err", err)
		}
	}
	spoken, closeSpoken, err := conversations(s, ring, said.of("memory"))
	if err != nil {
		return err
	}
	defer func() { _ = closeSpoken() }()
	var folders *snapshot.Folders // nil: nothing is saved
	if parts.Files == nil {
		if folders, err = claimFolders(&s, b, ring, version, redact, log); err != nil {
			return err
		}
		defer func() {
			if err := folders.Close(); err != nil {
				log.WarnContext(ctx, "close workspaces", "err", err)
			}
		}()
	}
	table, err := priceTable(s.Models)
	if err != nil {
		return err
	}
	hook, shutHooks, err := agentHooks(s.Hooks, box.Commands, version)
	if err != nil {
		return err
	}
	defer shutHooks()
	clock := b.NewClock(bus.ClockConfig{Most: s.MaxClockSkew, Log: log})
	granted := quotas.New(b, logs)
	k, caps := capped(b, logs, granted, clock, parts.guard)
	life := messages.NewID(time.Now())
	workers := roster.New(b)
	agents, seen := catalog.New(b), workers.NewRoster(life)
	labels, err := messages.ParseLabels(s.Labels)
	if err != nil {
		return fmt.Errorf("LONGSHORE_WORKER_LABELS: %w", err)
	}
	budget := RunBudget(s.MemoryLimit)
	for _, name := range set.Names() {
		if weight := set.Weight(name, &tools.Call{}); weight > budget.Share() {
			log.WarnContext(ctx, "calls of a tool may hold more memory than a run may have, and end their runs: lower its limit or raise LONGSHORE_MEMORY_LIMIT",
				"tool", name, "bytes", weight, "share", budget.Share())
		}
	}
	text := live.New(live.Config{Publish: events.New(b).PublishLive, Redact: redact})
	run := runner.New(runner.Config{
		Worker: s.Name, Life: life, Fleet: seen, Controller: k, Cache: parts.cache(short), Model: parts.Model, Tools: set,
		Folders: folders, Workspace: parts.Files, Agent: agents.Agent, MaxAttempts: s.MaxAttempts, MaxInput: s.MaxInput,
		Redact: redact.String, Log: said.of("runner"),
		Live: func(run messages.Ref, step, attempt int, shown *record.Shown) runner.LiveReply {
			return text.Open(run, step, attempt, shown)
		},
		LiveOutput: func(run messages.Ref, step, attempt int, call messages.ToolCall, shown *record.Shown) runner.LiveOutput {
			return text.OpenOutput(run, step, attempt, call, shown)
		},
		Prices: table, Conversations: cache(spoken), Memory: remembered.kept(),
		Prompt:   prompt.Resolver{Get: agents.Prompt, Redact: redact.String}.Resolve,
		Policies: policies(&s.Policy, parts.Minute), Hooks: parts.Hooks, AgentHook: hook, Secrets: redact, Rates: granted, Quotas: granted, Labels: labels, Budget: budget,
	})
	w := worker.New(worker.Config{
		Bus: b, Logs: logs, Controller: k, Caps: caps, Clock: clock, Runner: run, Slots: s.Slots, DrainTimeout: s.DrainTimeout, Log: log, Name: s.Name, Version: version,
		Roster: seen, Tools: set.Names, Specs: set.Described, Models: modelStates(parts.Model, limitsOf(s.Models)), Labels: labels, Alone: parts.alone, Memory: budget,
	})
	if parts.Begun != nil {
		parts.Begun(func() int { return w.Stats().Held })
	}
	if err := errors.Join(ignoredMetrics(metrics, b, logs, granted), clockMetrics(metrics, clock), storageMetrics(metrics, b), workerMetrics(metrics, w, short), budgetMetrics(metrics, budget), toolMetrics(metrics, set), liveMetrics(metrics, text), modelMetrics(metrics, parts.Model), parts.guard.metrics(metrics), said.metrics(metrics), remembered.metrics(metrics)); err != nil {
		return err
	}
	// Memory and HTTP outlive the drain: the last states are written and the last metrics can be read.
	group, ctx := errgroup.WithContext(ctx)
	rest, stop := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer stop()
		return w.Run(ctx)
	})
	if short != nil {
		group.Go(func() error { return short.Run(rest) })
		group.Go(func() error { return spoken.Run(rest) })
	}
	group.Go(func() error { b.KeepStorage(rest, storageEvery, false); return nil })
	group.Go(func() error { return said.entries.Run(rest) })
	group.Go(func() error { return parts.guard.run(rest) })
	group.Go(func() error { return remembered.run(rest) })
	if folders != nil {
		group.Go(func() error { return folders.Run(rest) })
	}
	group.Go(func() error {
		return serve(rest, s.HTTPAddr, observability.Handler(metrics, readiness(nc, clock.Check, b.CheckStorage, box.Ready), remembers(short), remembered.check, box.Degraded), observability.ServeConfig{Log: log}, ready)
	})
	return group.Wait()
}

// cache is what holds the states of runs.
func (p *Parts) cache(short *memory.ShortTerm) runner.Cache {
	if p.Cache != nil {
		return p.Cache
	}
	return cache(short)
}

// shortTerm is nil when the operator works without.
func shortTerm(s settings.Worker, keys memory.Sealer, log *slog.Logger) (_ *memory.ShortTerm, shut func() error, err error) {
	redis.SetLogger(redisLog{log}) // its own goes to stderr as it likes; tools may have a Redis of theirs
	if s.RedisURL == "none" {
		return nil, func() error { return nil }, nil
	}
	rdb, err := memory.Connect(s.RedisURL)
	if err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	short, err := memory.New(rdb, memory.Config{TTL: s.MemoryTTL, MaxPending: 4 * max(s.Slots, 1024), Sealer: keys, Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("open short-term memory: %w", err)
	}
	return short, rdb.Close, nil
}

// noRedis logs that Redis does not answer. Runs do not need it: their logs hold everything.
const noRedis = "Redis at REDIS_URL does not answer: runs are read from their logs until it does; correct REDIS_URL, or set it to none"

// remembers says that short-term memory is away, which a worker can do without.
func remembers(short *memory.ShortTerm) func() error {
	return func() error {
		if short == nil || short.Stats().Up {
			return nil
		}
		return errors.New(noRedis) //nolint:staticcheck // a name
	}
}

// redisLog takes what the Redis client would print.
type redisLog struct{ log *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", "text", fmt.Sprintf(format, v...))
}

// states is short-term memory as the runner's cache.
type states struct{ *memory.ShortTerm }

var _ runner.Cache = states{}

func cache(s *memory.ShortTerm) runner.Cache {
	if s == nil {
		return nil
	}
	return states{s}
}

func (c states) Load(ctx context.Context, run messages.Ref) (seq uint64, entryID string, data []byte, ok bool) {
	snap, ok := c.ShortTerm.Load(ctx, run)
	return snap.Seq, snap.EntryID, snap.Data, ok
}

func (c states) Save(run messages.Ref, seq uint64, entryID string, data []byte) {
	c.ShortTerm.Save(run, memory.Snapshot{Seq: seq, EntryID: entryID, Data: data})
}

func (c states) Wants() bool { return true }

// workerMetrics are the worker's own, in addition to what every event shows.
func workerMetrics(m *observability.Metrics, w *worker.Worker, short *memory.ShortTerm) error {
	var errs []error
	gauge := func(name, help string, f func(worker.Stats) int) {
		errs = append(errs, m.Gauge(name, help, func() float64 { return float64(f(w.Stats())) }))
	}
	count := func(name, help string, f func(runner.Stats) uint64) {
		errs = append(errs, m.Counter(name, help, func() float64 { return float64(f(w.Stats().Runner)) }))
	}
	gauge("worker_slots", "Runs that may be worked at once.", func(s worker.Stats) int { return s.Slots })
	gauge("worker_slots_busy", "Slots in use.", func(s worker.Stats) int { return s.Busy })
	gauge("worker_tickets_held", "Task messages held.", func(s worker.Stats) int { return s.Held })
	gauge("worker_suspects", "Runs in quarantine, or waiting for it, because they may be what kills workers.", func(s worker.Stats) int { return s.Suspects })
	gauge("worker_lanes", "Lanes of the queue that have tasks, as far as this worker knows.", func(s worker.Stats) int { return s.Lanes })
	errs = append(errs, m.Counter("worker_lanes_full_total", "Lanes that could not be created because the stream has no room for more.", func() float64 {
		return float64(w.Stats().LanesFull)
	}))
	count("worker_claims_total", "Claims made.", func(s runner.Stats) uint64 { return s.Claims })
	count("worker_reclaims_total", "Claims of runs whose worker was lost.", func(s runner.Stats) uint64 { return s.Reclaims })
	count("worker_fenced_total", "Runs lost to another worker.", func(s runner.Stats) uint64 { return s.Fenced })
	count("worker_released_total", "Runs handed back.", func(s runner.Stats) uint64 { return s.Released })
	errs = append(errs, m.Counter("worker_redeliveries_total", "Redelivered task messages: they were given back, or their worker was silent for the ack wait.",
		func() float64 { return float64(w.Stats().Redelivered) }))
	count("worker_repeated_model_calls_total", "Model calls that a lost worker may have made before.", func(s runner.Stats) uint64 { return s.RepeatedModelCalls })
	count("worker_repeated_tool_calls_total", "Tool calls that a lost worker had already started.", func(s runner.Stats) uint64 { return s.RepeatedToolCalls })
	count("worker_poisoned_total", "Runs given up after too many attempts.", func(s runner.Stats) uint64 { return s.Poisoned })
	if short == nil {
		return errors.Join(errs...)
	}
	errs = append(errs, m.Gauge("memory_up", "Whether short-term memory answers; without it runs continue from their logs.", func() float64 {
		if short.Stats().Up {
			return 1
		}
		return 0
	}))
	stat := func(name, help string, f func(memory.Stats) uint64) {
		errs = append(errs, m.Counter(name, help, func() float64 { return float64(f(short.Stats())) }))
	}
	stat("memory_hits_total", "States found in short-term memory.", func(s memory.Stats) uint64 { return s.Hits })
	stat("memory_misses_total", "States rebuilt from the log.", func(s memory.Stats) uint64 { return s.Misses })
	stat("memory_saves_total", "States written to short-term memory.", func(s memory.Stats) uint64 { return s.Saves })
	stat("memory_dropped_total", "States not written.", func(s memory.Stats) uint64 { return s.Dropped })
	stat("memory_errors_total", "Failures of short-term memory.", func(s memory.Stats) uint64 { return s.Errors })
	return errors.Join(errs...)
}

// budgetMetrics are about the memory of runs.
func budgetMetrics(m *observability.Metrics, b *memorylimit.Budget) error {
	return errors.Join(
		m.Gauge("worker_memory_limit_bytes", "Bytes of memory that runs may hold together.", func() float64 { return float64(b.Stats().Limit) }),
		m.Gauge("worker_memory_used_bytes", "Bytes of memory that runs hold, as far as they are counted.", func() float64 { return float64(b.Stats().Used) }),
		m.Gauge("worker_memory_waiting", "Runs that wait for memory.", func() float64 { return float64(b.Stats().Waiting) }),
		m.Counter("worker_memory_waits_total", "Waits of runs for memory.", func() float64 { return float64(b.Stats().Waits) }),
	)
}

// toolMetrics are what no event shows of tool calls: an event holds the beginning of a result, or none of it.
func toolMetrics(m *observability.Metrics, set *tools.Set) error {
	by := func(name, help string, of func(tools.Usage) uint64) error {
		return m.CountersBy(name, help, "tool", func() map[string]uint64 {
			all := map[string]uint64{}
			for tool, u := range set.Usage() {
				all[tool] = of(u)
			}
			return all
		})
	}
	return errors.Join(
		by("worker_tool_result_bytes_total", "Bytes of text that tool calls returned to models.", func(u tools.Usage) uint64 { return u.Bytes }),
		by("worker_tool_retries_total", "Attempts of tool calls after the first.", func(u tools.Usage) uint64 { return u.Retries }),
	)
}

func liveMetrics(m *observability.Metrics, p *live.Publisher) error {
	return errors.Join(
		m.Counter("worker_live_messages_total", "Messages of live text that were published.",
			func() float64 { return float64(p.Stats().Published) }),
		m.Counter("worker_live_dropped_bytes_total", "Bytes of live text that were dropped.",
			func() float64 { return float64(p.Stats().Dropped) }),
	)
}

// WorkerName is what a worker is called that was given no name.
func WorkerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
