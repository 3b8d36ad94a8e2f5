package api

import (
	"context"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// Steer is the body of a message to a run.
type Steer struct {
	Message string `json:"message"` // 64 KiB at most
	By      string `json:"by,omitempty"`
	// ID makes it safe to repeat, like the header Idempotency-Key: the same message under the same id counts once.
	ID string `json:"id,omitempty"`
}

func talkOperations() []operation {
	return []operation{
		{
			method: "POST", path: "/v1/tasks/{id}/steer", id: "steerTask", needs: auth.Submit, tag: "tasks", summary: "Tell a run something",
			text: "The model reads it before its next call; what goes on is not aborted, and a run that waits goes on waiting. A run takes 100 " +
				"messages. One that has not begun or has ended is a conflict.",
			headers: []parameter{{name: headerIdempotency, text: "The same message with the same key counts once and succeeds again."}},
			body:    Steer{}, reply: messages.RunStatus{}, answer: steerTask,
		},
	}
}

func steerTask(ctx context.Context, q *query) (any, error) {
	var body Steer
	run, err := q.run()
	if err == nil {
		err = q.read(&body)
	}
	if err == nil {
		err = q.said(&body.ID)
	}
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Steer(ctx, run, messages.SteerRequest{Message: body.Message, By: q.by(body.By), Control: body.ID})
}

// said is the id of what is said: that of the body, or else of the header.
func (q *query) said(id *string) (err error) {
	if *id == "" {
		*id, err = q.control()
	}
	if err == nil && *id != "" && !messages.ValidToken(*id) {
		return &messages.FieldError{Field: "id", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
	}
	return err
}
