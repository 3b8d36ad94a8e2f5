package service

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

// events answers with a page of stored events. Clients of a tenant may not read the stream; this is how they see it.
func (s *Service) events(ctx context.Context, req control.EventsRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return s.cfg.Events.Page(ctx, &req, min(maxPageBytes, int(s.cfg.Conn.MaxPayload())-pageRoom))
}
