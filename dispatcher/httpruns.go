package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
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
		if bus.Pause(ctx, wait) != nil {
			return t.ID, fmt.Errorf("submit %s: %w", t.ID, last)
		}
	}
}

// maxRunPage is how many runs the API lists at most.
const maxRunPage = 1000

// runs lists runs page by page.
func (c *Client) listed(ctx context.Context, f RunFilter) (*RunList, error) {
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
	out := &RunList{Runs: []*control.RunSummary{}}
	for first := true; ; first = false {
		asked.Limit = min(limit-len(out.Runs), maxRunPage)
		var page RunList
		if err := c.Call(ctx, control.ByID("listTasks"), asked, &page); err != nil {
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
		asked.After = page.Next
	}
}

// summary is a run in a list of one.
func (c *Client) summarised(ctx context.Context, run messages.Ref) (*control.RunSummary, error) {
	list, err := c.listed(ctx, RunFilter{Tenant: run.Tenant, ID: run.Run})
	switch {
	case err != nil:
		return nil, err
	case len(list.Runs) == 0:
		return nil, ErrNotFound
	default:
		return list.Runs[0], nil
	}
}
