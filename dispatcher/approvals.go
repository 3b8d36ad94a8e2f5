package dispatcher

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrDecided means that a run does not wait for this decision or answer: another came first, its time was over, or it waits for
// something else. The error says which.
var ErrDecided = control.ErrDecided

// Decision approves or denies a call that waits for an approval.
type Decision struct {
	Call   string // that waits; empty: the run asks whether it may go beyond its budget
	Hash   string // of the arguments that were seen: with others it does not count. Empty: whatever they are
	By     string // who decides; recorded
	Reason string // why; recorded, and told to the agent when it is a denial
	// Arguments, an object, take the place of those of the call that is approved. Only an Editable one may have others. Empty: they stay.
	Arguments json.RawMessage
	// Control makes a decision safe to repeat: it counts once and succeeds again under the same id. Empty: a repetition
	// is ErrDecided.
	Control string
}

// List lists the calls of a tenant that wait for an approval, newest run first, at most limit of them (0: 100).
func (of Approvals) List(ctx context.Context, tenant string, limit int) (*control.ApprovalList, error) {
	return ask[control.ApprovalList](ctx, of.client, control.SubjectApprovals, control.ApprovalsRequest{Tenant: tenant, Limit: limit})
}

// Approve lets a call be made. When it returns nil this very decision is recorded; ErrDecided: another one was first.
func (of Approvals) Approve(ctx context.Context, run messages.Ref, d Decision) (*control.RunStatus, error) {
	return of.client.decide(ctx, control.SubjectApprove, run, d)
}

// Deny refuses a call. When it returns nil this very decision is recorded; ErrDecided: another one was first.
func (of Approvals) Deny(ctx context.Context, run messages.Ref, d Decision) (*control.RunStatus, error) {
	return of.client.decide(ctx, control.SubjectDeny, run, d)
}

func (c *Client) decide(ctx context.Context, subject string, run messages.Ref, d Decision) (*control.RunStatus, error) {
	return ask[control.RunStatus](ctx, c, subject, control.DecisionRequest{
		Tenant: run.Tenant, ID: run.Run, Call: d.Call, Hash: d.Hash, By: d.By, Reason: d.Reason, Control: d.Control, Arguments: d.Arguments,
	})
}

// Answer answers the question that a run waits with. A.Tenant and a.ID are set from run. ErrDecided: another answer came first.
func (of Approvals) Answer(ctx context.Context, run messages.Ref, a control.AnswerRequest) (*control.RunStatus, error) {
	a.Tenant, a.ID = run.Tenant, run.Run
	return ask[control.RunStatus](ctx, of.client, control.SubjectAnswer, a)
}
