// Package embeddedtest starts the embedded servers for a test. Call [Start]; the test's end stops them.
package embeddedtest

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
)

// Start runs NATS and the Redis-compatible store on free ports of the loopback interface until the test ends. At most
// one Config may be given; an empty Dir in it becomes a folder of the test. It fails the test on any error.
func Start(tb testing.TB, config ...embedded.Config) *embedded.Servers {
	tb.Helper()
	var c embedded.Config
	switch len(config) {
	case 0:
	case 1:
		c = config[0]
	default:
		tb.Fatalf("embeddedtest.Start: got %d configs, want at most 1", len(config))
	}
	if c.Dir == "" {
		c.Dir = tb.TempDir()
	}
	s, err := embedded.Start(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Conn is Servers.Conn that fails the test on an error and is closed at the test's end, before the servers stop.
func Conn(tb testing.TB, s *embedded.Servers, opts ...nats.Option) *nats.Conn {
	tb.Helper()
	nc, err := s.Conn(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	return nc
}
