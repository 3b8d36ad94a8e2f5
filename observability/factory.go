package observability

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// factory makes metrics of ours and registers them. Their names are constants, so it panics over a bad one.
type factory struct{ to *Metrics }

func (f factory) add(c prometheus.Collector, d Described) {
	if err := f.to.add(d, c); err != nil {
		panic(err)
	}
}

func (f factory) gauge(name, help string, labels prometheus.Labels) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels})
	f.add(g, Described{name, typeGauge, slices.Sorted(maps.Keys(labels)), help})
	return g
}

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	f.add(c, Described{name, typeCounter, nil, help})
	return c
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	f.add(c, Described{name, typeCounter, labels, help})
	return c
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
	f.add(h, Described{name, typeHistogram, nil, help})
	return h
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	f.add(h, Described{name, typeHistogram, labels, help})
	return h
}
