package observability

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-run/longshore/messages/bus"
)

// Lag shows how far a consumer of a stream is behind, read at each scrape as with Gauge. It is not shown while ok is
// false. A consumer that is given twice is shown as it was given last.
func (m *Metrics) Lag(consumer string, f func() (l bus.Lag, ok bool)) error {
	m.mu.Lock()
	first := m.lags == nil
	if first {
		m.lags = map[string]func() (bus.Lag, bool){}
	}
	m.lags[consumer] = f
	m.mu.Unlock()
	if !first {
		return nil
	}
	for _, d := range []struct {
		name, help string
		of         func(bus.Lag) float64
	}{
		{"consumer_lag", "Messages that a consumer has not yet processed, by its name.", func(l bus.Lag) float64 { return float64(l.Messages) }},
		{"consumer_lag_seconds", "Age of the first message that a consumer has not yet processed.", func(l bus.Lag) float64 { return age(l.Oldest) }},
	} {
		described := Described{Name: d.name, Type: typeGauge, Labels: []string{"consumer"}, Help: d.help}
		as := desc(d.name, d.help, described.Labels...)
		err := m.add(described, &readings{func(emit func(prometheus.Metric)) {
			for consumer, f := range m.allLags() {
				if l, ok := f(); ok {
					emit(prometheus.MustNewConstMetric(as, prometheus.GaugeValue, d.of(l), consumer))
				}
			}
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Metrics) allLags() map[string]func() (bus.Lag, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.lags)
}
