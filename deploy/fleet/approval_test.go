//go:build unix

package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// carefulAgent asks before it writes.
const carefulAgent = `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: careful}
spec: {tools: [write_file], approve: {always: [write_file]}}
`

// An approval that arrives while the worker that asked is dead counts once, for the next worker.
func TestApproveAfterKill(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "hi"}}
		}
		return reply{Text: "Done: " + c.Last}
	})
	first := w.worker("first")
	run := w.submit("work", func(t *messages.Task) { t.Agent = "careful" })
	g := w.watch(run)
	asked := w.asked(run, "")
	first.kill()
	if _, err := w.client.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: asked.Call, Hash: asked.Hash, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	w.worker("second")
	completed(t, g.end(), "Done: Wrote 2 bytes to a.txt")
	if diff := cmp.Diff(map[string]int{"work 0": 1, "work 1": 1}, w.model.counts()); diff != "" {
		t.Errorf("model calls: %s", diff)
	}
}
