package fleet_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
)

func TestGCPercent(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, tt := range map[string]struct{ goal, live, roots, want uint64 }{
		"before the first":    {goal: 200 * mb, want: 5000},
		"a third of it lives": {goal: 200 * mb, live: 66 * mb, want: 203},
		"half of it lives":    {goal: 200 * mb, live: 100 * mb, want: 100},
		"all of it lives":     {goal: 200 * mb, live: 200 * mb, want: 100},
		"beyond it":           {goal: 200 * mb, live: 300 * mb, want: 100},
		"with its roots":      {goal: 200 * mb, live: 50 * mb, roots: 50 * mb, want: 149},
		"large roots":         {goal: 200 * mb, live: 80 * mb, roots: 90 * mb, want: 100},
		"next to nothing":     {goal: 200 * mb, live: 1 * mb, roots: 1 * mb, want: 5000},
		"as large as allowed": {goal: 48 * mb, live: 4 * mb, want: 1099},
	} {
		if got := fleet.GCPercent(tt.goal, tt.live, tt.roots); got != int(tt.want) {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, tt := range map[string]struct {
		live, used, allocated uint64
		want                  bool
	}{
		"enough":                 {live: 40 * mb, used: 81 * mb, allocated: 1 * mb, want: true},
		"not yet":                {live: 40 * mb, used: 79 * mb, allocated: 1 * mb},
		"busy":                   {live: 40 * mb, used: 150 * mb, allocated: 2 * mb},
		"almost half of it":      {live: 99 * mb, used: 130 * mb, want: true},
		"more than half lives":   {live: 101 * mb, used: 199 * mb},
		"nearly all of it lives": {live: 199 * mb, used: 200 * mb},
		"more lives":             {live: 300 * mb, used: 400 * mb},
	} {
		if got := fleet.Idle(200*mb, tt.live, tt.used, tt.allocated); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What has piled up is collected while nothing else is to be done, long before the heap is as large as it may be, and what
// the process had is put back at the end.
func TestGarbageIsCollectedMeanwhile(t *testing.T) {
	const own = -1 // none but what is asked for
	defer debug.SetGCPercent(debug.SetGCPercent(own))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		fleet.KeepHeap(ctx, 10_000)
	}()
	collected := make(chan struct{})
	mark := new([64]byte)
	runtime.AddCleanup(mark, func(c chan struct{}) { close(c) }, collected)
	for range 100 { // of some 300 MB that it may have
		garbage = make([]byte, 1<<20)
	}
	garbage = nil
	runtime.KeepAlive(mark)
	select {
	case <-collected:
	case <-ctx.Done():
		t.Error("nothing was collected")
	}
	cancel()
	<-done
	if got := debug.SetGCPercent(own); got != own {
		t.Errorf("GOGC is %d at the end, want %d", got, own)
	}
}

var garbage []byte
