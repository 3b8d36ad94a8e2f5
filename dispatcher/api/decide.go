package api

import (
	"context"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Verdict is the body of a decision about what a run waits with.
type Verdict struct {
	Call     string `json:"call,omitempty"`   // that waits; absent: the run asks whether it may go beyond its budget
	Decision string `json:"decision"`         // approve or deny
	Hash     string `json:"hash,omitempty"`   // of the arguments that were seen: with others it does not count
	Reason   string `json:"reason,omitempty"` // recorded, and told to the agent when it is a denial
	By       string `json:"by,omitempty"`     // who decides; recorded
}

func decisionOperations() []operation {
	once := []control.Parameter{{Name: control.HeaderIdempotency, Text: "The same decision with the same key counts once; repeating it succeeds."}}
	return []operation{
		{
			method: "POST", path: "/v1/tasks/{id}/approvals", id: "decideApproval", needs: control.Decide, tag: "approvals", summary: "Approve or deny a call that waits",
			failures: failuresOf(control.SubjectApprove),
			text:     "The first decision counts; a later one is a conflict that says who was first.",
			headers:  once, body: Verdict{}, reply: control.RunStatus{}, answer: decideApproval,
		},
	}
}

// control is the id of a decision by the header that makes it safe to repeat.
func (q *query) control() (string, error) {
	key := q.r.Header.Get(control.HeaderIdempotency)
	switch {
	case key == "":
		return "", nil
	case len(key) > 256:
		return "", &messages.FieldError{Field: control.HeaderIdempotency, Reason: "is longer than 256 characters"}
	default:
		return keyID(key), nil
	}
}

func decideApproval(ctx context.Context, q *query) (any, error) {
	var body Verdict
	run, err := q.run()
	if err == nil {
		err = q.read(&body)
	}
	if err != nil {
		return nil, err
	}
	id, err := q.control()
	if err != nil {
		return nil, err
	}
	d := dispatcher.Decision{Call: body.Call, Hash: body.Hash, By: q.by(body.By), Reason: body.Reason, Control: id}
	switch body.Decision {
	case "approve":
		return q.api.cfg.Client.Approvals().Approve(ctx, run, d)
	case "deny":
		return q.api.cfg.Client.Approvals().Deny(ctx, run, d)
	default:
		return nil, &messages.FieldError{Field: "decision", Reason: "must be approve or deny"}
	}
}
