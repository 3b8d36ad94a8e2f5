// Package service is the dispatcher process: a NATS micro service. It makes the owners of the requests, a package each below this
// one, registers their handlers, and runs what needs no request: the sweep, schedules, batches, webhooks. Any
// number of dispatchers may run; none has state of its own.
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

	"github.com/longshore-run/longshore/dispatcher/service/erasure"
	"github.com/longshore-run/longshore/dispatcher/service/history"
	"github.com/longshore-run/longshore/dispatcher/service/memory"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runindex"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is fixed for the life of a Service.
type Config struct {
	Conn       *nats.Conn
	Bus        *bus.Bus
	Catalog    *catalog.Catalog     // that of the process. Default: one of its own
	Events     *events.Store        // likewise
	Logs       *runlogs.Store       // likewise
	Files      *files.Store         // likewise
	Quotas     *quotas.Quotas       // likewise
	Retention  *retention.Retention // likewise
	Controller *runlog.Controller
	Agents     []messages.Definition // published at the start, in addition to the built-in ones
	Version    string                // of the program; shown in the service's metadata
	Sweep      time.Duration         // between sweeps; default 10 min
	MaxInput   int                   // bytes of a task's input; default messages.MaxInput
	Retain     time.Duration         // how long a run's log is kept after its end; default 7 days
	Batches    time.Duration         // between two looks at all batches; default 5 s
	Uploads    files.UploadLimits    // of contents that tasks are to refer to
	Log        *slog.Logger          // default: discard

	// Operations are what is answered, over NATS and to Answer; default control.Operations(). Handlers answer those that are not
	// Longshore's own, by their subjects of the fleet: they get the request as JSON, return a reply that is sent as JSON, and must
	// return when their context ends. Of an error, callers see what the operation declares, or a *messages.Problem or
	// *messages.FieldError as it is.
	Operations control.Table
	Handlers   request.Handlers

	Webhooks     webhooks.Sender // nil: tasks with a webhook are refused
	WebhookTries []time.Duration // of attempts after the first, since the end; default over a day
	WebhookWait  time.Duration   // until the webhook of a dispatcher that was killed is taken up; default 30 s

	// Check plans the decisions of a run's log again; nil: requests for that are refused. It must return soon after the log ends with an
	// error, and return that.
	Check history.Check

	Index  runindex.Index // of runs; nil: clients read the events themselves
	Memory memory.Store   // long-term memory; nil: requests about it are refused
	Reach  erasure.Reach  // of erasures

	// MemoryRules are what may be written to the long-term memory of a tenant; nil: all.
	MemoryRules func(tenant string) memory.Rule

	// Denied, if set, is told about requests that were refused because of their caller. It must not wait.
	Denied func(tenant string, what control.AuthDenied)

	// PromptPolicy, if set, reports whether a prompt may be stored; its error is shown to the caller.
	PromptPolicy prompt.Policy
	// AgentPolicy, if set, reports whether an agent may be stored; its error is shown to the caller.
	AgentPolicy func(*messages.Definition) error

	// Redact takes secrets out of what prompts put through redact when they are filled in here, and of what clients write to long-term
	// memory; nil: nothing.
	Redact func(string) string
}

// apiVersion is the semantic version of the requests and replies.
const apiVersion = "1.0.0"

const (
	defaultRetain = 7 * 24 * time.Hour
	// How long a run may wait for what a loss of power took.
	defaultSweep = 10 * time.Minute
	// How long a task of a tenant that no worker knows may wait when every hint of it was lost.
	lanesEvery = time.Minute
	// How many requests are answered at once; more wait in NATS.
	maxRequests = 256
	// How many requests wait for the end of a run, beside those; more are answered at once, and asked again.
	maxIdle = 8192
)

// Service answers requests. What it answers is written in its owners; the Service makes them, hands them their requests, and runs
// what needs no request.
type Service struct {
	cfg    Config
	owners owners
	ready  chan struct{}

	untold atomic.Uint64 // changes without an event

	within  func() (request.Handlers, error) // made once
	permits chan struct{}                    // has an element for each request that is being answered
	idling  chan struct{}                    // has an element for each request that waits; it has no permit meanwhile
	over    chan struct{}                    // closed when no more requests are answered
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Sweep == 0 {
		cfg.Sweep = defaultSweep
	}
	if cfg.Retain == 0 {
		cfg.Retain = defaultRetain
	}
	if cfg.Operations == nil {
		cfg.Operations = control.Operations()
	}
	cfg.Operations = cfg.Operations.OverNATS()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Catalog == nil {
		cfg.Catalog = catalog.New(cfg.Bus)
	}
	if cfg.Events == nil {
		cfg.Events = events.New(cfg.Bus)
	}
	if cfg.Logs == nil {
		cfg.Logs = runlogs.New(cfg.Bus, runlogs.Config{})
	}
	if cfg.Files == nil {
		cfg.Files = files.New(cfg.Bus)
	}
	if cfg.Quotas == nil {
		cfg.Quotas = quotas.New(cfg.Bus, cfg.Logs)
	}
	if cfg.Retention == nil {
		cfg.Retention = retention.New(cfg.Bus, cfg.Logs)
	}
	s := &Service{
		cfg: cfg, owners: newOwners(&cfg, newStores(cfg.Bus, cfg.Logs, cfg.Files)), ready: make(chan struct{}),
		permits: make(chan struct{}, maxRequests), idling: make(chan struct{}, maxIdle), over: make(chan struct{}),
	}
	s.within = sync.OnceValues(s.handlers)
	return s
}

