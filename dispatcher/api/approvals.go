package api

import (
	"context"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// Verdict is the body of a decision about what a run waits with.
type Verdict struct {
	Call     string `json:"call,omitempty"`   // that waits; absent: the run asks whether it may go beyond its budget
	Decision string `json:"decision"`         // approve or deny
	Hash     string `json:"hash,omitempty"`   // of the arguments that were seen: with others it does not count
	Reason   string `json:"reason,omitempty"` // recorded, and told to the agent when it is a denial
	By       string `json:"by,omitempty"`     // who decides; recorded
}

// Reply is the body of an answer to the question that a run waits with.
type Reply struct {
	Call string `json:"call,omitempty"` // whose question it is; absent: whatever is asked now
	Text string `json:"text,omitempty"`
	Deny bool   `json:"deny,omitempty"` // there is no answer: the call fails with the text, the budget ends
	By   string `json:"by,omitempty"`
}

func approvalOperations() []operation {
	control := []parameter{{name: headerIdempotency, text: "The same decision with the same key counts once and succeeds again."}}
	return []operation{
		{
			method: "GET", path: "/v1/approvals", id: "listApprovals", needs: auth.Read, tag: "approvals", summary: "List the calls that wait for an approval",
			query: []parameter{{name: "limit", text: "At most so many, 1000 at most; 100 by default.", kind: "integer"}},
			reply: messages.ApprovalList{}, answer: listApprovals,
		},
		{
			method: "POST", path: "/v1/tasks/{id}/approvals", id: "decideApproval", needs: auth.Decide, tag: "approvals", summary: "Approve or deny a call that waits",
			text:    "The first decision counts; a later one is a conflict that says who was first.",
			headers: control, body: Verdict{}, reply: messages.RunStatus{}, answer: decideApproval,
		},
		{
			method: "POST", path: "/v1/tasks/{id}/answers", id: "answerTask", needs: auth.Decide, tag: "approvals", summary: "Answer the question that a run waits with",
			headers: control, body: Reply{}, reply: messages.RunStatus{}, answer: answerTask,
		},
	}
}

func listApprovals(ctx context.Context, q *query) (any, error) {
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	limit, err := q.limit(messages.MaxApprovals)
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Approvals(ctx, tenant, limit)
}

// control is the id of a decision by the header that makes it safe to repeat.
func (q *query) control() (string, error) {
	key := q.r.Header.Get(headerIdempotency)
	switch {
	case key == "":
		return "", nil
	case len(key) > 256:
		return "", &messages.FieldError{Field: headerIdempotency, Reason: "is longer than 256 characters"}
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
	control, err := q.control()
	if err != nil {
		return nil, err
	}
	d := dispatcher.Decision{Call: body.Call, Hash: body.Hash, By: q.by(body.By), Reason: body.Reason, Control: control}
	switch body.Decision {
	case "approve":
		return q.api.cfg.Client.Approve(ctx, run, d)
	case "deny":
		return q.api.cfg.Client.Deny(ctx, run, d)
	default:
		return nil, &messages.FieldError{Field: "decision", Reason: "must be approve or deny"}
	}
}

func answerTask(ctx context.Context, q *query) (any, error) {
	var body Reply
	run, err := q.run()
	if err == nil {
		err = q.read(&body)
	}
	if err != nil {
		return nil, err
	}
	control, err := q.control()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Answer(ctx, run, messages.AnswerRequest{
		Call: body.Call, Text: body.Text, Deny: body.Deny, By: q.by(body.By), Control: control,
	})
}
