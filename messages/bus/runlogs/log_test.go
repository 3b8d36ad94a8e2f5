package runlogs_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"testing"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
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
	t.Run("sealed", func(t *testing.T) {
		b, _ := bustest.OpenNew(t)
		testLog(t, runlogs.New(b, runlogs.Config{Sealer: newSealer(t)}))
	})
}

func testLog(t *testing.T, logs *runlogs.Store) {
	t.Helper()
	runlogtest.Run(t, func(*testing.T) runlog.Log { return logs })
}

// gcm is a small Sealer.
type gcm struct{ cipher.AEAD }

func newSealer(tb testing.TB) gcm {
	tb.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		tb.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		tb.Fatal(err)
	}
	return gcm{aead}
}

func (g gcm) Seal(plain, ad []byte) ([]byte, error) { return g.AEAD.Seal(nil, nil, plain, ad), nil }
func (g gcm) Open(sealed, ad []byte) ([]byte, error) {
	return g.AEAD.Open(nil, nil, sealed, ad)
}
