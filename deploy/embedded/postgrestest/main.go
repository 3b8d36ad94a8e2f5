//go:build unix

package postgrestest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// started is the server of this process, and whether there was a first test that needed it.
var started struct { //nolint:gochecknoglobals // a process has one, whatever tests need it
	sync.Mutex

	asked  bool
	server *Server
	err    error
}

// Open returns the server of this process, which the first call starts; nil when the machine has none, which it says in
// the log of the test.
func Open(tb testing.TB) *Server {
	tb.Helper()
	started.Lock()
	defer started.Unlock()
	if !started.asked {
		started.asked = true
		started.server, started.err = start(tb)
	}
	if started.err != nil {
		tb.Fatal(started.err)
	}
	if started.server == nil {
		tb.Log("no postgres in /usr/lib/postgresql: left out")
	}
	return started.server
}

// Stop stops the server of this process, if a test has opened it. A TestMain calls it at the end.
func Stop() error {
	if started.server == nil {
		return nil
	}
	return started.server.stop()
}

// Main is the TestMain of a package whose tests call Open: it runs them, looks for goroutines that were left, and stops the server.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}
