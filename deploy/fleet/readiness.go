package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/observability"
)

// clockEvery is between two looks of a dispatcher at the server's time.
const clockEvery = 10 * time.Second

// storageEvery is between two probes of whether the server stores.
const storageEvery = 10 * time.Second

// readiness says why a process cannot do its work now: it can do nothing without its connection, and nothing new while
// one of more fails.
func readiness(nc *nats.Conn, more ...func() error) func(context.Context) error {
	return func(context.Context) error {
		if !nc.IsConnected() {
			return errors.New("no connection to NATS")
		}
		var failed []error
		for _, check := range more {
			failed = append(failed, check())
		}
		return errors.Join(failed...)
	}
}

func clockMetrics(m *observability.Metrics, c *bus.Clock) error {
	return m.Gauge("clock_skew_seconds", "By how much the clock of this machine is ahead of the NATS server's; negative when it is behind.",
		func() float64 { return c.Ahead().Seconds() })
}

func storageMetrics(m *observability.Metrics, b *bus.Bus) error {
	return m.Gauge("storage_refused", "1 while the NATS server refuses to store, as far as this process has seen.", func() float64 {
		if b.CheckStorage() != nil {
			return 1
		}
		return 0
	})
}
