package service

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// keys are the requests about API keys.
func (s *Service) keys() map[string]answerFunc {
	return map[string]answerFunc{
		control.SubjectKeyCreate: asked(s.createKey),
		control.SubjectKeyList:   asked(s.listKeys),
		control.SubjectKeyRevoke: asked(s.revokeKey),
	}
}

func (s *Service) createKey(ctx context.Context, req control.KeyCreate) (any, error) {
	now := s.cfg.Controller.Now()
	if err := req.Check(now); err != nil {
		return nil, err
	}
	k := control.APIKey{ID: req.ID, Tenant: req.Tenant, Roles: req.Roles, Name: req.Name, Created: now, By: req.By, Expires: req.Expires}
	err := s.cfg.Catalog.CreateKey(ctx, control.StoredKey{APIKey: k, Hash: req.Hash})
	if errors.Is(err, messages.ErrRevision) {
		return nil, conflict("there is a key " + req.ID + " already")
	}
	if err != nil {
		return nil, err
	}
	s.cfg.Log.InfoContext(ctx, "API key created", "key", k.ID, "tenant", k.Tenant, "roles", k.Roles, "by", k.By)
	return k, nil
}

func (s *Service) listKeys(ctx context.Context, req control.KeyListRequest) (any, error) {
	list, more, err := s.cfg.Catalog.Keys(ctx, req.Tenant)
	return control.KeyList{Keys: list, More: more}, err
}

func (s *Service) revokeKey(ctx context.Context, req control.KeyRevoke) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	if req.Tenant != "" {
		switch k, ok, err := s.cfg.Catalog.Key(ctx, req.ID); {
		case err != nil:
			return nil, err
		case !ok || k.Tenant != req.Tenant:
			return nil, missing(messages.CodeNotFound, errors.New("no such key"))
		}
	}
	c, changed, err := s.cfg.Catalog.RevokeKey(ctx, req.ID, req.By)
	switch {
	case err != nil:
		return nil, err
	case c.Revision == 0: // there never was one; revoking one twice is no mistake
		return nil, missing(messages.CodeNotFound, errors.New("no such key"))
	}
	if changed {
		s.cfg.Log.InfoContext(ctx, "API key revoked", "key", c.Name, "by", c.By)
	}
	return c, nil
}
