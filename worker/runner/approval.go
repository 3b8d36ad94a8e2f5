package runner

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

// unapproved reports whether a call waits for somebody to agree to it.
func unapproved(c *agent.OpenCall) bool { return c.Approve && c.Answer == nil }

// parkForApproval asks for a call that must not begin before somebody has agreed.
func (x *execution) parkForApproval(s *agent.State, c messages.ToolCall) *agent.Park {
	until := x.now().Add(s.Agent.ApprovalExpires())
	asked := messages.NewApproval(s.Agent.Name, s.Step, s.StepID(c.ID), c)
	asked.Arguments = x.cfg.Redact(asked.Arguments)
	return &agent.Park{Parked: messages.Parked{Reason: messages.ParkApproval, Call: c.ID, Until: &until, Approval: asked}}
}
