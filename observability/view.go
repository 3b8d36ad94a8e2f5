package observability

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

const (
	viewEvery = 10 * time.Second
	viewWait  = 5 * time.Second // for each part
	// Lanes that are shown by name; the rest of each priority is summed up. Tenants are named here alone.
	maxLanesShown = 50
	laneRest      = "(other)" // no tenant can have that name
)

// View is the state of the fleet as a dispatcher sees it: queue lengths, workers, lag. Every dispatcher exports the same values,
// so aggregate with max and not with sum. It is refreshed every ten seconds, independently of scrapes; a part that could not be
// read is omitted.
type View struct {
	bus    *bus.Bus
	queue  *taskqueue.Queue
	kept   *retention.Retention
	roster *roster.Fleet
	log    *slog.Logger
	parked parked

	failures atomic.Uint64
	lanes    part[[]taskqueue.Depth]
	lags     part[map[string]bus.Lag]
	workers  part[[]messages.WorkerStatus]
	letters  part[letters]
	overdue  part[time.Duration]
}

// letters counts dead letters.
type letters struct {
	tasks, webhooks int
	stored          uint64
}

// part is what was seen last; nil: nothing.
type part[T any] struct{ seen atomic.Pointer[T] }

func look[T any](ctx context.Context, v *View, p *part[T], what string, get func(context.Context) (T, error)) {
	within, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	got, err := get(within)
	switch {
	case err != nil && ctx.Err() != nil: // the process stops
		return
	case err != nil:
		p.seen.Store(nil)
		v.failures.Add(1)
		v.log.WarnContext(ctx, "look at the fleet", "at", what, "err", err)
		return
	}
	p.seen.Store(&got)
}

