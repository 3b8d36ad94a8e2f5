package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/worker"
)

// A run whose calls say more than a blob can hold ends as any other: its result repeats as much of them as has room.
func TestLongRunEnds(t *testing.T) {
	const steps, each, maxBlob = 100, 8, 1 << 20
	def := blockAgent
	def.MaxSteps = steps + 1
	def.SetDefaults()
	h := open(t, 30*time.Second, def)
	var turns strings.Builder
	turns.WriteString("scenes:\n  - turns:\n")
	for step := range steps {
		turns.WriteString("      - calls:\n")
		for call := range each {
			fmt.Fprintf(&turns, "          - {name: block, arguments: {n: %d}}\n", step*each+call)
		}
	}
	turns.WriteString("      - text: done\n")
	h.blobs = maxBlob
	h.worker("w", script(t, turns.String()), worker.Config{}, long{strings.Repeat("x", 4000)})
	run := h.submit(messages.Task{Agent: "blocker", Input: messages.TextInput("Go.")})
	r := h.result(run)
	if r.Status != messages.StatusCompleted || r.Result != "done" || len(r.Actions) != steps*each {
		t.Fatalf("the run ended as %s with %d calls: %v", r.Status, len(r.Actions), r.Error)
	}
	if !strings.Contains(r.Cut, "beyond 512 bytes") || !strings.Contains(r.Actions[0].Output, "more bytes") {
		t.Errorf("it does not say what was cut: %q, %q", r.Cut, r.Actions[0].Output)
	}
	st, err := h.client.Status(t.Context(), run)
	if err != nil || st.Status != messages.StatusCompleted {
		t.Errorf("status %v, %v", st, err)
	}
	last, ok, err := h.logs().Last(t.Context(), run)
	if err != nil || !ok || last.Head.Status != messages.StatusCompleted {
		t.Fatalf("the head tells %q, %v", last.Head.Status, err)
	}
	// Neither status nor why needs the result of a completed run.
	if err := h.purge(bus.StreamBlobs, fmt.Sprintf("blobs.%s.%s.>", run.Tenant, run.Run)); err != nil {
		t.Fatal(err)
	}
	if st, err := h.client.Status(t.Context(), run); err != nil || st.Status != messages.StatusCompleted {
		t.Errorf("status without the result: %v, %v", st, err)
	}
	if y, err := h.client.Runs().Why(t.Context(), run); err != nil || y.Status != messages.StatusCompleted {
		t.Errorf("why without the result: %v, %v", y, err)
	}
}

func (h *house) purge(stream, filter string) error {
	_, err := h.nc.Request("$JS.API.STREAM.PURGE."+stream, []byte(`{"filter":"`+filter+`"}`), patience)
	return err
}
