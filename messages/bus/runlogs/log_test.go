package runlogs_test

import (
	"testing"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/runlog/runlogtest"
)

func TestBusIsALog(t *testing.T) {
	t.Run("in-process", func(t *testing.T) {
		b, _ := bustest.OpenNew(t)
		testLog(t, bustest.Logs(b))
	})
	t.Run("tcp", func(t *testing.T) {
		s := bustest.Start(t)
		nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: s.NATSURL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		b, _ := bustest.OpenOver(t, nc, bus.Config{})
		testLog(t, bustest.Logs(b))
	})
	t.Run("in four streams", func(t *testing.T) {
		b, _ := bustest.OpenDivided(t, 4)
		testLog(t, bustest.Logs(b))
	})
	t.Run("sealed", func(t *testing.T) {
		b, _ := bustest.OpenNew(t)
		testLog(t, runlogs.New(b, runlogs.Config{Sealer: newSealer(t, b)}))
	})
}

func testLog(t *testing.T, logs *runlogs.Store) {
	t.Helper()
	runlogtest.Run(t, func(*testing.T) runlog.Log { return logs })
}

// newSealer is a keyring with a master keyset of its own.
func newSealer(tb testing.TB, b *bus.Bus) *keyring.Keyring {
	tb.Helper()
	master, err := keyring.NewMaster()
	if err != nil {
		tb.Fatal(err)
	}
	return keyring.New(b, keyring.Config{Master: master})
}
