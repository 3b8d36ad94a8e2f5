package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// headerIfMatch makes a change one of a revision, as an ETag names it.
const headerIfMatch = "If-Match"

// quotaOperations are those about what operators grant, and about workers.
func quotaOperations() []operation {
	headers := []parameter{
		{name: headerBy, text: "Who makes the change; it is kept with it."},
		{name: headerIfMatch, text: "Only if this is the newest revision, as the ETag of a read has it."},
	}
	since := []parameter{{name: "ifRevision", text: "Only if this is the newest; 0: only if there is none.", kind: "integer"}}
	const path = "/v1/quotas/{kind}/{name}"
	return []operation{
		{
			method: "GET", path: "/v1/quotas", id: "listQuotas", needs: auth.ReadFleet, tag: "quotas", summary: "List what was granted",
			text: "Without what is used of it.", reply: messages.QuotaList{}, answer: listQuotas,
		},
		{
			method: "GET", path: path, id: "getQuota", needs: auth.ReadFleet, tag: "quotas", summary: "A quota, and how much of it is used",
			text:  "The kind is tenant, agent or provider. What was never granted has no limit and the revision 0.",
			reply: messages.QuotaState{}, answer: getQuota,
		},
		{
			method: "PUT", path: path, id: "putQuota", needs: auth.Administer, tag: "quotas", summary: "Grant something in the place of what was granted",
			text:    "It counts within two seconds. A pause stays.",
			headers: headers, query: since, body: messages.Quota{}, reply: messages.QuotaChange{}, answer: putQuota,
		},
		{
			method: "DELETE", path: path, id: "deleteQuota", needs: auth.Administer, tag: "quotas", summary: "Take all limits away",
			text: "A pause stays.", headers: headers, query: since, reply: messages.QuotaChange{}, answer: deleteQuota,
		},
		{
			method: "GET", path: "/v1/workers", id: "listWorkers", needs: auth.ReadFleet, tag: "workers", summary: "List the workers that answer",
			reply: messages.WorkerList{}, answer: listWorkers,
		},
		{
			method: "POST", path: "/v1/workers/{id}/drain", id: "drainWorker", needs: auth.OperateFleet, tag: "workers", summary: "Take a worker out of the fleet",
			text:  "It takes nothing new, hands its runs back after their step, and ends. The id may be its name, when no other has it.",
			reply: messages.WorkerStatus{}, answer: drainWorker,
		},
	}
}

// quota is the quota of the path.
func (q *query) quota() (messages.QuotaRef, error) {
	of := messages.QuotaRef{Kind: messages.QuotaKind(q.r.PathValue("kind")), Name: q.r.PathValue("name")}
	return of, of.Check()
}

// matched is the revision that a change is for: of the query, or of If-Match.
func (q *query) matched() (*uint64, error) {
	n, err := q.revision("ifRevision")
	tag := q.r.Header.Get(headerIfMatch)
	if err != nil || tag == "" || tag == "*" {
		return n, err
	}
	m, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
	switch {
	case err != nil:
		return nil, &messages.FieldError{Field: headerIfMatch, Reason: "must be one revision"}
	case n != nil && *n != m:
		return nil, &messages.FieldError{Field: headerIfMatch, Reason: "is not that of ifRevision"}
	}
	return &m, nil
}

func tagged(revision uint64, body any) *replyOf {
	return &replyOf{header: http.Header{"Etag": {`"` + strconv.FormatUint(revision, 10) + `"`}}, body: body}
}

func listQuotas(ctx context.Context, q *query) (any, error) {
	list, err := q.api.cfg.Client.Quotas(ctx)
	return messages.QuotaList{Quotas: list}, err
}

func getQuota(ctx context.Context, q *query) (any, error) {
	of, err := q.quota()
	if err != nil {
		return nil, err
	}
	state, err := q.api.cfg.Client.Quota(ctx, of)
	if err != nil {
		return nil, err
	}
	return tagged(state.Revision, state), nil
}

func putQuota(ctx context.Context, q *query) (any, error) {
	of, err := q.quota()
	if err != nil {
		return nil, err
	}
	revision, err := q.matched()
	if err != nil {
		return nil, err
	}
	var body messages.Quota
	if err := q.read(&body); err != nil {
		return nil, err
	}
	change, err := q.api.cfg.Client.PutQuota(ctx, messages.QuotaPut{QuotaRef: of, Quota: body, IfRevision: revision, By: q.by(q.r.Header.Get(headerBy))})
	if field, ok := errors.AsType[*messages.FieldError](err); ok { // the quota is the whole body here
		return nil, &messages.FieldError{Field: strings.TrimPrefix(field.Field, "quota."), Reason: field.Reason}
	}
	return changed(change, err)
}

func deleteQuota(ctx context.Context, q *query) (any, error) {
	of, err := q.quota()
	if err != nil {
		return nil, err
	}
	revision, err := q.matched()
	if err != nil {
		return nil, err
	}
	return changed(q.api.cfg.Client.DeleteQuota(ctx, messages.QuotaDelete{QuotaRef: of, IfRevision: revision, By: q.by(q.r.Header.Get(headerBy))}))
}

func changed(c *messages.QuotaChange, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return tagged(c.Revision, c), nil
}

func listWorkers(ctx context.Context, q *query) (any, error) {
	list, err := q.api.cfg.Client.Workers(ctx)
	return messages.WorkerList{Workers: list}, err
}

func drainWorker(ctx context.Context, q *query) (any, error) {
	status, err := q.api.cfg.Client.DrainWorker(ctx, q.r.PathValue("id"))
	switch {
	case errors.Is(err, dispatcher.ErrNoWorker):
		return nil, problemf(http.StatusNotFound, messages.CodeNotFound, err.Error())
	case errors.Is(err, dispatcher.ErrManyWorkers):
		return nil, problemf(http.StatusConflict, messages.CodeConflict, err.Error())
	case err != nil:
		return nil, err
	}
	return status, nil
}
