package fleet

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/observability"
)

// watching adds to the metrics of a dispatcher what it counts and what it sees of the fleet. What it returns keeps them
// until its ctx ends. Events count from now on.
func watching(
	ctx context.Context, m *observability.Metrics, b *bus.Bus, kept *retention.Retention, svc *service.Service, hub *events.Hub, log *slog.Logger,
) (run func(context.Context) error, err error) {
	shared, err := events.New(b).Share(ctx, bus.ConsumerMetrics)
	if err != nil {
		return nil, err
	}
	events := observability.NewEvents(m)
	view, err := observability.NewView(m, b, kept, log)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(watcherMetrics(m, hub), webhookMetrics(m, svc)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return shared.Run(ctx, events.Observe) })
		group.Go(func() error { return view.Run(ctx) })
		return group.Wait()
	}, nil
}

func watcherMetrics(m *observability.Metrics, hub *events.Hub) error {
	return errors.Join(
		m.Gauge("watchers", "Clients that follow a run over HTTP.", func() float64 { return float64(hub.Watchers()) }),
		m.Gauge("watchers_lag", "Stored events that watchers have not received yet, as of the last event.",
			func() float64 { return float64(hub.Pending()) }),
		m.Counter("watchers_stalled_total", "Times that a watcher was too slow for the buffer and had to read from the stream.",
			func() float64 { return float64(hub.Stalls()) }),
	)
}

func webhookMetrics(m *observability.Metrics, svc *service.Service) error {
	count := func(name, help string, of func(webhooks.Stats) uint64) error {
		return m.Counter(name, help, func() float64 { return float64(of(svc.Webhooks())) })
	}
	return errors.Join(
		count("webhooks_delivered_total", "Webhooks that were delivered.", func(s webhooks.Stats) uint64 { return s.Delivered }),
		count("webhook_failures_total", "Attempts to deliver a webhook that failed.", func(s webhooks.Stats) uint64 { return s.Failed }),
		count("webhooks_given_up_total", "Webhooks that became dead letters.", func(s webhooks.Stats) uint64 { return s.GivenUp }),
	)
}

func retentionMetrics(m *observability.Metrics, kept *retention.Retention) error {
	return errors.Join(
		m.Counter("runs_removed_total", "Runs that were removed after their retention.", func() float64 {
			all, _ := kept.Purged()
			return float64(all)
		}),
		m.Counter("runs_removed_late_total", "Removed runs whose end was no longer among the events.", func() float64 {
			_, missed := kept.Purged()
			return float64(missed)
		}),
	)
}