// Ready is closed once requests are answered.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Run serves until ctx ends, then finishes the requests in hand. A table of operations that does not fit the handlers is an error
// at once.
func (s *Service) Run(ctx context.Context) error {
	endpoints, err := s.endpoints()
	if err != nil {
		return err
	}
	if err := s.owners.definitions.Publish(ctx, s.cfg.Agents); err != nil {
		return err
	}
	if err := taskqueue.NewSweeps(s.cfg.Bus).ScheduleSweep(ctx, s.cfg.Sweep); err != nil {
		return fmt.Errorf("schedule the sweep: %w", err)
	}
	if err := taskqueue.NewSweeps(s.cfg.Bus).ScheduleLanes(ctx, lanesEvery); err != nil {
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
	defer s.owners.history.Close()
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	defer func() { // a request may still come while the service stops: it has a permit, or it is not begun
		close(s.over)
		for range maxIdle { // those that wait have their permits again
			s.idling <- struct{}{}
		}
		for range maxRequests {
			s.permits <- struct{}{}
		}
	}()
	for subject, answer := range endpoints {
		handler := micro.HandlerFunc(func(req micro.Request) {
			select {
			case s.permits <- struct{}{}:
			case <-requests.Done():
				s.answer(requests, req, stopped)
				return
			}
			go func() {
				defer func() { <-s.permits }()
				s.answer(requests, req, answer)
			}()
		})
		if err := svc.AddEndpoint(endpointName(subject), handler, s.endpointOptions(subject)...); err != nil {
			return errors.Join(fmt.Errorf("add endpoint %s: %w", subject, err), svc.Stop())
		}
	}
	if err := s.cfg.Conn.FlushTimeout(request.Timeout); err != nil {
		return errors.Join(fmt.Errorf("subscribe: %w", err), svc.Stop())
	}
	close(s.ready)
	sweeping.Go(func() { s.keepSweeping(ctx) })
	group, keeping := errgroup.WithContext(ctx)
	group.Go(func() error { return s.owners.schedules.Run(keeping) })
	group.Go(func() error { s.owners.batches.Run(keeping); return nil })
	group.Go(func() error { return s.cfg.Events.RunEnds(keeping, s.runEnded) })
	group.Go(func() error { return s.owners.endings.Run(keeping) })
	group.Go(func() error { return s.owners.webhooks.Run(keeping) })
	group.Go(func() error { return s.cfg.Retention.Retain(keeping, s.cfg.Retain) })
	group.Go(func() error { return s.cfg.Files.KeepCollecting(keeping) })
	if err := group.Wait(); err != nil {
		return errors.Join(err, svc.Stop())
	}
	<-ctx.Done()
	if err := svc.Stop(); err != nil {
		return fmt.Errorf("stop service: %w", err)
	}
	return nil
}

// idle implements request.Idler: the request gives its permit to others while it waits.
func (s *Service) idle(wait func(stop <-chan struct{})) bool {
	select {
	case s.idling <- struct{}{}:
	default:
		return false
	}
	<-s.permits
	wait(s.over)
	s.permits <- struct{}{}
	<-s.idling
	return true
}

// keepSweeping sets the schedule again from time to time: a client that may publish tasks can also remove it. It removes the agents whose
// time is over as well.
func (s *Service) keepSweeping(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := taskqueue.NewSweeps(s.cfg.Bus).ScheduleSweep(ctx, s.cfg.Sweep); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "schedule the sweep", "err", err)
			}
			if err := taskqueue.NewSweeps(s.cfg.Bus).ScheduleLanes(ctx, lanesEvery); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "schedule the look for lanes", "err", err)
			}
			if err := s.owners.definitions.Expire(ctx, s.cfg.Controller.Now()); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "remove agents that expired", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// endpointOptions are those of a request: one dispatcher answers it, or all hear it.
func (s *Service) endpointOptions(subject string) []micro.EndpointOpt {
	options := []micro.EndpointOpt{micro.WithEndpointSubject(subject)}
	if o := s.cfg.Operations.Of(subject); o != nil && o.Everywhere {
		options = append(options, micro.WithEndpointQueueGroupDisabled())
	}
	return options
}

func endpointName(subject string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(subject, "longshore."), "*", "tenant")
	return strings.ReplaceAll(name, ".", "-")
}

// Webhooks count since New. They may be read at any time.
func (s *Service) Webhooks() webhooks.Stats { return s.owners.webhooks.Stats() }
