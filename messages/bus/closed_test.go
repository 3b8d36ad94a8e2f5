package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
)

// What is tried again ends soon after its connection was closed, and not with its budget.
func TestRetriesEndWithTheConnection(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	b, nc := bustest.Open(t, servers, bus.Config{Budget: time.Minute})
	if err := servers.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const callers = 16 // some of them always wait for long
	done := make(chan error, callers)
	for range callers {
		go func() {
			_, _, err := semaphores.New(b).First(ctx, messages.WorkerList)
			done <- err
		}()
	}
	var closed time.Time
	time.AfterFunc(3*time.Second, func() { // the waits are long by then
		closed = time.Now()
		nc.Close()
	})
	for range callers {
		if err := <-done; !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("it ended with %v", err)
		}
	}
	if late := time.Since(closed); late > 400*time.Millisecond {
		t.Errorf("the last ended %v after the connection", late)
	}
}
