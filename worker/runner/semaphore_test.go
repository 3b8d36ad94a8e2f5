package runner_test

import (
	"fmt"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// A free permit goes to the next run that still waits, however many in front of it no longer do.
func TestAPermitBehindManyThatAreGone(t *testing.T) {
	ctx, line := t.Context(), queue.TenantSemaphore(rrun.Tenant)
	w := newWaiting(t, says)
	lines := &runlog.SemaphoresInMemory{}
	w.controller.Semaphores, w.controller.Caps = lines, capsThen{line: 1}
	holder := messages.Ref{Tenant: rrun.Tenant, Run: "holder"}
	if err := lines.PutSemaphore(ctx, line, 0, queue.Semaphore{Permits: []queue.Permit{{Run: queue.HolderOf(holder), Claim: 1}}}); err != nil {
		t.Fatal(err)
	}
	for i := range 2100 {
		if err := lines.Wait(ctx, line, messages.Ref{Tenant: rrun.Tenant, Run: fmt.Sprint("gone", i)}); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	if h := w.last().Head; h.Phase != record.PhaseParked || h.Waits != queue.ParkSemaphore {
		t.Fatalf("head %+v", h)
	}
	task := messages.Task{ID: holder.Run, Tenant: holder.Tenant, Agent: "a"}
	_, err := w.controller.Begin(ctx, holder, &record.Started{Task: task}, &record.Claimed{Claim: "c"}, &record.Lined{Semaphores: []string{line}},
		&record.Finished{Result: messages.EndedResult(holder, &task, messages.StatusCompleted, nil, simTime, simTime)})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.controller.Settle(ctx, holder); err != nil {
		t.Fatal(err)
	}
	if h := w.last().Head; h.Phase != record.PhaseReady || len(w.queue.wakes) != 1 {
		t.Errorf("head %+v, wakes %v", h, w.queue.wakes)
	}
}