// NewView adds to the metrics of a dispatcher those of the fleet; kept is the retention of its process. Nothing is shown before Run.
func NewView(m *Metrics, b *bus.Bus, kept *retention.Retention, log *slog.Logger) (*View, error) {
	v := &View{bus: b, queue: taskqueue.New(b), kept: kept, roster: roster.New(b), log: log, parked: parked{reasons: newOpenLabel(parkReasons()...)}}
	if err := m.Counter("fleet_look_failures_total", "Failed attempts to read a part of the fleet, whose metrics are then absent.", func() float64 {
		return float64(v.failures.Load())
	}); err != nil {
		return nil, err
	}
	for _, g := range v.metrics() {
		if err := m.add(g.Described, &readings{g.read}); err != nil {
			return nil, err
		}
	}
	for _, consumer := range bus.SharedConsumers() {
		if err := m.Lag(consumer, func() (l bus.Lag, ok bool) {
			if all := v.lags.seen.Load(); all != nil {
				l, ok = (*all)[consumer]
			}
			return l, ok
		}); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Run looks until ctx ends.
func (v *View) Run(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { v.parked.run(ctx, v.bus, v.log) })
	ticker := time.NewTicker(viewEvery)
	defer ticker.Stop()
	for {
		v.look(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (v *View) look(ctx context.Context) {
	look(ctx, v, &v.lanes, "lanes", func(ctx context.Context) ([]taskqueue.Depth, error) { return v.queue.Depths(ctx, maxLanesShown) })
	look(ctx, v, &v.lags, "consumers", v.bus.Lags)
	look(ctx, v, &v.workers, "workers", v.roster.Workers)
	look(ctx, v, &v.letters, "dead letters", func(ctx context.Context) (l letters, err error) {
		l.tasks, l.webhooks, l.stored, err = deadletters.New(v.bus).Count(ctx)
		return l, err
	})
	look(ctx, v, &v.overdue, "retention", v.kept.Overdue)
}

// viewed is a metric of the view.
type viewed struct {
	Described
	read func(emit func(prometheus.Metric))
}

// gaugeOf reads a part, if it was seen.
func gaugeOf[T any](p *part[T], name, help string, labels []string, each func(seen T, show func(n float64, labels ...string))) viewed {
	return readOf(p, prometheus.GaugeValue, Described{Name: name, Type: typeGauge, Labels: labels, Help: help}, each)
}

func readOf[T any](p *part[T], kind prometheus.ValueType, d Described, each func(seen T, show func(n float64, labels ...string))) viewed {
	as := desc(d.Name, d.Help, d.Labels...)
	return viewed{d, func(emit func(prometheus.Metric)) {
		if seen := p.seen.Load(); seen != nil {
			each(*seen, func(n float64, labels ...string) { emit(prometheus.MustNewConstMetric(as, kind, n, labels...)) })
		}
	}}
}

func (v *View) metrics() []viewed {
	lane := []string{"priority", "tenant"}
	return []viewed{
		gaugeOf(&v.lanes, "queue_tasks", "Undelivered messages in a lane, for the fullest lanes; the rest is summed up as (other). The lane of wake-ups has no tenant.", lane,
			func(all []taskqueue.Depth, show func(float64, ...string)) {
				eachLane(all, func(d taskqueue.Depth) float64 { return float64(d.Queued) }, add, show)
			}),
		gaugeOf(&v.lanes, "queue_in_flight", "Messages in a lane that a worker holds, or that wait for redelivery.", lane,
			func(all []taskqueue.Depth, show func(float64, ...string)) {
				eachLane(all, func(d taskqueue.Depth) float64 { return float64(d.InFlight) }, add, show)
			}),
		gaugeOf(&v.lanes, "queue_oldest_seconds", "Age of the first undelivered message in a lane.", lane,
			func(all []taskqueue.Depth, show func(float64, ...string)) {
				eachLane(all, func(d taskqueue.Depth) float64 { return age(d.Oldest) }, func(a, b float64) float64 { return max(a, b) }, show)
			}),
		gaugeOf(&v.lanes, "queue_lanes", "Lanes that have messages.", nil,
			func(all []taskqueue.Depth, show func(float64, ...string)) { show(float64(len(all))) }),
		v.parked.count(), v.parked.oldest(),
		v.fleet("fleet_workers", "Workers that answer.", func(messages.WorkerStatus) int { return 1 }),
		v.fleet("fleet_workers_draining", "Workers that take nothing new.", func(w messages.WorkerStatus) int {
			if w.Draining {
				return 1
			}
			return 0
		}),
		v.fleet("fleet_slots", "Runs that all workers may work at once.", func(w messages.WorkerStatus) int { return w.Slots }),
		v.fleet("fleet_slots_busy", "Slots of all workers in use.", func(w messages.WorkerStatus) int { return w.Busy }),
		gaugeOf(&v.letters, "dead_letters", "Dead letters that are kept: of tasks, and of webhooks.", []string{"of"},
			func(l letters, show func(float64, ...string)) {
				show(float64(l.tasks), "task")
				show(float64(l.webhooks), "webhook")
			}),
		gaugeOf(&v.overdue, "retention_overdue_seconds", "How long the first run whose retention is over has waited to be removed; 0 if none waits.", nil,
			func(d time.Duration, show func(float64, ...string)) { show(d.Seconds()) }),
		readOf(&v.letters, prometheus.CounterValue,
			Described{Name: "dead_letters_stored_total", Type: typeCounter, Help: "Dead letters stored so far, as counted by the stream."},
			func(l letters, show func(float64, ...string)) { show(float64(l.stored)) }),
	}
}

func (v *View) fleet(name, help string, of func(messages.WorkerStatus) int) viewed {
	return gaugeOf(&v.workers, name, help, nil, func(all []messages.WorkerStatus, show func(float64, ...string)) {
		n := 0
		for _, w := range all {
			n += of(w)
		}
		show(float64(n))
	})
}

func add(a, b float64) float64 { return a + b }

// age of what was stored then, in seconds; 0 for the zero time. The server's clock may be ahead by a little.
func age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, time.Since(at).Seconds())
}

// eachLane shows the first lanes by name, and what the others have together by priority.
func eachLane(all []taskqueue.Depth, of func(d taskqueue.Depth) float64, together func(a, b float64) float64, show func(float64, ...string)) {
	rest := map[messages.Priority]float64{}
	for i, d := range all {
		if i < maxLanesShown {
			show(of(d), string(d.Priority), d.Tenant)
		} else {
			rest[d.Priority] = together(rest[d.Priority], of(d))
		}
	}
	for p, n := range rest {
		show(n, string(p), laneRest)
	}
}
