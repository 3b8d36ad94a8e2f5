package definitions

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Expire removes the agents whose time is over. One that was stored anew meanwhile stays. Several dispatchers may do so at once.
func (ds *Definitions) Expire(ctx context.Context, now time.Time) error {
	all, err := ds.cfg.Catalog.Agents(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		d := &all[i]
		if d.Expires == nil || d.Expires.After(now) || d.Revision == 0 {
			continue
		}
		_, err := ds.deleteAgent(ctx, control.CatalogDelete{Name: d.Name, IfRevision: &d.Revision, By: catalog.ByDispatcher})
		another := errors.Is(err, messages.ErrRevision) || errors.Is(err, messages.ErrUnknownAgent) || errors.Is(err, runlog.ErrNotFound)
		if err != nil && !another {
			return err
		}
	}
	return nil
}
