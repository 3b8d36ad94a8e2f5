package embed

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// Steer tells the run something, which the model reads before its next call; what is in progress is not aborted, and a run that
// waits keeps waiting. An error says that it was not told: ErrEnded, or that the run has not begun.
func (s *Session) Steer(ctx context.Context, message string) error {
	req := control.SteerRequest{Message: message}
	if err := req.Validate(); err != nil {
		return err
	}
	_, err := s.controller.Steer(ctx, s.run, &record.Steered{ID: s.controller.NewID(), Message: message})
	return err
}
