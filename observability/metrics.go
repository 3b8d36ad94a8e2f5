package observability

import (
	"cmp"
	"fmt"
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// namespace begins the name of every metric of ours.
const namespace = "longshore"

// Metrics counts what events tell, in a registry of its own. Any number of goroutines may use it.
//
// No label names a run or a tenant. Labels that others name (agents, models with their provider, tools, reasons)
// show 200 values in the life of the process, and "other" for the rest.
type Metrics struct {
	registry *prometheus.Registry

	agents, models, tools, reasons *openLabel

	seen, started, finished, waiting          *prometheus.CounterVec
	modelCalls, modelFailures, tokens         *prometheus.CounterVec
	toolCalls                                 *prometheus.CounterVec
	malformed, cancels                        prometheus.Counter
	runSeconds, modelCallSeconds, toolSeconds *prometheus.HistogramVec
	runSteps, firstEventSeconds               prometheus.Histogram
}

// NewMetrics returns metrics in which nothing is counted yet, with those of Go and of the process. The version is
// that of the program.
func NewMetrics(version string) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{r}
	f.gauge("build_info", "The program that runs: always 1.", prometheus.Labels{"version": cmp.Or(version, labelUnknown)}).Set(1)
	return &Metrics{
		registry: r, agents: newOpenLabel(), models: newOpenLabel(), tools: newOpenLabel(), reasons: newOpenLabel(),

		seen:      f.counters("events_seen_total", "Events that were consumed.", "name"),
		malformed: f.counter("events_malformed_total", "Events that could not be understood, and count for nothing else."),

		started:    f.counters("runs_started_total", "Runs that were started.", "agent"),
		finished:   f.counters("runs_finished_total", "Runs that ended; the code says why one failed.", "agent", "status", "code"),
		waiting:    f.counters("runs_waiting_total", "Times that a run began to wait.", "reason"),
		cancels:    f.counter("cancels_total", "Requests to cancel a run."),
		runSeconds: f.histograms("run_duration_seconds", "Time from the start of a run to its end.", runBuckets(), "status"),
		runSteps:   f.histogram("run_steps", "Steps of a run that ended.", stepBuckets()),
		firstEventSeconds: f.histogram("time_to_first_event_seconds",
			"Time from the submission of a task to the start of its run.", waitBuckets()),

		modelCalls:       f.counters("model_calls_total", "Calls of models that were answered.", "provider", "model", "stop"),
		modelFailures:    f.counters("model_failures_total", "Calls of models that failed for good.", "code"),
		modelCallSeconds: f.histograms("model_call_seconds", "Duration of calls of models.", modelBuckets(), "provider", "model"),
		tokens: f.counters("model_tokens_total", "Tokens of calls of models; cache and reasoning tokens are a part of the others with some providers.",
			"provider", "model", "kind"),

		toolCalls:   f.counters("tool_calls_total", "Calls of tools; the outcome is ok or why one failed.", "tool", "outcome"),
		toolSeconds: f.histograms("tool_call_seconds", "Duration of calls of tools.", toolBuckets(), "tool"),
	}
}

func runBuckets() []float64 {
	return []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400}
}
func stepBuckets() []float64 { return []float64{1, 2, 3, 5, 8, 13, 21, 34, 55, 100} }
func waitBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}
func modelBuckets() []float64 { return []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300} }
func toolBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// Gauge adds a number that can go up and down, read from f at each scrape. The name is without "longshore_"; f must
// be quick and safe for any goroutine; when it panics, NaN is shown.
func (m *Metrics) Gauge(name, help string, f func() float64) error {
	return m.add(name, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, guarded(f)))
}

// Counter is Gauge for a number that only goes up. Its name should end in "_total".
func (m *Metrics) Counter(name, help string, f func() float64) error {
	return m.add(name, prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, guarded(f)))
}

// guarded keeps one number that cannot be read from hiding all others.
func guarded(f func() float64) func() float64 {
	return func() (n float64) {
		defer func() {
			if recover() != nil {
				n = math.NaN()
			}
		}()
		return f()
	}
}

func (m *Metrics) add(name string, c prometheus.Collector) error {
	if err := m.registry.Register(c); err != nil {
		return fmt.Errorf("add metric %q: %w", name, err)
	}
	return nil
}

// factory makes metrics of ours and registers them. Their names are constants, so it panics over a bad one.
type factory struct{ registry *prometheus.Registry }

func (f factory) gauge(name, help string, labels prometheus.Labels) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels})
	f.registry.MustRegister(g)
	return g
}

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	f.registry.MustRegister(c)
	return c
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	f.registry.MustRegister(c)
	return c
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
	f.registry.MustRegister(h)
	return h
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	f.registry.MustRegister(h)
	return h
}
