package observability

import (
	"cmp"
	"fmt"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/longshore-run/longshore/messages/bus"
)

// namespace begins the name of every metric of ours.
const namespace = "longshore"

// Metrics are the metrics of a process, in a registry of their own. Any number of goroutines may use them.
type Metrics struct {
	registry *prometheus.Registry

	mu    sync.Mutex
	known map[string]Described // by name
	lags  map[string]func() (bus.Lag, bool)
}

// NewMetrics returns the metrics of Go and of the process. The version is that of the program.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), known: map[string]Described{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{m}
	f.gauge("build_info", "The running version: always 1.", prometheus.Labels{"version": cmp.Or(version, labelUnknown)}).Set(1)
	return m
}

// Gauge adds a number that can go up and down, read from f at each scrape. The name is without "longshore_"; f must
// be quick and safe for any goroutine; when it panics, NaN is shown.
func (m *Metrics) Gauge(name, help string, f func() float64) error {
	c := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, guarded(f))
	return m.add(Described{Name: name, Type: typeGauge, Help: help}, c)
}

// Counter is Gauge for a number that only goes up. Its name should end in "_total".
func (m *Metrics) Counter(name, help string, f func() float64) error {
	c := prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, guarded(f))
	return m.add(Described{Name: name, Type: typeCounter, Help: help}, c)
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

// CountersBy adds a counter for each value of a label, read from f at each scrape as Gauge does. The values must be few.
func (m *Metrics) CountersBy(name, help, label string, f func() map[string]uint64) error {
	c := &readings{read: func(emit func(prometheus.Metric)) {
		for value, n := range f() {
			emit(prometheus.MustNewConstMetric(desc(name, help, label), prometheus.CounterValue, float64(n), value))
		}
	}}
	return m.add(Described{Name: name, Type: typeCounter, Help: help, Labels: []string{label}}, c)
}

// readings is a collector of what is read at each scrape.
type readings struct {
	read func(emit func(prometheus.Metric))
}

// Describe sends nothing, which makes the collector unchecked: its metrics may change.
func (*readings) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r *readings) Collect(to chan<- prometheus.Metric) {
	r.read(func(m prometheus.Metric) { to <- m })
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

func (m *Metrics) add(d Described, c prometheus.Collector) error {
	if err := m.registry.Register(c); err != nil {
		return fmt.Errorf("add metric %q: %w", d.Name, err)
	}
	return m.know(d)
}
