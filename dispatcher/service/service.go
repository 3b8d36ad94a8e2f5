// Package service is the dispatcher process: it answers submit, status, result and cancel as a NATS micro service,
// writes control records, publishes the agent definitions and keeps the sweep going. Any number of dispatchers may
// run; none has state of its own.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is fixed for the life of a Service.
type Config struct {
	Conn       *nats.Conn
	Bus        *bus.Bus
	Catalog    *catalog.Catalog // that of the process. Default: one of its own
	Events     *events.Store    // likewise
	Controller *runlog.Controller
	Agents     []messages.Definition // published at the start, beside the built-in ones
	Version    string                // of the program; shown in the service's metadata
	Sweep      time.Duration         // between sweeps; default 10 min
	MaxInput   int                   // bytes of a task's input; default messages.MaxInput
	Retain     time.Duration         // how long a run's log is kept after its end; default 7 days
	Batches    time.Duration         // between two looks at all batches; default 5 s
	Log        *slog.Logger          // default: discard

	Webhooks     Sender          // nil: tasks with a webhook are refused
	WebhookTries []time.Duration // of attempts after the first, since the end; default over a day
	WebhookWait  time.Duration   // until the webhook of a dispatcher that was killed is taken up; default 30 s

	Index RunIndex // of runs; nil: clients read the events themselves

	// Denied, if set, hears of requests that were refused for who asked. It must not wait.
	Denied func(tenant string, what control.AuthDenied)

	// PromptPolicy, if set, reports whether a prompt may be stored; its error is shown to who asks.
	PromptPolicy prompt.Policy

	// Redact takes secrets out of what prompts put through redact when they are filled in here; nil: nothing.
	Redact func(string) string
}

// apiVersion is the semantic version of the requests and replies.
const apiVersion = "1.0.0"

const (
	defaultRetain = 7 * 24 * time.Hour
	// How long a run may wait for what a loss of power took.
	defaultSweep = 10 * time.Minute
	// How long a task of a tenant that nobody knows may wait when every hint of it was lost.
	lanesEvery = time.Minute
	// How many requests are answered at once; more wait in NATS.
	maxRequests = 256
	// How many prompts are filled in at once.
	maxRenders = 4
	// How long one request may take.
	answerTimeout = 10 * time.Second
)

// stores are what a Service reads and writes of the bus, by role.
type stores struct {
	batches   *batches.Store
	schedules *schedules.Store
	sessions  *sessions.Store
	logs      *logentries.Store
	workers   *roster.Fleet

	letters    *deadletters.Store
	webhooks   *webhooks.Queue
	semaphores *semaphores.Store
}

