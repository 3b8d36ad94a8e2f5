package service

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// runEnded does what the end of a run asks for. All of it may be done twice.
func (s *Service) runEnded(ctx context.Context, e events.RunEnd) error {
	batch, maybe := messages.BatchOf(e.Run)
	if !maybe && !e.HasWebhook() {
		return nil
	}
	d, ok := e.Finished()
	if !ok {
		s.cfg.Bus.Foreign()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	var err error
	if maybe {
		err = s.owners.batches.RunEnded(ctx, batch, &d.Result)
	}
	if d.Webhook {
		err = errors.Join(err, s.owners.webhooks.RunEnded(ctx, e, d.Result.Status))
	}
	return err
}
