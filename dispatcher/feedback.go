package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// AddFeedback stores what somebody thinks of a run; it changes nothing about the run and may come after its end. F.Tenant and
// f.ID are those of run; f.Control makes it safe to repeat. ErrConflict: that id is of another feedback.
func (of Runs) AddFeedback(ctx context.Context, run messages.Ref, f control.FeedbackRequest) (*messages.Feedback, error) {
	f.Tenant, f.ID = run.Tenant, run.Run
	var given messages.Feedback
	if err := of.client.request(ctx, control.SubjectFeedback, f, &given); err != nil {
		return nil, conflictAs(err, ErrConflict)
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
