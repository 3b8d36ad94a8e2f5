package messages

import "cmp"

// TaskResult is a result in short, for those who asked for files: a projection of AgentResult.
type TaskResult struct {
	Status  Status     `json:"status"`  // completed, failed, cancelled
	Outputs []string   `json:"outputs"` // workspace paths of the files that the run wrote
	Summary string     `json:"summary"`
	Logs    []LogEntry `json:"logs"`
}

// TaskResult is the result in short. Its logs are the begin of the run, its calls and its end; when a call was made
// the result does not know, so its line has the time of the end.
func (r *AgentResult) TaskResult() TaskResult {
	const component = "agent"
	t := TaskResult{Status: r.Status, Outputs: append([]string{}, r.Outputs...), Summary: r.Summary}
	if r.Success {
		t.Summary = cmp.Or(r.InWords(), r.Summary)
	}
	t.Logs = append(t.Logs, LogEntry{Timestamp: r.StartedAt, Level: "info", Component: component, Message: "run started"})
	for _, a := range r.Actions {
		e := LogEntry{
			Timestamp: r.FinishedAt, Level: "info", Component: "tool", Message: "tool returned",
			Data: map[string]any{"tool": a.Name, "callId": a.CallID, "step": a.Step, "millis": a.Millis},
		}
		if !a.OK {
			e.Level, e.Message = "warn", "tool failed"
			e.Data["output"], e.Data["code"] = a.Output, a.Code
		}
		t.Logs = append(t.Logs, e)
	}
	end := LogEntry{Timestamp: r.FinishedAt, Level: "info", Component: component, Message: "run " + string(r.Status)}
	if r.Error != nil {
		end.Level = "error"
		end.Data = map[string]any{"code": r.Error.Code, "error": r.Error.Message}
	}
	t.Logs = append(t.Logs, end)
	return t
}
