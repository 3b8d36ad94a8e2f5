// Package keyset has the commands of `longshore keys` that are about the keyset that encrypts what is stored. They stand apart from
// the client commands because they read the keyset and change keysets of tenants on NATS themselves: no dispatcher is asked.
package keyset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// Config is what the process passes to the commands.
type Config struct {
	Environ func() []string
	Raw     bool // the output is no terminal: JSON is written as it is
}

// Commands are those below `longshore keys`.
func Commands(cfg Config) []*cobra.Command {
	return []*cobra.Command{generateCommand(cfg), rotateCommand(cfg), statusCommand(cfg), destroyCommand(cfg), renewCommand(cfg)}
}

// over runs a command on the keysets of tenants, which are on NATS.
func over(cmd *cobra.Command, cfg Config, do func(ctx context.Context, k *keyring.Keyring, m *keyring.Master) error) error {
	environ := cfg.Environ()
	if err := settings.NeedNATS(environ, "the keysets of tenants are on NATS, and only its users may change them"); err != nil {
		return err
	}
	var client settings.Client
	if err := settings.Load(&client, environ); err != nil {
		return err
	}
	var enc settings.Encryption
	if err := settings.Read(&enc, environ); err != nil {
		return err
	}
	if err := enc.CheckEncryption(); err != nil {
		return err
	}
	ring, err := enc.Ring()
	switch {
	case err != nil:
		return err
	case ring.Master == nil:
		return settings.Errorf("LONGSHORE_ENCRYPTION is off: tenants have no keys")
	}
	nc, err := fleet.Connect(cmd.Context(), client.NATS, fleet.Client, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := bus.Open(cmd.Context(), nc, bus.Config{Streams: []string{bus.StreamKeyring}})
	if err != nil {
		return err
	}
	return do(cmd.Context(), keyring.New(b, ring), ring.Master)
}

// tenants are those that have a keyset, or the one that is named.
func tenants(ctx context.Context, k *keyring.Keyring, only string) (names []string, err error) {
	if only != "" {
		return []string{only}, nil
	}
	for t, err := range k.Tenants(ctx) {
		if err != nil {
			return nil, err
		}
		if t.Master != 0 {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// each does something for every tenant, and tells which failed.
func each(names []string, do func(tenant string) error) error {
	var errs []error
	for _, name := range names {
		if err := do(name); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%d of %s: %w", len(errs), render.Count(int64(len(names)), "tenant"), errors.Join(errs...))
	}
	return nil
}
