//go:build unix

package fleet_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// TestKillOfManyRuns kills a worker with all its runs in their first model call, without any progress. That they died
// together says nothing against any of them: all continue at once.
func TestKillOfManyRuns(t *testing.T) {
	t.Parallel()
	const runs = 110
	slots := "LONGSHORE_SLOTS=" + strconv.Itoa(runs+10)
	w := open(t, shortAckWait, func(*modelCall) reply { return reply{Hold: true} })
	first := w.worker("first", slots)
	var watched []*watching
	submitted := time.Now()
	for i := range runs {
		watched = append(watched, w.watch(w.submit(strconv.Itoa(i))))
	}
	for range runs {
		w.model.next(t)
	}
	half := time.Since(submitted)
	w.worker("second", slots)
	first.kill()
	killed := time.Now()
	again := make([]*modelCall, runs)
	for i := range again {
		again[i] = w.model.next(t)
	}
	took := time.Since(killed)
	for _, c := range again {
		c.answer <- turn(c, 1)
	}
	for _, g := range watched {
		if r := g.end(); r.Status != messages.StatusCompleted {
			t.Errorf("%s: %s, %v", g.run, r.Status, r.Error)
		}
	}
	soon(t, half, took)
}
