package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNoIndex means that the dispatcher keeps no index of runs, or cannot ask it now.
var ErrNoIndex = control.ErrNoIndex

// request is the filter as dispatchers take it.
func (f *RunFilter) request() control.RunsRequest {
	return control.RunsRequest{
		Tenant: f.Tenant, Since: unlessZero(f.Since), Until: unlessZero(f.Until), Statuses: f.Statuses, Agent: f.Agent, Session: f.Session, Parent: f.Parent,
		Labels: f.Labels, Search: f.Search, Code: f.Code, ID: f.ID, Prefix: f.Prefix, After: f.After,
	}
}

// indexed is Runs by the dispatcher's index. ErrNoIndex, or ErrUnavailable from a dispatcher that is older.
func (c *Client) indexed(ctx context.Context, f *RunFilter) (*RunList, error) {
	limit := f.Limit
	if limit == 0 {
		limit = MaxRuns
	}
	if f.After != "" { // a run that has begun: what is queued was listed before it
		list, err := c.begunRuns(ctx, f, limit)
		if field, ok := errors.AsType[*messages.FieldError](err); !ok || field.Field != "after" {
			return list, err
		}
	}
	queued, err := c.queued(ctx, f)
	if err != nil {
		return nil, err
	}
	waiting := queued.newestFirst(f)
	if f.After != "" {
		i := slices.IndexFunc(waiting, func(r *control.RunSummary) bool { return r.ID == f.After })
		if i < 0 {
			return nil, &messages.FieldError{Field: "after", Reason: "is not a known run"}
		}
		waiting = waiting[i+1:]
	}
	top := *f
	top.After = ""
	list, err := c.begunRuns(ctx, &top, max(limit-len(waiting), 1))
	if err != nil {
		return nil, err
	}
	waiting = slices.DeleteFunc(waiting, func(r *control.RunSummary) bool { // it has begun since
		return slices.ContainsFunc(list.Runs, func(b *control.RunSummary) bool { return b.ID == r.ID })
	})
	more := list.Next != ""
	list.Found, list.MoreQueued = list.Found+len(waiting), queued.more
	list.Runs = append(waiting, list.Runs...)
	if list.Next = ""; more || len(list.Runs) > limit {
		list.Runs = list.Runs[:min(limit, len(list.Runs))]
		list.Next = list.Runs[len(list.Runs)-1].ID
	}
	return list, nil
}

// begunRuns reads pages of runs that have begun.
func (c *Client) begunRuns(ctx context.Context, f *RunFilter, limit int) (*RunList, error) {
	list := &RunList{Runs: []*control.RunSummary{}}
	req := f.request()
	req.Count = true
	for {
		var page control.RunPage
		req.Limit = min(limit-len(list.Runs), control.MaxRunPage)
		if err := c.request(ctx, control.SubjectRuns, req, &page); err != nil {
			return nil, err
		}
		if req.Count {
			list.Found, list.IndexLag = page.Found, page.IndexLag
			if page.More {
				list.Forgotten = 1
			}
		}
		for i := range page.Runs {
			list.Runs = append(list.Runs, &page.Runs[i])
		}
		list.Next, req.After, req.Count = page.Next, page.Next, false
		if page.Next == "" || len(page.Runs) == 0 || len(list.Runs) >= limit {
			return list, nil
		}
	}
}

// Running returns the newest runs of a tenant that a worker works, by the dispatcher's index: none that is queued or waits.
// ErrNoIndex, or ErrUnavailable.
func (of Runs) Running(ctx context.Context, tenant string, limit int) (*RunList, error) {
	f := RunFilter{Tenant: tenant, Statuses: []messages.Status{messages.StatusRunning}, Limit: limit}
	if of.client.remote != nil {
		return of.client.listed(ctx, f)
	}
	return of.client.begunRuns(ctx, &f, limit)
}

// newestFirst is the queued tasks that fit a filter as a whole.
func (q *queuedTasks) newestFirst(f *RunFilter) []*control.RunSummary {
	all := slices.AppendSeq([]*control.RunSummary{}, maps.Values(q.runs)) // none is no null in JSON
	all = slices.DeleteFunc(all, func(r *control.RunSummary) bool { return !f.matches(r) })
	slices.SortFunc(all, func(a, b *control.RunSummary) int {
		return cmp.Or(b.Queued.Compare(*a.Queued), cmp.Compare(b.ID, a.ID))
	})
	return all
}

// contains reports whether a run's words have a text in them, upper and lower case the same.
func contains(r *control.RunSummary, text string) bool {
	return strings.Contains(strings.ToLower(strings.Join([]string{r.ID, r.Input, r.Error, r.Summary}, "\n")), strings.ToLower(text))
}

// Stats adds up how the runs that fit have ended. ErrNoIndex.
func (of Runs) Stats(ctx context.Context, f RunFilter, by control.StatsBy) (*control.RunStats, error) {
	return ask[control.RunStats](ctx, of.client, control.SubjectRunStats, control.StatsRequest{RunsRequest: f.request(), By: by})
}

// Steps returns the steps of a run as its events tell them, in order. ErrNoIndex, ErrNotFound.
func (of Runs) Steps(ctx context.Context, run messages.Ref) (*control.StepList, error) {
	return ask[control.StepList](ctx, of.client, control.SubjectRunSteps, control.RunRequest{Tenant: run.Tenant, ID: run.Run})
}

// Status tells how the index of the dispatcher is that answers. ErrNoIndex.
func (of Index) Status(ctx context.Context) (*control.IndexStatus, error) {
	return ask[control.IndexStatus](ctx, of.client, control.SubjectIndex, struct{}{})
}

// Rebuild has dispatchers make their index of runs again from the events. When it returns one has begun; Index tells
// how far it is. ErrNoIndex.
func (of Index) Rebuild(ctx context.Context) error {
	var done struct{}
	return of.client.request(ctx, control.SubjectIndexRebuild, struct{}{}, &done)
}
