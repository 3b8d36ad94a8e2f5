package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// headerBy says who makes a change of an agent or a prompt; it is kept with the change.
const headerBy = "Longshore-By"

// RenderRequest is what a prompt is filled in with.
type RenderRequest struct {
	Version        uint64          `json:"version,omitempty"` // default: the newest
	Vars           json.RawMessage `json:"vars,omitempty"`    // an object
	ThrowOnMissing bool            `json:"throwOnMissing,omitempty"`
}

// catalogOperations are those about agents and prompts that are kept with their history.
func catalogOperations() []operation {
	by := []parameter{{name: headerBy, text: "Who makes the change; it is kept with it."}}
	since := func(what string) []parameter {
		return []parameter{{name: what, text: "Only if this is the newest; 0: only if there is none.", kind: "integer"}}
	}
	return []operation{
		{
			method: "PUT", path: "/v1/agents/{name}", id: "applyAgent", needs: auth.Administer, tag: "agents", summary: "Store an agent",
			text:    "It counts for the runs that begin two seconds later; those that have begun keep what they began with.",
			headers: by, query: since("ifRevision"), body: messages.Definition{}, reply: messages.AgentApplied{}, answer: applyAgent,
		},
		{
			method: "DELETE", path: "/v1/agents/{name}", id: "deleteAgent", needs: auth.Administer, tag: "agents", summary: "Remove an agent",
			headers: by, query: since("ifRevision"), reply: messages.Change{}, answer: deleteAgent,
		},
		{
			method: "GET", path: "/v1/agents/{name}/revisions", id: "listAgentRevisions", needs: auth.Read, tag: "agents", summary: "Who changed an agent, and when",
			reply: messages.History{}, answer: agentRevisions,
		},
		{
			method: "GET", path: "/v1/agents/{name}/revisions/{revision}", id: "getAgentRevision", needs: auth.Read, tag: "agents", summary: "An agent as it was",
			reply: messages.AgentRevision{}, answer: agentRevision,
		},
		{
			method: "GET", path: "/v1/prompts", id: "listPrompts", needs: auth.Read, tag: "prompts", summary: "List the prompts, without their texts",
			query: []parameter{
				{name: "tag", text: "Only those with this tag."}, {name: "name", text: "Only those whose id or name has this in it."},
			},
			reply: messages.PromptList{}, answer: listPrompts,
		},
		{
			method: "POST", path: "/v1/prompts:validate", id: "validatePrompt", needs: auth.Read, tag: "prompts", summary: "Check a prompt and store nothing",
			body: messages.Prompt{}, reply: messages.PromptVerdict{}, answer: validatePrompt,
		},
		{
			method: "GET", path: "/v1/prompts/{id}", id: "getPrompt", needs: auth.Read, tag: "prompts", summary: "A prompt",
			query: []parameter{{name: "version", text: "As it was then; by default the newest.", kind: "integer"}},
			reply: messages.Prompt{}, answer: getPrompt,
		},
		{
			method: "PUT", path: "/v1/prompts/{id}", id: "putPrompt", needs: auth.Administer, tag: "prompts", summary: "Store a new version of a prompt",
			headers: by, query: since("ifVersion"), body: messages.Prompt{}, reply: messages.Prompt{}, answer: putPrompt,
		},
		{
			method: "DELETE", path: "/v1/prompts/{id}", id: "deletePrompt", needs: auth.Administer, tag: "prompts", summary: "Remove a prompt",
			headers: by, query: since("ifVersion"), reply: messages.Change{}, answer: deletePrompt,
		},
		{
			method: "GET", path: "/v1/prompts/{id}/versions", id: "listPromptVersions", needs: auth.Read, tag: "prompts", summary: "Who changed a prompt, and when",
			reply: messages.History{}, answer: promptVersions,
		},
		{
			method: "POST", path: "/v1/prompts/{id}/render", id: "renderPrompt", needs: auth.Read, tag: "prompts", summary: "Fill in a prompt",
			body: RenderRequest{}, optional: true, reply: messages.PromptRendered{}, answer: renderPrompt,
		},
	}
}

