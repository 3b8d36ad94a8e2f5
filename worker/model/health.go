package model

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/worker/circuit"
)

// maxLatencies is how many of the last answers the percentiles are of.
const maxLatencies = 100

// Health is how calls of one model of an endpoint went.
type Health struct {
	Circuit                 // of a model that answered last: closed
	Answered, Failed uint64 // calls so far
	P50, P95         time.Duration
}

// meter counts calls by model. Safe for concurrent use.
type meter struct {
	mu sync.Mutex
	m  map[circuitKey]*measured
}

type measured struct {
	answered, failed uint64
	took             []time.Duration // of the last answers, in no order
}

// of is what was measured of a model; nil: of so many models none more is measured.
func (m *meter) of(key circuitKey) *measured {
	one := m.m[key]
	if one == nil && len(m.m) < maxCircuits {
		one = &measured{}
		m.m[key] = one
	}
	return one
}

func (m *meter) answered(key circuitKey, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.of(key)
	if one == nil {
		return
	}
	if len(one.took) < maxLatencies {
		one.took = append(one.took, took)
	} else {
		one.took[one.answered%maxLatencies] = took
	}
	one.answered++
}

func (m *meter) failed(key circuitKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.of(key); one != nil {
		one.failed++
	}
}

// Health lists the models of every endpoint: those that were called, and the default of one that was not.
func (r *Router) Health() []Health {
	all := map[circuitKey]Health{}
	for name, e := range r.byName {
		all[circuitKey{name, e.Model}] = Health{Circuit: Circuit{Endpoint: name, Model: e.Model, State: circuit.Closed}}
	}
	r.meter.mu.Lock()
	for key, one := range r.meter.m {
		took := slices.Sorted(slices.Values(one.took))
		h := Health{Circuit: Circuit{Endpoint: key.endpoint, Model: key.model, State: circuit.Closed}, Answered: one.answered, Failed: one.failed}
		if n := len(took); n > 0 {
			h.P50, h.P95 = took[n/2], took[min(n-1, n*95/100)]
		}
		all[key] = h
	}
	r.meter.mu.Unlock()
	for _, c := range r.Circuits() {
		h := all[circuitKey{c.Endpoint, c.Model}]
		h.Circuit = c
		all[circuitKey{c.Endpoint, c.Model}] = h
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Health) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Model, b.Model))
	})
}
