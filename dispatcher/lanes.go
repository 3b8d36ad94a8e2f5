package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
)

// Lanes tells what waits in the queue, by tenant and priority; a thousand lanes at most.
func (c *Client) Lanes(ctx context.Context, req messages.LanesRequest) (*messages.LaneList, error) {
	var list messages.LaneList
	if err := c.request(ctx, messages.SubjectLanes, req, &list); err != nil {
		return nil, err
	}
	return &list, nil
}