// token is a name of the path.
func (q *query) token(name string) (string, error) {
	v := q.r.PathValue(name)
	if !messages.ValidToken(v) {
		return "", &messages.FieldError{Field: name, Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
	}
	return v, nil
}

// revision is a number that may be absent, which is nil.
func (q *query) revision(name string) (*uint64, error) {
	v := q.text(name)
	if v == "" {
		return nil, nil //nolint:nilnil // absent
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return nil, &messages.FieldError{Field: name, Reason: "must be a number"}
	}
	return &n, nil
}

// named checks that a body does not name another than its path.
func named(field, path string, body *string) error {
	if *body != "" && *body != path {
		return &messages.FieldError{Field: field, Reason: "is not that of the path"}
	}
	*body = path
	return nil
}

// agentError makes an agent that is asked for and unknown something that is not found.
func agentError(err error) error {
	if !errors.Is(err, messages.ErrUnknownAgent) {
		return err
	}
	p := problemOf(err)
	if p.Status != http.StatusNotFound {
		p.Status, p.Title, p.Field = http.StatusNotFound, http.StatusText(http.StatusNotFound), ""
	}
	return p
}

func applyAgent(ctx context.Context, q *query) (any, error) {
	name, err := q.token("name")
	if err != nil {
		return nil, err
	}
	revision, err := q.revision("ifRevision")
	if err != nil {
		return nil, err
	}
	var def messages.Definition
	if err := q.read(&def); err != nil {
		return nil, err
	}
	if err := named("name", name, &def.Name); err != nil {
		return nil, err
	}
	applied, err := q.api.cfg.Client.ApplyAgent(ctx, def, q.by(q.r.Header.Get(headerBy)), revision)
	if field, ok := errors.AsType[*messages.FieldError](err); ok { // the agent is the whole body here
		return nil, &messages.FieldError{Field: strings.TrimPrefix(field.Field, "agent."), Reason: field.Reason}
	}
	return applied, err
}

// deletion is what is asked to be removed.
func (q *query) deletion(name, revision string) (messages.CatalogDelete, error) {
	what, err := q.token(name)
	if err != nil {
		return messages.CatalogDelete{}, err
	}
	n, err := q.revision(revision)
	return messages.CatalogDelete{Name: what, IfRevision: n, By: q.by(q.r.Header.Get(headerBy))}, err
}

func deleteAgent(ctx context.Context, q *query) (any, error) {
	d, err := q.deletion("name", "ifRevision")
	if err != nil {
		return nil, err
	}
	change, err := q.api.cfg.Client.DeleteAgent(ctx, d)
	return change, agentError(err)
}

func agentRevisions(ctx context.Context, q *query) (any, error) {
	name, err := q.token("name")
	if err != nil {
		return nil, err
	}
	changes, err := q.api.cfg.Client.AgentHistory(ctx, name)
	return messages.History{Changes: changes}, agentError(err)
}

func agentRevision(ctx context.Context, q *query) (any, error) {
	name, err := q.token("name")
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(q.r.PathValue("revision"), 10, 64)
	if err != nil || n == 0 {
		return nil, &messages.FieldError{Field: "revision", Reason: "must be a number from 1"}
	}
	r, err := q.api.cfg.Client.AgentAt(ctx, name, n)
	return r, agentError(err)
}

func listPrompts(ctx context.Context, q *query) (any, error) {
	list, err := q.api.cfg.Client.Prompts(ctx, messages.PromptFilter{Tag: q.text("tag"), Name: q.text("name")})
	return messages.PromptList{Prompts: list}, err
}

func validatePrompt(ctx context.Context, q *query) (any, error) {
	var p messages.Prompt
	if err := q.read(&p); err != nil {
		return nil, err
	}
	return q.api.cfg.Client.ValidatePrompt(ctx, p)
}

func getPrompt(ctx context.Context, q *query) (any, error) {
	id, err := q.token("id")
	if err != nil {
		return nil, err
	}
	version, err := q.revision("version")
	if err != nil {
		return nil, err
	}
	if version == nil {
		version = new(uint64)
	}
	return q.api.cfg.Client.Prompt(ctx, id, *version)
}

func putPrompt(ctx context.Context, q *query) (any, error) {
	id, err := q.token("id")
	if err != nil {
		return nil, err
	}
	version, err := q.revision("ifVersion")
	if err != nil {
		return nil, err
	}
	var p messages.Prompt
	if err := q.read(&p); err != nil {
		return nil, err
	}
	if err := named("id", id, &p.ID); err != nil {
		return nil, err
	}
	if by := q.by(q.r.Header.Get(headerBy)); by != "" {
		p.Author = by
	}
	return q.api.cfg.Client.PutPrompt(ctx, p, version)
}

func deletePrompt(ctx context.Context, q *query) (any, error) {
	d, err := q.deletion("id", "ifVersion")
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.DeletePrompt(ctx, d)
}

func promptVersions(ctx context.Context, q *query) (any, error) {
	id, err := q.token("id")
	if err != nil {
		return nil, err
	}
	changes, err := q.api.cfg.Client.PromptHistory(ctx, id)
	return messages.History{Changes: changes}, err
}

func renderPrompt(ctx context.Context, q *query) (any, error) {
	id, err := q.token("id")
	if err != nil {
		return nil, err
	}
	var req RenderRequest
	if err := q.read(&req); err != nil {
		return nil, err
	}
	return q.api.cfg.Client.RenderPrompt(ctx, messages.PromptRender{ID: id, Version: req.Version, Vars: req.Vars, ThrowOnMissing: req.ThrowOnMissing})
}
