package service

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func (s *Service) lanes(ctx context.Context, body []byte) (any, error) {
	var req control.LanesRequest
	if err := strict.Decode(body, &req); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	return s.cfg.Bus.LaneList(ctx, req)
}
