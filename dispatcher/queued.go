package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// maxQueuedPages bounds how often the dispatcher is asked for queued tasks, some thousands of which it looks at each time.
const maxQueuedPages = 50

// queuedTasks is tasks that no worker has begun.
type queuedTasks struct {
	runs map[string]*control.RunSummary
	more bool // there are others, which were not looked at
}

// queued reads the queue, if the filter lets queued runs through: MaxRuns of them at most.
func (c *Client) queued(ctx context.Context, f *RunFilter) (q queuedTasks, err error) {
	q.runs = map[string]*control.RunSummary{}
	if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, messages.StatusQueued) {
		return q, nil
	}
	for _, delayed := range []bool{true, false} { // a task that comes to its time meanwhile is found in the queue
		req := control.QueuedRequest{
			Tenant: f.Tenant, Delayed: delayed, Since: unlessZero(f.Since), Until: unlessZero(f.Until), Agent: f.Agent, Session: f.Session, Labels: f.Labels,
			Parent: f.Parent,
		}
		for page := 0; ; page++ {
			if page == maxQueuedPages || len(q.runs) >= MaxRuns {
				q.more = true
				break
			}
			var list control.QueuedList
			if err := c.request(ctx, control.SubjectQueued, req, &list); err != nil {
				return q, err
			}
			for i := range list.Runs {
				q.runs[list.Runs[i].ID] = &list.Runs[i]
			}
			if req.After = list.Next; list.Next == 0 {
				break
			}
		}
	}
	return q, nil
}

// begun forgets a task that has an event: it is no longer queued.
func (q *queuedTasks) begun(e *messages.Event) { delete(q.runs, e.Subject) }

// addTo puts what is still queued after all that has begun, oldest first.
func (q *queuedTasks) addTo(r *recent) {
	left := make([]*control.RunSummary, 0, len(q.runs))
	for _, run := range q.runs {
		left = append(left, run)
	}
	slices.SortFunc(left, func(a, b *control.RunSummary) int {
		return cmp.Or(a.Queued.Compare(*b.Queued), cmp.Compare(a.ID, b.ID))
	})
	for _, run := range left {
		*r.begin(run.ID) = *run
	}
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// submitLater has the dispatcher keep a task that may not begin yet.
func (c *Client) submitLater(ctx context.Context, t *messages.Task) (id string, err error) {
	var reply control.SubmitReply
	if err := c.request(ctx, control.SubjectSubmit, t, &reply); err != nil {
		return t.ID, fmt.Errorf("submit %s: %w", t.ID, err)
	}
	return reply.ID, nil
}
