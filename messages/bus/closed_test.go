package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/queue"
)

// What is tried again ends with its connection, and not with its budget or the wait before the next attempt.
func TestRetriesEndWithTheConnection(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	b, nc := bustest.Open(t, servers, bus.Config{Budget: time.Hour})
	if err := servers.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx := bustest.Context(t)
	tried, waited := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := semaphores.New(b).First(ctx, queue.WorkerList)
		tried <- err
	}()
	go func() { waited <- b.Rest(ctx, time.Hour) }()
	nc.Close()
	for what, ended := range map[string]chan error{"a request": tried, "a wait": waited} {
		if err := <-ended; !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("%s ended with %v", what, err)
		}
	}
}