// Service answers requests.
type Service struct {
	cfg    Config
	stores stores
	ready  chan struct{}
	pump   *pump
	door   door

	calling calls
	sent    webhookCounts

	renders chan struct{} // a place for each prompt that is being filled in

	parts logParts // of logs

	untold atomic.Uint64 // changes without an event

	within func() map[string]answerFunc // the handlers, made once
	places chan struct{}                // one for each request that is being answered
	over   chan struct{}                // closed when no more requests are answered
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Sweep == 0 {
		cfg.Sweep = defaultSweep
	}
	if cfg.Retain == 0 {
		cfg.Retain = defaultRetain
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Batches == 0 {
		cfg.Batches = defaultBatchSweep
	}
	if cfg.WebhookTries == nil {
		cfg.WebhookTries = defaultWebhookTries()
	}
	if cfg.WebhookWait == 0 {
		cfg.WebhookWait = defaultWebhookWait
	}
	if cfg.Catalog == nil {
		cfg.Catalog = catalog.New(cfg.Bus)
	}
	if cfg.Events == nil {
		cfg.Events = events.New(cfg.Bus)
	}
	s := &Service{
		stores: stores{
			batches: batches.New(cfg.Bus), schedules: schedules.New(cfg.Bus), sessions: sessions.New(cfg.Bus),
			logs: logentries.New(cfg.Bus), workers: roster.New(cfg.Bus),
			letters: deadletters.New(cfg.Bus), webhooks: webhooks.New(cfg.Bus), semaphores: semaphores.New(cfg.Bus),
		},
		cfg: cfg, ready: make(chan struct{}), pump: newPump(), renders: make(chan struct{}, maxRenders),
		places: make(chan struct{}, maxRequests), over: make(chan struct{}),
	}
	s.within = sync.OnceValue(s.handlers)
	return s
}

// Ready is closed once requests are answered.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Run serves until ctx ends, then finishes the requests in hand.
func (s *Service) Run(ctx context.Context) error {
	if err := s.publishAgents(ctx); err != nil {
		return err
	}
	if err := s.cfg.Bus.ScheduleSweep(ctx, s.cfg.Sweep); err != nil {
		return fmt.Errorf("schedule the sweep: %w", err)
	}
	if err := s.cfg.Bus.ScheduleLanes(ctx, lanesEvery); err != nil {
		return fmt.Errorf("schedule the look for lanes: %w", err)
	}
	svc, err := micro.AddService(s.cfg.Conn, micro.Config{
		Name: "longshore", Version: apiVersion, Description: "Submit tasks to the fleet, ask about runs, cancel them.",
		Metadata: map[string]string{"program": s.cfg.Version},
	})
	if err != nil {
		return fmt.Errorf("add service: %w", err)
	}
	requests, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer s.parts.clear()
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	defer func() { // a request may still come while the service stops: it has a place, or it is not begun
		close(s.over)
		for range maxRequests {
			s.places <- struct{}{}
		}
	}()
	for subject, answer := range s.endpoints() {
		handler := micro.HandlerFunc(func(req micro.Request) {
			select {
			case s.places <- struct{}{}:
			case <-requests.Done():
				s.answer(requests, req, stopped)
				return
			}
			go func() {
				defer func() { <-s.places }()
				s.answer(requests, req, answer)
			}()
		})
		if err := svc.AddEndpoint(endpointName(subject), handler, endpointOptions(subject)...); err != nil {
			return errors.Join(fmt.Errorf("add endpoint %s: %w", subject, err), svc.Stop())
		}
	}
	if err := s.cfg.Conn.FlushTimeout(answerTimeout); err != nil {
		return errors.Join(fmt.Errorf("subscribe: %w", err), svc.Stop())
	}
	close(s.ready)
	sweeping.Go(func() { s.keepSweeping(ctx) })
	group, keeping := errgroup.WithContext(ctx)
	group.Go(func() error { return s.keepSchedules(keeping) })
	group.Go(func() error { s.moveBatches(keeping); return nil })
	group.Go(func() error { return s.cfg.Events.RunEnds(keeping, s.runEnded) })
	group.Go(func() error { return s.keepDelivering(keeping) })
	group.Go(func() error { return s.cfg.Bus.Retain(keeping, s.cfg.Retain) })
	if err := group.Wait(); err != nil {
		return errors.Join(err, svc.Stop())
	}
	<-ctx.Done()
	if err := svc.Stop(); err != nil {
		return fmt.Errorf("stop service: %w", err)
	}
	return nil
}

// keepSweeping sets the schedule again from time to time: whoever may publish tasks can also remove it.
func (s *Service) keepSweeping(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.cfg.Bus.ScheduleSweep(ctx, s.cfg.Sweep); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "schedule the sweep", "err", err)
			}
			if err := s.cfg.Bus.ScheduleLanes(ctx, lanesEvery); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "schedule the look for lanes", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// endpointOptions are those of a request: one dispatcher answers it, or all hear it.
func endpointOptions(subject string) []micro.EndpointOpt {
	options := []micro.EndpointOpt{micro.WithEndpointSubject(subject)}
	if subject == control.SubjectIndexRebuild { // each may have a file of its own
		options = append(options, micro.WithEndpointQueueGroupDisabled())
	}
	return options
}

func endpointName(subject string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(subject, "longshore."), "*", "tenant")
	return strings.ReplaceAll(name, ".", "-")
}

// publishAgents makes the built-in agents and the given ones known to the fleet. An agent that has not changed keeps
// its revision. A definition of one's own with the name of a built-in one replaces it.
func (s *Service) publishAgents(ctx context.Context) error {
	for _, d := range messages.BuiltinAgents() {
		if named(s.cfg.Agents, d.Name) {
			continue
		}
		if err := s.publishBuiltin(ctx, d); err != nil {
			return fmt.Errorf("publish agent %s: %w", d.Name, err)
		}
	}
	for _, d := range s.cfg.Agents {
		revision, changed, err := s.cfg.Catalog.PutAgent(ctx, d)
		if err != nil {
			return fmt.Errorf("publish agent %s: %w", d.Name, err)
		}
		if changed {
			s.cfg.Log.InfoContext(ctx, "agent published", "agent", d.Name, "revision", revision)
		}
	}
	return nil
}

func named(agents []messages.Definition, name string) bool {
	for _, d := range agents {
		if d.Name == name {
			return true
		}
	}
	return false
}
