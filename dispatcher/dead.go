package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

// ErrNoLetter means that there is no such dead letter, or it is another tenant's.
var ErrNoLetter = control.ErrNoLetter

// List lists the dead letters that fit, oldest first, without their bodies.
func (of DeadLetters) List(ctx context.Context, req control.DeadListRequest) (*control.DeadList, error) {
	return ask[control.DeadList](ctx, of.client, control.SubjectDeadList, req)
}

// Get returns a dead letter with its body.
func (of DeadLetters) Get(ctx context.Context, req control.DeadRequest) (*control.DeadLetter, error) {
	return ask[control.DeadLetter](ctx, of.client, control.SubjectDeadShow, req)
}

// Redrive sends a dead letter again, perhaps edited, and removes it: a task as a new run, a webhook as the same
// delivery. When an answer is lost the same may be asked for again: unless NewID says otherwise the new run has an id
// that belongs to the letter. ErrNoLetter: it is gone. ErrConflict: the id is that of another task.
func (of DeadLetters) Redrive(ctx context.Context, req control.DeadRedrive) (*control.DeadRedriven, error) {
	return ask[control.DeadRedriven](ctx, of.client, control.SubjectDeadRedrive, req)
}

// Purge removes a dead letter and returns what it was.
func (of DeadLetters) Purge(ctx context.Context, req control.DeadRequest) (*control.DeadLetter, error) {
	return ask[control.DeadLetter](ctx, of.client, control.SubjectDeadPurge, req)
}

// RedriveAll sends the dead letters that fit again, 50 at most. Continue with After as Next of the answer until that is 0;
// letters that failed are then not tried once more.
func (of DeadLetters) RedriveAll(ctx context.Context, req control.DeadListRequest) (*control.DeadBulk, error) {
	return ask[control.DeadBulk](ctx, of.client, control.SubjectDeadRedriveAll, req)
}

// PurgeAll removes the dead letters that fit, 50 at most. Continue with After as Next of the answer until that is 0.
func (of DeadLetters) PurgeAll(ctx context.Context, req control.DeadListRequest) (*control.DeadBulk, error) {
	return ask[control.DeadBulk](ctx, of.client, control.SubjectDeadPurgeAll, req)
}
