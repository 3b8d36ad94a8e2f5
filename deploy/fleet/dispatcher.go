package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/dispatcher/console"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/replay"
)

// Dispatcher runs the dispatcher process until ctx ends. Once requests are answered it calls ready, unless that is
// nil, with the HTTP address.
func Dispatcher(ctx context.Context, s settings.Dispatcher, version string, log *slog.Logger, ready func(addr string)) error {
	defs, err := loadAgents(s.Agents)
	if err != nil {
		return err
	}
	nc, err := Connect(ctx, s.NATS, "longshore dispatcher", log)
	if err != nil {
		return err
	}
	defer nc.Close()
	return runDispatcher(ctx, nc, s, policy.NewRedactor(settings.Secrets(s)...), defs, version, log, ready)
}

// loadAgents reads the definitions of a folder; none without one.
func loadAgents(dir string) ([]messages.Definition, error) {
	if dir == "" {
		return nil, nil
	}
	return agents.Load(dir)
}

func runDispatcher(ctx context.Context, nc *nats.Conn, s settings.Dispatcher, redact *policy.Redactor, defs []messages.Definition, version string, log *slog.Logger, ready func(string)) error {
	signer, keys, err := signing(s)
	if err != nil {
		return err
	}
	if err := bus.Setup(ctx, nc, s.Streams()); err != nil {
		return fmt.Errorf("set up streams: %w", err)
	}
	said := newLogs(log, redact, "")
	log = said.of("dispatcher")
	b, err := bus.Open(ctx, nc, bus.Config{Log: said.of("bus"), Signer: signer, Keys: keys, Direct: true})
	if err != nil {
		return err
	}
	said.store = logentries.New(b)
	if signed, err := b.SignStored(ctx); err != nil {
		return err
	} else if signed > 0 {
		log.InfoContext(ctx, "keys, agents, prompts and quotas that were stored unsigned are signed", "entries", signed)
	}
	sender, shut, err := webhookSender(s.Webhooks, version)
	if err != nil {
		return err
	}
	defer shut()
	runs, err := Index(ctx, s.RunIndex, b, log)
	if err != nil {
		return err
	}
	defer closeIndex(ctx, runs, log)
	told := events.New(b)
	denials := auth.NewDenials(told.AnnounceTo, log)
	clock := b.NewClock(bus.ClockConfig{Log: log})
	if err := clock.Measure(ctx); err != nil {
		return err
	}
	ring, err := Keys(b, &s.Encryption)
	if err != nil {
		return err
	}
	logs := runlogs.New(b, runlogs.Config{Sealer: ring, Bundles: s.Bundles})
	stored, granted, kept := catalog.New(b), quotas.New(b, logs), retention.New(b, logs)
	remembered, err := openLongTerm(s.LongTerm, &s.Policy, s.RedisURL, ring, said.of("memory"))
	if err != nil {
		return err
	}
	defer func() { _ = remembered.close() }()
	inRedis, shutRedis, err := openCached(s.RedisURL)
	if err != nil {
		return err
	}
	defer func() { _ = shutRedis() }()
	operations := control.Operations()
	svc := service.New(service.Config{
		Operations: operations,

		Denied: denials.Tell,
		Index:  asked(runs),
		Memory: remembered.served(), MemoryRules: memoryRules(&s.Policy),
		Reach: reach(inRedis, ring),
		Check: replay.Check,
		Conn:  nc, Bus: b, Catalog: stored, Events: told, Logs: logs, Files: files.NewSealed(b, ring), Quotas: granted, Retention: kept, Controller: controller(b, logs, granted, clock), Agents: defs, Version: version, Sweep: s.Sweep, Retain: s.Retention, MaxInput: s.MaxInput, Uploads: s.Uploads(), Log: log,
		PromptPolicy: withoutSecrets(redact), AgentPolicy: agentsWithoutSecrets(redact), Redact: redact.String, Webhooks: sender,
	})
	metrics := observability.NewMetrics(version)
	if err := metrics.Counter("foreign_events_total", "Messages on event subjects that are not events.", func() float64 { return float64(b.Skipped()) }); err != nil {
		return err
	}
	if err := errors.Join(ignoredMetrics(metrics, b, logs, granted), clockMetrics(metrics, clock), storageMetrics(metrics, b), said.metrics(metrics), remembered.metrics(metrics)); err != nil {
		return err
	}
	if err := metrics.Counter("untold_acts_total", "Changes by people for which the event could not be stored.", func() float64 { return float64(svc.Untold()) }); err != nil {
		return err
	}
	if err := retentionMetrics(metrics, kept); err != nil {
		return err
	}
	denied := func() float64 { return float64(denials.Total()) }
	if err := metrics.Counter("auth_denied_total", "Requests that were refused because of their caller.", denied); err != nil {
		return err
	}
	if err := indexMetrics(metrics, runs); err != nil {
		return err
	}
	cert, err := certificate(ctx, s.Access, s.HTTPAddr, log)
	if err != nil {
		return err
	}
	browsers, err := newCookies(ring)
	if err != nil {
		return err
	}
	gate, err := access(ctx, s.Access, stored, denials, browsers, log)
	if err != nil {
		return err
	}
	front, hub := httpAPI(nc, b, stored, svc, api.Config{
		Runs:    logs,
		Version: version, LiteTimeout: s.LiteTimeout, Access: gate.api, Hosts: s.Names(s.HTTPAddr), Log: said.of("api"), Operations: operations,
	})
	pages, err := withConsole(front, s.HasConsole())
	if err != nil {
		return err
	}
	watch, err := watching(ctx, metrics, b, kept, svc, hub, log)
	if err != nil {
		return err
	}
	export, err := exportTraces(ctx, s.Traces, b, version, log)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, front.Drain)()
	group.Go(func() error { return said.entries.Run(ctx) })
	group.Go(func() error { return svc.Run(ctx) })
	group.Go(func() error { return hub.Run(ctx) })
	group.Go(func() error { clock.Keep(ctx, clockEvery, nil); return nil })
	group.Go(func() error { b.KeepStorage(ctx, storageEvery, true); return nil })
	group.Go(func() error { return export(ctx) })
	group.Go(func() error { return taskqueue.New(b).Intake(ctx) })
	group.Go(func() error { return keepIndex(ctx, runs) })
	group.Go(func() error { return gate.run(ctx) })
	group.Go(func() error { return denials.Run(ctx) })
	group.Go(func() error { return remembered.run(ctx) })
	group.Go(func() error { return watch(ctx) })
	group.Go(func() error {
		select {
		case <-svc.Ready():
		case <-ctx.Done():
			return nil
		}
		return serve(ctx, s.HTTPAddr, beside(front, pages, observability.Handler(metrics, readiness(nc, b.CheckStorage)), s.MetricsOpen), observability.ServeConfig{
			Certificate: cert, Log: log,
			Connections: observability.Connections{Most: s.Connections, PerAddress: s.PerAddress},
		}, ready)
	})
	return group.Wait()
}

