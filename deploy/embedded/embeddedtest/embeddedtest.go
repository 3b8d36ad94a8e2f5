// Package embeddedtest starts the embedded servers for a test. Call [Start]; the test's end stops them.
package embeddedtest

import (
	"os"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/messages/bus"
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
	divide(tb, s)
	return s
}

// PartitionsVariable is the environment variable that has the streams of new servers made with the logs and events of runs in so many partitions, so that any
// test can be run with several.
const PartitionsVariable = "LONGSHORE_TEST_PARTITIONS"

// divide makes the streams of servers that have none, if the variable is set.
func divide(tb testing.TB, s *embedded.Servers) {
	tb.Helper()
	value := os.Getenv(PartitionsVariable)
	if value == "" {
		return
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		tb.Fatalf("%s: %v", PartitionsVariable, err)
	}
	nc, err := s.Conn()
	if err != nil {
		tb.Fatal(err)
	}
	defer nc.Close()
	has, err := bus.FindDivision(tb.Context(), nc)
	if err == nil && has[bus.StreamRuns] == 0 {
		err = bus.Setup(tb.Context(), nc, bus.Streams{Partitions: n})
	}
	if err != nil {
		tb.Fatal(err)
	}
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
