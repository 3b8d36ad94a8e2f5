package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// submit posts a task, which has its id: so it can be posted again while no dispatcher stores it, as long as ctx lasts and
// requestTimeout at most.
func (r *remote) submit(ctx context.Context, t *messages.Task) (string, error) {
	own := *t
	if own.Tenant == messages.DefaultTenant {
		own.Tenant = "" // the tenant of the key
	}
	body, err := json.Marshal(own)
	if err != nil {
		return "", fmt.Errorf("encode task: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var last error
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := r.json(ctx, call{method: http.MethodPost, path: "/v1/tasks", tenant: t.Tenant, body: body})
		p, refused := errors.AsType[*messages.Problem](err)
		switch {
		case err == nil:
			return t.ID, nil
		case refused && p.Code == messages.CodeRateLimited:
			return "", &RateLimitError{time.Duration(p.RetryAfter) * time.Second, p}
		case refused && p.Status != http.StatusServiceUnavailable:
			return "", meaning(control.Of(control.SubjectSubmit), err)
		case !refused && ctx.Err() != nil && last != nil:
			return t.ID, fmt.Errorf("submit %s: %w", t.ID, last)
		case !refused:
			return t.ID, fmt.Errorf("submit %s: %w", t.ID, err)
		}
		last = err
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return t.ID, fmt.Errorf("submit %s: %w", t.ID, last)
		}
	}
}

// maxRunPage is how many runs the API lists at most.
const maxRunPage = 1000

// runs lists runs page by page.
func (r *remote) runs(ctx context.Context, f RunFilter) (*RunList, error) {
	limit := f.Limit
	if limit == 0 {
		limit = MaxRuns
	}
	asked := f.request()
	switch { // the API finds ids by their text
	case f.Search != "":
	case f.ID != "":
		asked.Search = f.ID
	case f.Prefix != "":
		asked.Search = f.Prefix
	}
	query := filterQuery(&asked)
	set(query, "after", f.After)
	out := &RunList{Runs: []*control.RunSummary{}}
	for first := true; ; first = false {
		query.Set("limit", strconv.Itoa(min(limit-len(out.Runs), maxRunPage)))
		data, err := r.json(ctx, call{method: http.MethodGet, path: "/v1/tasks", tenant: f.Tenant, query: query})
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", named(err))
		}
		var page RunList
		if err := strict.DecodePeer(data, &page); err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		if first {
			out.Found, out.Forgotten, out.MoreQueued, out.IndexLag = page.Found, page.Forgotten, page.MoreQueued, page.IndexLag
		}
		for _, run := range page.Runs {
			if f.ID != "" && run.ID != f.ID || len(run.ID) < len(f.Prefix) || run.ID[:len(f.Prefix)] != f.Prefix {
				out.Found--
				continue
			}
			out.Runs = append(out.Runs, run)
		}
		if out.Next = page.Next; page.Next == "" || len(out.Runs) >= limit {
			return out, nil
		}
		query.Set("after", page.Next)
	}
}

// summary is a run in a list of one.
func (r *remote) summary(ctx context.Context, run messages.Ref) (*control.RunSummary, error) {
	list, err := r.runs(ctx, RunFilter{Tenant: run.Tenant, ID: run.Run})
	switch {
	case err != nil:
		return nil, err
	case len(list.Runs) == 0:
		return nil, ErrNotFound
	default:
		return list.Runs[0], nil
	}
}

func (r *remote) agents(ctx context.Context) ([]messages.Definition, error) {
	data, err := r.json(ctx, call{method: http.MethodGet, path: "/v1/agents"})
	if err != nil {
		return nil, named(err)
	}
	var list struct {
		Agents []messages.Definition `json:"agents"`
	}
	if err := strict.DecodePeer(data, &list); err != nil {
		return nil, fmt.Errorf("read the agents: %w", err)
	}
	return list.Agents, nil
}

func (r *remote) agent(ctx context.Context, name string) (def messages.Definition, err error) {
	data, err := r.json(ctx, call{method: http.MethodGet, path: "/v1/agents/" + url.PathEscape(name)})
	if err != nil {
		return def, named(err)
	}
	if err := strict.DecodePeer(data, &def); err != nil {
		return def, fmt.Errorf("read agent %s: %w", name, err)
	}
	return def, nil
}

// createKey has a dispatcher make a key.
func (r *remote) createKey(ctx context.Context, spec KeySpec) (key string, about control.APIKey, err error) {
	order := struct {
		Tenant  string               `json:"tenant,omitempty"`
		Roles   []control.AccessRole `json:"roles"`
		Name    string               `json:"name,omitempty"`
		Expires *time.Time           `json:"expires,omitempty"`
	}{spec.Tenant, spec.Roles, spec.Name, unlessZero(spec.Expires)}
	body, err := json.Marshal(order)
	if err != nil {
		return "", about, fmt.Errorf("encode request: %w", err)
	}
	data, err := r.json(ctx, call{method: http.MethodPost, path: "/v1/keys", body: body})
	if err != nil {
		return "", about, named(err)
	}
	var made struct {
		Key string `json:"key"`
		control.APIKey
	}
	if err := strict.DecodePeer(data, &made); err != nil {
		return "", about, fmt.Errorf("read the new key: %w", err)
	}
	return made.Key, made.APIKey, nil
}
