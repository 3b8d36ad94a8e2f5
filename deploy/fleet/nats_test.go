//go:build unix

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// TestNATSRestart restarts the message store while runs are in model calls, some of which end meanwhile, and while
// tasks are submitted.
func TestNATSRestart(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	w := openOn(t, servers, shortAckWait, func(c *modelCall) reply {
		r := turn(c, 2)
		r.Hold = c.Task == "held" && c.Turn == 0
		return r
	})
	workers := []*process{w.worker("first"), w.worker("second")}
	var all []*watching
	for range 8 {
		all = append(all, w.watch(w.submit("held")))
	}
	var calls []*modelCall
	for range all {
		calls = append(calls, w.model.next(t))
	}

	servers.StopNATS()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 { // backends that do not wait for better times
		id := fmt.Sprintf("backend-%d", i)
		all = append(all, w.watch(dispatcher.Run(id)))
		wg.Go(func() {
			got, err := w.client.Submit(ctx, messages.Task{ID: id, Input: messages.TextInput(id)})
			if err != nil || got != id {
				t.Errorf("submit %s: %q, %v", id, got, err)
			}
		})
	}
	for i, c := range calls {
		if i%2 == 0 {
			c.answer <- turn(c, 2)
		}
	}
	for _, p := range workers {
		p.line("nats disconnected")
	}
	if err := servers.StartNATS(); err != nil {
		t.Fatal(err)
	}
	for i, c := range calls {
		if i%2 == 1 {
			c.answer <- turn(c, 2)
		}
	}
	wg.Wait()
	for _, g := range all {
		completed(t, g.end(), "Done: Wrote 1 bytes to step-0.txt")
	}
	for i := range 8 { // the same task again is the same run
		id := fmt.Sprintf("backend-%d", i)
		if _, err := w.client.Submit(ctx, messages.Task{ID: id, Input: messages.TextInput(id)}); err != nil {
			t.Error(err)
		}
		w.once(dispatcher.Run(id))
	}
	want := map[string]int{"held 0": 8, "held 1": 8}
	for i := range 8 {
		want[fmt.Sprintf("backend-%d 0", i)], want[fmt.Sprintf("backend-%d 1", i)] = 1, 1
	}
	if diff := cmp.Diff(want, w.model.counts()); diff != "" {
		t.Errorf("model calls: %s", diff)
	}
}
