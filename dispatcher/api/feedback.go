package api

import (
	"context"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// Opinion is the body of feedback on a run: a score, a comment or labels.
type Opinion struct {
	Score   *float64          `json:"score,omitempty"` // -1 (bad) to 1 (good)
	Comment string            `json:"comment,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Step    int               `json:"step,omitempty"` // that it is about; absent: the whole run
	By      string            `json:"by,omitempty"`
	ID      string            `json:"id,omitempty"` // makes it safe to repeat, like the header Idempotency-Key
}

func feedbackOperations() []operation {
	return []operation{
		{
			method: "POST", path: "/v1/tasks/{id}/feedback", id: "giveFeedback", needs: auth.Submit, tag: "tasks", summary: "Say what somebody thinks of a run",
			text:    "While it runs or after its end. It changes nothing about the run, and is kept as long as events are.",
			headers: []parameter{{name: headerIdempotency, text: "The same feedback with the same key is stored once and succeeds again."}},
			body:    Opinion{}, reply: messages.Feedback{}, answer: giveFeedback,
		},
		{
			method: "GET", path: "/v1/tasks/{id}/feedback", id: "listFeedback", needs: auth.Read, tag: "tasks", summary: "What people think of a run, newest first",
			reply: messages.FeedbackList{}, answer: listFeedback,
		},
	}
}

func giveFeedback(ctx context.Context, q *query) (any, error) {
	var body Opinion
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
	return q.api.cfg.Client.Feedback(ctx, run, messages.FeedbackRequest{
		Score: body.Score, Comment: body.Comment, Labels: body.Labels, Step: body.Step, By: q.by(body.By), Control: body.ID,
	})
}

func listFeedback(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.FeedbackOn(ctx, run)
}
