package embed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// Config of a Service. Only Model is needed.
type Config struct {
	Model     model.Provider
	Agent     messages.Definition // default: the agent "default", without instructions, with all Tools
	Tools     []tools.Tool
	Workspace func(run messages.Ref) (*sandbox.Workspace, error) // default: no files
	Hooks     []runner.Hook
	AgentHook func(messages.Hook) (runner.HookFunc, error) // makes a hook of the agent; default: they are refused
	Prompts   PromptStore                                  // has the prompt that Agent names; default: it must name none
	Prices    runner.Prices                                // default: every price is unknown
	Secrets   *policy.Redactor                             // taken out of what models and tools say; default: none
	Memory    longterm.Store                               // what the agent recalls before it begins, and learns; default: none, and both fail
	Now       func() time.Time                             // default: the time in UTC
	Log       *slog.Logger                                 // default: discard
}

// Service runs the tasks of one agent. Safe for concurrent use.
type Service struct {
	cfg   Config
	tools *tools.Set
	rates limits.Counts // of all its sessions

	runs sync.WaitGroup // calls of Run under way; counted up under mu, and not after the close
	gone chan struct{}  // closed by Close

	mu      sync.Mutex
	closed  bool
	running map[*Session]context.CancelCauseFunc
}

// New checks the agent and its tools; the error names what is wrong.
func New(cfg Config) (*Service, error) {
	if cfg.Model == nil {
		return nil, errors.New("embed: a model is needed")
	}
	set, err := tools.NewSet(cfg.Tools...)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if set.Log = cfg.Log; cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Now().UTC() }
	}
	if cfg.Workspace == nil {
		cfg.Workspace = func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil }
	}
	if cfg.Agent.Name == "" {
		cfg.Agent.Name = messages.DefaultAgent
	}
	if cfg.Agent.Tools == nil {
		for _, t := range cfg.Tools {
			cfg.Agent.Tools = append(cfg.Agent.Tools, t.Spec().Name)
		}
	}
	cfg.Agent.SetDefaults()
	if err := cfg.Agent.Validate(); err != nil {
		return nil, fmt.Errorf("embed: agent: %w", err)
	}
	if _, err := set.Specs(cfg.Agent.Tools); err != nil {
		return nil, fmt.Errorf("embed: agent: %w", err)
	}
	if cfg.Agent.Prompt != nil && cfg.Prompts == nil {
		return nil, errors.New("embed: agent: prompt: it needs a store: set Prompts")
	}
	for i, h := range cfg.Hooks {
		if h.Func == nil || !slices.Contains(messages.HookPoints(), h.On) {
			return nil, fmt.Errorf("embed: hook %d: a point and a function are needed", i)
		}
	}
	return &Service{cfg: cfg, tools: set, gone: make(chan struct{}), running: map[*Session]context.CancelCauseFunc{}}, nil
}

// Session opens a session for a task. A task without an id gets one; its agent is the service's. ErrClosed: the service
// was closed.
func (s *Service) Session(task messages.Task) (*Session, error) {
	if s.stopped() {
		return nil, ErrClosed
	}
	if task.Agent == "" {
		task.Agent = s.cfg.Agent.Name
	}
	if task.Agent != s.cfg.Agent.Name {
		return nil, fmt.Errorf("agent %q: %w", task.Agent, messages.ErrUnknownAgent)
	}
	ids := newID(s.cfg.Now, task.Seed)
	if task.ID == "" {
		task.ID = ids()
	}
	task.SetDefaults()
	if err := task.Validate(); err != nil {
		return nil, err
	}
	x := &Session{
		service: s, run: task.Ref(), now: s.cfg.Now, feed: &feed{},
		ticket: runner.Ticket{Run: task.Ref(), Seq: 1, Body: task.Encode(), Priority: task.Priority, Queued: s.cfg.Now()},
		task:   task,
	}
	x.queue = &queue{wakes: make(chan struct{}, 1), now: s.cfg.Now, timers: make(chan uint64, 1)}
	x.controller = &runlog.Controller{Log: &x.log, Queue: x.queue, Events: x.feed, Now: s.cfg.Now, NewID: ids}
	x.runner = runner.New(runner.Config{
		Worker: "embed", Controller: x.controller, Model: s.cfg.Model, Tools: s.tools, Workspace: s.cfg.Workspace,
		Agent:   func(context.Context, string) (messages.Definition, error) { return s.cfg.Agent, nil },
		Prompt:  s.prompt(),
		Rates:   &s.rates,
		Secrets: s.cfg.Secrets, Memory: s.cfg.Memory, Log: s.cfg.Log, Prices: s.cfg.Prices, Hooks: s.cfg.Hooks, AgentHook: s.cfg.AgentHook,
	})
	return x, nil
}

// newID draws ids, from a seed if there is one.
func newID(now func() time.Time, seed *int64) func() string {
	if seed == nil {
		return func() string { return messages.NewID(now()) }
	}
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(uint64(*seed), 0))
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		var random [10]byte
		binary.BigEndian.PutUint64(random[:], rnd.Uint64())
		binary.BigEndian.PutUint16(random[8:], uint16(rnd.Uint32()))
		return messages.IDOf(now(), random)
	}
}
