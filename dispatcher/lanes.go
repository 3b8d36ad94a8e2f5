package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

// Lanes tells what waits in the queue, by tenant and priority; a thousand lanes at most.
func (c *Client) Lanes(ctx context.Context, req control.LanesRequest) (*control.LaneList, error) {
	var list control.LaneList
	if err := c.request(ctx, control.SubjectLanes, req, &list); err != nil {
		return nil, err
	}
	return &list, nil
}
