package runlogs_test

import (
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// Unacknowledged events are swept out while others send, and send again.
func TestUnacknowledgedAreSwept(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	if _, err := nc.Subscribe("nowhere", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { logs.SendAgain("nowhere", 2*runlogs.SweepEvery) })
	}
	wg.Wait()
	if n := logs.Flying(); n != 4 {
		t.Errorf("%d are on their way, want 4", n)
	}
	logs.Abandon()
	logs.SendAgain("nowhere", runlogs.SweepEvery)
	if n := logs.Flying(); n != 1 {
		t.Errorf("%d are on their way after a sweep, want 1", n)
	}
}
