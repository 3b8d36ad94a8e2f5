package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNotSteered means that a run was not told: it has not begun or has ended, was told too much, or something else
// under the same control id. The error says which.
var ErrNotSteered = control.ErrNotSteered

// Steer tells a run something, which the model reads before its next call; what is in progress is not aborted, and a run that
// waits keeps waiting. When it returns nil the message is recorded. S.Tenant and s.ID are those of run; s.Control makes it
// safe to repeat.
func (c *Client) Steer(ctx context.Context, run messages.Ref, s control.SteerRequest) (*control.RunStatus, error) {
	s.Tenant, s.ID = run.Tenant, run.Run
	return ask[control.RunStatus](ctx, c, control.SubjectSteer, s)
}
