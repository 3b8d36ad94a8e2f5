// Package keys answers the requests about API keys.
package keys

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/control"
)

// Config is what Keys works with.
type Config struct {
	Catalog *catalog.Catalog
	Now     func() time.Time
	Log     *slog.Logger
}

// Keys answers the requests about API keys.
type Keys struct{ cfg Config }

// New returns Keys.
func New(cfg Config) *Keys { return &Keys{cfg} }

// Handlers are the requests about API keys.
func (ks *Keys) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectKeyCreate: request.Read(ks.createKey),
		control.SubjectKeyList:   request.Read(ks.listKeys),
		control.SubjectKeyRevoke: request.Read(ks.revokeKey),
	}
}

func (ks *Keys) createKey(ctx context.Context, req control.KeyCreate) (any, error) {
	now := ks.cfg.Now()
	if err := req.Check(now); err != nil {
		return nil, err
	}
	k := control.APIKey{ID: req.ID, Tenant: req.Tenant, Roles: req.Roles, Name: req.Name, Created: now, By: req.By, Expires: req.Expires}
	err := ks.cfg.Catalog.CreateKey(ctx, control.StoredKey{APIKey: k, Hash: req.Hash})
	if errors.Is(err, messages.ErrRevision) {
		return nil, request.Conflict("there is a key " + req.ID + " already")
	}
	if err != nil {
		return nil, err
	}
	ks.cfg.Log.InfoContext(ctx, "API key created", "key", k.ID, "tenant", k.Tenant, "roles", k.Roles, "by", k.By)
	return k, nil
}

func (ks *Keys) listKeys(ctx context.Context, req control.KeyListRequest) (any, error) {
	list, more, err := ks.cfg.Catalog.Keys(ctx, req.Tenant)
	return control.KeyList{Keys: list, More: more}, err
}

func (ks *Keys) revokeKey(ctx context.Context, req control.KeyRevoke) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	if req.Tenant != "" {
		switch k, ok, err := ks.cfg.Catalog.Key(ctx, req.ID); {
		case err != nil:
			return nil, err
		case !ok || k.Tenant != req.Tenant:
			return nil, control.ErrNoKey
		}
	}
	c, changed, err := ks.cfg.Catalog.RevokeKey(ctx, req.ID, req.By)
	switch {
	case err != nil:
		return nil, err
	case c.Revision == 0: // there never was one; revoking one twice is no mistake
		return nil, control.ErrNoKey
	}
	if changed {
		ks.cfg.Log.InfoContext(ctx, "API key revoked", "key", c.Name, "by", c.By)
	}
	return c, nil
}
