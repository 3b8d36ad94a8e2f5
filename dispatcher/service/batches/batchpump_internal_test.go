package batches

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// When a batch is stopped before its lines are all done. What is not known to be affordable is not begun.
func TestWhenABatchIsStopped(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	before, after, budget := now.Add(-time.Second), now.Add(time.Second), 1.0
	running := messages.BatchCounts{Total: 3, Submitted: 2, Completed: 1}
	for name, tc := range map[string]struct {
		batch messages.Batch
		want  messages.BatchStatus
	}{
		"nothing is against it":          {messages.Batch{BatchSettings: messages.BatchSettings{ExpiresAt: &after, MaxCost: &budget}, Counts: running, Cost: 0.99}, ""},
		"it has expired":                 {messages.Batch{BatchSettings: messages.BatchSettings{ExpiresAt: &before}, Counts: running}, messages.BatchExpired},
		"it expires now":                 {messages.Batch{BatchSettings: messages.BatchSettings{ExpiresAt: &now}, Counts: running}, messages.BatchExpired},
		"its budget is spent":            {messages.Batch{BatchSettings: messages.BatchSettings{MaxCost: &budget}, Counts: running, Cost: 1}, messages.BatchCancelled},
		"a run has no price":             {messages.Batch{BatchSettings: messages.BatchSettings{MaxCost: &budget}, Counts: running, Unpriced: 1}, messages.BatchCancelled},
		"a run has no price, no budget":  {messages.Batch{Counts: running, Unpriced: 1}, ""},
		"it has expired, but is done":    {messages.Batch{BatchSettings: messages.BatchSettings{ExpiresAt: &before}, Counts: messages.BatchCounts{Total: 1, Completed: 1}}, ""},
		"it was stopped for another one": {messages.Batch{BatchSettings: messages.BatchSettings{ExpiresAt: &before}, Counts: running, Cursor: messages.BatchCursor{Stop: messages.BatchCancelled}}, messages.BatchCancelled},
	} {
		if decideStop(&tc.batch, now); tc.batch.Cursor.Stop != tc.want {
			t.Errorf("%s: %q, want %q", name, tc.batch.Cursor.Stop, tc.want)
		}
	}
}

// A batch is looked at until it has ended and its webhook is queued, also when nothing has changed, and not after that.
func TestWhichBatchesAreLookedAt(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	bs := New(Config{Store: batches.New(b), Log: slog.New(slog.DiscardHandler)})
	ref := messages.BatchRef{Tenant: "acme", ID: "b"}
	revision := uint64(0)
	var seen seenBatches
	for i, step := range []struct {
		put  *messages.Batch // nil: nothing changes
		want bool
	}{
		{&messages.Batch{BatchRef: messages.BatchRef{Tenant: "acme", ID: "ended"}, Status: messages.BatchCompleted}, false},
		{&messages.Batch{BatchRef: ref, Status: messages.BatchInProgress}, true},
		{nil, true},
		{&messages.Batch{BatchRef: ref, Status: messages.BatchCompleted, Cursor: messages.BatchCursor{Tell: true}}, true},
		{&messages.Batch{BatchRef: ref, Status: messages.BatchCompleted}, false},
		{nil, false},
	} {
		if step.put != nil {
			at := uint64(0)
			if step.put.BatchRef == ref {
				at = revision
			}
			stored, err := bs.cfg.Store.Put(bustest.Context(t), step.put, at)
			if err != nil {
				t.Fatal(err)
			}
			if step.put.BatchRef == ref {
				revision = stored
			}
		}
		bs.wakeBatches(bustest.Context(t), &seen)
		if got := bs.pump.take(); slices.Contains(got, ref) != step.want || len(got) > 1 {
			t.Errorf("step %d: %v, want the batch to be among them: %v", i, got, step.want)
		}
	}
}
