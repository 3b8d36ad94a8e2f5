package memstore_test

import (
	"testing"

	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	longtermtest.Run(t, func(_ *testing.T, o longtermtest.Options) longterm.Store {
		return memstore.New(memstore.Config{Limits: o.Limits, Now: o.Now})
	})
}