// httpAPI is the HTTP API of a dispatcher and the hub that feeds its watchers.
func httpAPI(nc *nats.Conn, b *bus.Bus, agents *catalog.Catalog, svc *service.Service, cfg api.Config) (*api.API, *events.Hub) {
	cfg.Client, cfg.Hub = dispatcher.NewWithin(nc, b, agents, svc), events.New(b).NewHub()
	return api.New(cfg), cfg.Hub
}

// withConsole serves the pages of the console as well, where they are on.
func withConsole(front *api.API, on bool) (http.Handler, error) {
	if !on {
		return front, nil
	}
	return console.New(front)
}

// beside serves probes and scrapes at their paths, and everything else by rest. Probes need no authentication.
func beside(front *api.API, rest, probes http.Handler, open bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", rest)
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	if open {
		mux.Handle("/metrics", probes)
	} else {
		mux.Handle("/metrics", front.Guard("metrics", control.ReadFleet, probes))
	}
	return mux
}

// controller is the Controller of a process.
func controller(b *bus.Bus, logs *runlogs.Store, granted *quotas.Quotas, clock *bus.Clock) *runlog.Controller {
	tasks := taskqueue.New(b)
	return &runlog.Controller{
		Log: logs, Queue: tasks, Tasks: tasks, Events: logs, Sessions: sessions.New(b, logs), Quotas: granted, Asks: semaphores.New(b), Workspaces: files.New(b), Now: clock.Now, NewID: func() string { return messages.NewID(time.Now()) },
	}
}

// serve serves HTTP, or HTTPS with a certificate, until ctx ends.
func serve(ctx context.Context, addr string, h http.Handler, cfg observability.ServeConfig, up func(string)) error {
	at, wait, err := observability.ServeWith(ctx, addr, h, cfg)
	if err != nil {
		return err
	}
	cfg.Log.InfoContext(ctx, "ready", "http", at.String())
	if up != nil {
		up(at.String())
	}
	return wait()
}

// Client is the name of a connection that a person waits for; it gives up sooner.
const (
	Client     = "longshore client"
	clientWait = 3 * time.Second
)

// Connect connects to the message store of a process.
func Connect(ctx context.Context, s settings.NATS, name string, log *slog.Logger) (*nats.Conn, error) {
	cfg := s.Conn(name, log)
	if name == Client {
		cfg.Wait = clientWait
	}
	return bus.Connect(ctx, cfg)
}
