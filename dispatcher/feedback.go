package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// AddFeedback stores feedback on a run, also after its end; the run does not change. F.Tenant and f.ID are set from run; f.Control
// makes it idempotent. ErrConflict: that id belongs to other feedback.
func (of Runs) AddFeedback(ctx context.Context, run messages.Ref, f control.FeedbackRequest) (*control.Feedback, error) {
	f.Tenant, f.ID = run.Tenant, run.Run
	var given control.Feedback
	if err := of.client.request(ctx, control.SubjectFeedback, f, &given); err != nil {
		return nil, err
	}
	return &given, nil
}

// Feedback lists the newest feedback on a run, for as long as events are kept.
func (of Runs) Feedback(ctx context.Context, run messages.Ref) (*control.FeedbackList, error) {
	var list control.FeedbackList
	err := of.client.request(ctx, control.SubjectFeedbackList, control.RunRequest{Tenant: run.Tenant, ID: run.Run}, &list)
	if err != nil {
		return nil, err
	}
	return &list, nil
}
