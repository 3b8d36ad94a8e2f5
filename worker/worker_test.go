package worker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker"
)

const hello = `
scenes:
  - match: hello
    turns:
      - text: I write it down.
        calls: [{name: write_file, arguments: {filePath: a/hello.txt, content: hi}}]
      - text: "Done: ${lastToolResult}"
`

func TestTaskToResult(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w1", script(t, hello), worker.Config{})
	run := h.submit(messages.Task{Input: messages.TextInput("Say hello.")})
	want := []string{
		"run_queued", "run_started", "step_start", "message_end", "tool_execution_start", "tool_execution_end", "step_end",
		"step_start", "message_end", "step_end", "turn_end", "run_finished",
	}
	if diff := cmp.Diff(want, names(h.events(run))); diff != "" {
		t.Error(diff)
	}
	r := h.result(run)
	if !r.Success || r.Result != "Done: Wrote 2 bytes to a/hello.txt" || r.Steps != 2 {
		t.Errorf("result: %+v", r)
	}
}
