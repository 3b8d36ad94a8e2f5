package agent

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Conclude is the result of a run that ends now with f.
func (s *State) Conclude(run messages.Ref, f *Finish, now time.Time) messages.AgentResult {
	r := messages.AgentResult{
		ID: run.Run, Success: f.Status == messages.StatusCompleted, Status: f.Status, Error: f.Err,
		StartedAt: s.StartedAt, FinishedAt: now, SessionID: s.Task.Session, Steps: s.Step,
		Actions: s.actions(), ModelCalls: slices.Clone(s.ModelCalls), TokenUsage: s.Usage, CostEstimate: s.costEstimate(), EventStream: run.EventFilter(),
		Provenance: &messages.Provenance{Agent: s.Agent.Name, Revision: s.Agent.Revision},
		Summary:    f.Summary, Outputs: s.Outputs, Logs: run.LogSubject(),
		Aborted: f.Status == messages.StatusCancelled,
		Metrics: &messages.Metrics{DurationMs: now.Sub(s.StartedAt).Milliseconds()},
		Seed:    s.Task.Seed,
	}
	if r.Success {
		r.Result = f.Result
	}
	if r.SessionID == "" {
		r.SessionID = run.Run
	}
	if s.Attempts > 1 {
		r.RetryInfo = &messages.RetryInfo{Attempts: s.Attempts}
	}
	for _, a := range r.Actions {
		if r.Metrics.ToolLatencyMs == nil {
			r.Metrics.ToolLatencyMs = map[string]int64{}
		}
		r.Metrics.ToolLatencyMs[a.Name] += a.Millis
	}
	bound(&r)
	return r
}

// actions lists the calls that have a result, in the model's order.
func (s *State) actions() []messages.ActionResult {
	var out []messages.ActionResult
	step := 0
	var calls []messages.ToolCall
	for i := range s.Transcript {
		m := &s.Transcript[i]
		switch m.Role {
		case messages.RoleAssistant:
			step++
			calls = m.Calls()
		case messages.RoleTool:
			for j, b := range m.Content {
				out = append(out, s.action(step, calls[j], b.ToolResult))
			}
		case messages.RoleSystem, messages.RoleUser:
		}
	}
	if s.Plan != nil {
		for i := range s.Plan.Calls {
			c := &s.Plan.Calls[i]
			out = append(out, s.action(c.Step, c.Call, &c.Result))
		}
	}
	for _, c := range s.Open { // of a step that was cut short
		if c.Result != nil {
			out = append(out, s.action(step, c.Call, c.Result))
		}
	}
	return out
}

func (s *State) action(step int, c messages.ToolCall, r *messages.ToolResult) messages.ActionResult {
	return messages.ActionResult{
		Step: step, Type: "tool", CallID: c.ID, Name: c.Name, Input: c.Arguments,
		Output: r.Shown(), OK: !r.IsError, Code: s.Codes[CallKey(step, c.ID)], Millis: s.ToolMillis[CallKey(step, c.ID)],
	}
}
