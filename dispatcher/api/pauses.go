package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// pauseOperations are those about pauses, and about what a run waits for.
func pauseOperations(run string) []operation {
	by := []parameter{{name: headerBy, text: "Who resumes it; it is kept with the change."}}
	return []operation{
		{
			method: "GET", path: "/v1/tasks/" + run + "/why", id: "whyTask", needs: auth.Read, tag: "tasks", summary: "What a run waits for, or what it does",
			reply: messages.Why{}, answer: whyTask,
		},
		{
			method: "GET", path: "/v1/pauses", id: "listPauses", needs: auth.ReadFleet, tag: "pauses", summary: "List what is paused",
			reply: messages.PauseList{}, answer: listPauses,
		},
		{
			method: "POST", path: "/v1/pauses", id: "pause", needs: auth.OperateFleet, tag: "pauses", summary: "Pause a tenant, an agent or a provider",
			text: "Within seconds its runs begin no further step, and models of a paused provider are not called: runs fall back to " +
				"another model of their agent, or wait. What is paused already stays as it is.",
			body: messages.PauseRequest{}, reply: messages.PausedThing{}, answer: pause,
		},
		{
			method: "DELETE", path: "/v1/pauses/{kind}/{name}", id: "resume", needs: auth.OperateFleet, tag: "pauses", summary: "Resume what is paused",
			text:    "The answer is the pause as it was. Within seconds the runs that it kept go on.",
			headers: by, reply: messages.PausedThing{}, answer: resume,
		},
	}
}

func whyTask(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Why(ctx, run)
}

func listPauses(ctx context.Context, q *query) (any, error) { return q.api.cfg.Client.Pauses(ctx) }

func pause(ctx context.Context, q *query) (any, error) {
	var req messages.PauseRequest
	if err := q.read(&req); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Pause(ctx, req.QuotaRef, q.by(req.By), req.Reason)
}

func resume(ctx context.Context, q *query) (any, error) {
	of := messages.QuotaRef{Kind: messages.QuotaKind(q.r.PathValue("kind")), Name: q.r.PathValue("name")}
	if err := of.Check(); err != nil {
		return nil, err
	}
	p, err := q.api.cfg.Client.Resume(ctx, of, q.by(q.r.Header.Get(headerBy)))
	if errors.Is(err, dispatcher.ErrNotPaused) {
		return nil, &messages.Problem{
			Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
			Code: messages.CodeNotFound, Detail: err.Error(),
		}
	}
	return p, err
}
