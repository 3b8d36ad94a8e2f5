package command

import (
	"context"
	"errors"
	"log/slog"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// connect opens a client by the environment.
func (p *Process) connect(ctx context.Context) (*dispatcher.Client, func(), error) {
	var s settings.Client
	if err := settings.Load(&s, p.Environ()); err != nil {
		return nil, nil, err
	}
	if s.API != "" {
		c, err := dispatcher.NewHTTP(s.API, s.Key)
		if field, ok := errors.AsType[*messages.FieldError](err); ok {
			variable := map[string]string{"address": "LONGSHORE_URL", "key": "LONGSHORE_API_KEY"}[field.Field]
			return nil, nil, usageError(variable + ": " + field.Reason)
		}
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
	log := slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	nc, err := fleet.Connect(ctx, s.NATS, fleet.Client, log)
	if err != nil {
		return nil, nil, err
	}
	var c *dispatcher.Client
	if s.Scoped {
		c, err = dispatcher.NewTenant(ctx, nc, s.Tenant)
	} else {
		c, err = dispatcher.New(ctx, nc)
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return c, nc.Close, nil
}

// fleetElsewhere reports whether the environment names a fleet to use, rather than one in this process.
func (p *Process) fleetElsewhere() bool {
	return p.env("NATS_URL") != "" || p.env("LONGSHORE_URL") != ""
}
