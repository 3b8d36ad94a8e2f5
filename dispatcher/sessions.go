package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

// Errors about sessions.
var (
	ErrNoSession   = control.ErrNoSession
	ErrSessionBusy = control.ErrSessionBusy
)

// List returns the sessions of a tenant by name, a thousand at most, without the ids of their runs.
func (of Sessions) List(ctx context.Context, tenant string) (*control.SessionList, error) {
	return ask[control.SessionList](ctx, of.client, control.SubjectSessions, control.SessionRequest{Tenant: tenant})
}

// Get tells which run of a session has its turn, which ones wait and which ones ended. ErrNoSession: it never had a
// run, or was deleted.
func (of Sessions) Get(ctx context.Context, tenant, name string) (*control.SessionStatus, error) {
	return ask[control.SessionStatus](ctx, of.client, control.SubjectSession, control.SessionRequest{Tenant: tenant, Name: name})
}

// Delete makes the next run of a session begin a new conversation, and returns what the session was.
// ErrSessionBusy: it has runs that have not ended.
func (of Sessions) Delete(ctx context.Context, tenant, name string) (*control.SessionStatus, error) {
	return ask[control.SessionStatus](ctx, of.client, control.SubjectSessionDelete, control.SessionRequest{Tenant: tenant, Name: name})
}
