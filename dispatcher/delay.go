package dispatcher

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// submitLater has the dispatcher keep a task that may not begin yet.
func (c *Client) submitLater(ctx context.Context, t *messages.Task) (id string, err error) {
	var reply control.SubmitReply
	if err := c.request(ctx, control.SubjectSubmit, t, &reply); err != nil {
		return t.ID, fmt.Errorf("submit %s: %w", t.ID, conflictAs(err, ErrConflict))
	}
	return reply.ID, nil
}
