package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// deadOperations are those on dead letters.
func deadOperations() []operation {
	one := "/v1/dead-letters/{seq}"
	unaddressed := parameter{name: "unaddressed", text: "Letters that name no tenant, instead of a tenant's. They are the operator's.", kind: "boolean"}
	filter := []parameter{
		{name: "kind", text: "run, message or webhook.", example: "webhook"},
		{name: "agent", text: "Only tasks of this agent."},
		{name: "code", text: "Only those with this error code.", example: "poison"},
		{name: "since", text: "Only those stored since then.", kind: "date-time", example: "2026-01-02T15:04:05Z"},
		unaddressed,
		{name: "after", text: "Go on after this letter: `next` of the page before.", kind: "integer"},
	}
	bulk := append(append([]parameter{}, filter...),
		parameter{name: "limit", text: "At most so many, 50 at most and by default.", kind: "integer"})
	return []operation{
		{
			method: "GET", path: "/v1/dead-letters", id: "listDeadLetters", needs: auth.Read, tag: "dead letters", summary: "List dead letters, oldest first",
			text: "Tasks that cannot be worked and webhooks that could not be delivered, without their bodies.",
			query: append(append([]parameter{}, filter...),
				parameter{name: "limit", text: "At most so many, 100 at most and by default.", kind: "integer"}),
			reply: messages.DeadList{}, answer: listDead,
		},
		{
			method: "GET", path: one, id: "getDeadLetter", needs: auth.Read, tag: "dead letters", summary: "A dead letter with its body",
			query: []parameter{unaddressed}, reply: messages.DeadLetter{}, answer: getDead,
		},
		{
			method: "POST", path: one + "/redrive", id: "redriveDeadLetter", needs: auth.Operate, tag: "dead letters", summary: "Send a dead letter again",
			text: "A task becomes a new run, with the label redriven-from; a webhook is delivered again under its own id. The body, if " +
				"there is one, is the edited task. The letter is removed once that is stored; the same request may be made again.",
			query: []parameter{unaddressed, {name: "newId", text: "The id of the new run; by default one that belongs to the letter."}},
			body:  messages.Task{}, optional: true, reply: messages.DeadRedriven{}, answer: redriveDead,
		},
		{
			method: "DELETE", path: one, id: "purgeDeadLetter", needs: auth.Operate, tag: "dead letters", summary: "Remove a dead letter",
			query: []parameter{unaddressed}, reply: messages.DeadLetter{}, answer: purgeDead,
		},
		{
			method: "POST", path: "/v1/dead-letters:redrive", id: "redriveDeadLetters", needs: auth.Operate, tag: "dead letters",
			summary: "Send the dead letters that fit again", text: "Without a filter all, 50 at a time: go on with `after` until there is no `next`.",
			query: bulk, reply: messages.DeadBulk{}, answer: redriveAllDead,
		},
		{
			method: "POST", path: "/v1/dead-letters:purge", id: "purgeDeadLetters", needs: auth.Operate, tag: "dead letters",
			summary: "Remove the dead letters that fit", text: "Without a filter all, 50 at a time: go on with `after` until there is no `next`.",
			query: append(append([]parameter{}, bulk...), parameter{name: "confirm", text: "Must be true.", kind: "boolean"}),
			reply: messages.DeadBulk{}, answer: purgeAllDead,
		},
	}
}

// deadTenant is the tenant of the request; empty for letters that name none, which are for who may do it for all.
func (q *query) deadTenant() (tenant string, unaddressed bool, err error) {
	if unaddressed, err = q.flag("unaddressed"); err != nil {
		return "", false, err
	}
	if unaddressed {
		return "", true, q.forAll()
	}
	tenant, err = q.tenant()
	return tenant, false, err
}

func (q *query) letter() (req messages.DeadRequest, err error) {
	if req.Tenant, req.Unaddressed, err = q.deadTenant(); err != nil {
		return req, err
	}
	if req.Seq, err = strconv.ParseUint(q.r.PathValue("seq"), 10, 64); err != nil || req.Seq == 0 {
		return req, &messages.FieldError{Field: "seq", Reason: "must be the number of a dead letter"}
	}
	return req, nil
}

func (q *query) deadFilter(most int) (req messages.DeadListRequest, err error) {
	if req.Tenant, req.Unaddressed, err = q.deadTenant(); err != nil {
		return req, err
	}
	req.Kind, req.Agent, req.Code = messages.DeadKind(q.text("kind")), q.text("agent"), messages.Code(q.text("code"))
	since, err := q.time("since", time.Time{})
	if err != nil {
		return req, err
	}
	if !since.IsZero() {
		req.Since = &since
	}
	if v := q.text("after"); v != "" {
		if req.After, err = strconv.ParseUint(v, 10, 63); err != nil {
			return req, &messages.FieldError{Field: "after", Reason: "must be the number of a dead letter"}
		}
	}
	req.Limit, err = q.limit(most)
	return req, err
}

func listDead(ctx context.Context, q *query) (any, error) {
	req, err := q.deadFilter(messages.MaxDeadList)
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.DeadLetters(ctx, req)
}

func getDead(ctx context.Context, q *query) (any, error) {
	req, err := q.letter()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.DeadLetter(ctx, req)
}

func redriveDead(ctx context.Context, q *query) (any, error) {
	req := messages.DeadRedrive{NewID: q.text("newId")}
	var err error
	if req.DeadRequest, err = q.letter(); err != nil {
		return nil, err
	}
	body, err := q.raw()
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		if _, err := messages.DecodeTask(body); err != nil { // names the field
			return nil, err
		}
		req.Task = json.RawMessage(body)
	}
	return q.api.cfg.Client.Redrive(ctx, req)
}

func purgeDead(ctx context.Context, q *query) (any, error) {
	req, err := q.letter()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.PurgeDead(ctx, req)
}

func redriveAllDead(ctx context.Context, q *query) (any, error) {
	req, err := q.deadFilter(messages.MaxDeadBulk)
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.RedriveAll(ctx, req)
}

func purgeAllDead(ctx context.Context, q *query) (any, error) {
	req, err := q.deadFilter(messages.MaxDeadBulk)
	if err != nil {
		return nil, err
	}
	sure, err := q.flag("confirm")
	switch {
	case err != nil:
		return nil, err
	case !sure:
		return nil, problemf(http.StatusBadRequest, messages.CodeInvalidInput, "what is purged is gone: give confirm=true")
	}
	return q.api.cfg.Client.PurgeAllDead(ctx, req)
}
