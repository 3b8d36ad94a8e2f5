package memorytest

import (
	"testing"

	"github.com/longshore-run/longshore/worker/memory"
)

// Failover kills the master: no load waits meanwhile, and what is saved until Sentinel has made the replica the master
// is written to that one.
func Failover(t *testing.T, w *Watched) {
	t.Helper()
	m := started(t, w.Server, memory.Config{})
	m.Save(ref(1), snapshot(1))
	wantLoaded(t, m, ref(1), snapshot(1))
	killed := w.KillMaster(t)
	eventually(t, "down", func() bool { wantNone(t, m, ref(1)); return !m.Stats().Up })
	m.Save(ref(1), snapshot(2))
	m.Save(ref(2), snapshot(1))
	w.FailedOver(t, killed)
	wantLoaded(t, m, ref(1), snapshot(2))
	wantLoaded(t, m, ref(2), snapshot(1))
	if got := m.Stats(); !got.Up || got.Dropped != 0 {
		t.Errorf("got %+v, want up and nothing dropped", got)
	}
}
