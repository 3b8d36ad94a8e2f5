package messages

import (
	"cmp"
	"encoding/json"

	"github.com/longshore-run/longshore/messages/strict"
)

// FormatTaskResult is the ResultRequest.Format that asks for a TaskResult.
const FormatTaskResult = "task-result"

// TaskResult is a result in short, for those who asked for files: how it ended, what it wrote, what it did, and what
// processes logged about it.
type TaskResult struct {
	Status  Status     `json:"status"`  // completed, failed, cancelled
	Outputs []string   `json:"outputs"` // workspace paths of the files that the run wrote
	Summary string     `json:"summary"` // in the words of its model, of a completed run; else in ours
	Logs    []LogEntry `json:"logs"`    // the stored entries, oldest first; the newest, when there are too many
	// LogsLeftOut is how many older entries are not in Logs, of those that are kept.
	LogsLeftOut int `json:"logsLeftOut,omitempty"`
}

// TaskResult is the result in short, with what was logged about the run.
func (r *AgentResult) TaskResult(logs []LogEntry) TaskResult {
	t := TaskResult{Status: r.Status, Outputs: append([]string{}, r.Outputs...), Summary: r.Summary, Logs: append([]LogEntry{}, logs...)}
	if r.Success {
		t.Summary = cmp.Or(r.InWords(), r.Summary)
	}
	return t
}

// Fit leaves out the oldest entries of the log, and then shortens the summary and leaves out outputs, until it is n bytes as
// JSON, at most.
func (t *TaskResult) Fit(n int) {
	size := func(v any) int {
		b, err := json.Marshal(v)
		if err != nil {
			return n
		}
		return len(b) + len(",")
	}
	rest := *t
	rest.Logs = []LogEntry{}
	if size(&rest) > n/2 {
		t.Summary = strict.Clip(t.Summary, n/2/len(`\u0000`))
		rest.Summary = t.Summary
	}
	if size(&rest) > n/2 {
		t.Outputs = []string{}
		rest.Outputs = t.Outputs
	}
	room := n - size(&rest) - len(`,"logsLeftOut":1000`)
	keep := len(t.Logs)
	for keep > 0 {
		if room -= size(&t.Logs[keep-1]); room < 0 {
			break
		}
		keep--
	}
	t.Logs, t.LogsLeftOut = t.Logs[keep:], t.LogsLeftOut+keep
}
