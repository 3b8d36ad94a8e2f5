package observability

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Types of metrics, as Prometheus names them.
const (
	typeCounter   = "counter"
	typeGauge     = "gauge"
	typeHistogram = "histogram"
)

// Described describes a metric, whether or not it has a value yet.
type Described struct {
	Name   string // without the namespace in what is added; with it in what Described returns
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// Described are all metrics of ours, by name.
func (m *Metrics) Described() []Described {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Collect(maps.Values(m.known))
	for i := range all {
		all[i].Name = namespace + "_" + all[i].Name
	}
	slices.SortFunc(all, func(a, b Described) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// know notes a metric. One may be added more than once, if its parts have nothing in common but what it is.
func (m *Metrics) know(d Described) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.known[d.Name]; ok {
		return fmt.Errorf("add metric %q: it is there: %s", d.Name, before.Help)
	}
	m.known[d.Name] = d
	return nil
}
