package history

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

// events answers with a page of stored events. Clients of a tenant may not read the stream; this is how they see it.
func (h *History) events(ctx context.Context, req control.EventsRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return h.cfg.Events.Page(ctx, &req, h.cfg.Room.Page())
}
