package keyset

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/strict"
)

func destroyCommand(cfg Config) *cobra.Command {
	var by string
	var sure bool
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "destroy TENANT", Short: "Destroy the key of a tenant: what it encrypts can never be read again",
		Long: "Destroy the key of a tenant. Its logs, files and memory can never be read again, nor can backups of NATS that are made later.\n" +
			"Processes may use the key for a minute more. The tenant can run nothing until `longshore keys renew TENANT`.",
		Args: oneTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !sure {
				return render.Usagef("--yes is missing: this cannot be undone")
			}
			return over(cmd, cfg, func(ctx context.Context, k *keyring.Keyring, _ *keyring.Master) error {
				if err := k.Destroy(ctx, args[0], by); err != nil {
					return err
				}
				return done(cmd, cfg, *asJSON, map[string]string{"destroyed": args[0]}, fmt.Sprintf("the key of tenant %s is destroyed\n", args[0]))
			})
		},
	}
	asJSON = render.OutputFlag(cmd)
	cmd.Flags().StringVar(&by, "by", "", "your name, which is stored with it")
	cmd.Flags().BoolVar(&sure, "yes", false, "do it; it cannot be undone")
	return cmd
}

func renewCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "renew TENANT", Short: "Give a tenant whose key was destroyed a new one",
		Long: "Give a tenant whose key was destroyed a new one, for new values. What the old one encrypts stays unreadable.",
		Args: oneTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			return over(cmd, cfg, func(ctx context.Context, k *keyring.Keyring, _ *keyring.Master) error {
				if err := k.Renew(ctx, args[0]); err != nil {
					return err
				}
				return done(cmd, cfg, *asJSON, map[string]string{"renewed": args[0]}, fmt.Sprintf("tenant %s has a key\n", args[0]))
			})
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// done says what a command did, as JSON or as text.
func done(cmd *cobra.Command, cfg Config, asJSON bool, v any, text string) error {
	if asJSON {
		return render.WriteJSON(cmd, v, cfg.Raw)
	}
	return render.Write(cmd.OutOrStdout(), text)
}

// oneTenant wants one argument, the name of a tenant.
func oneTenant(_ *cobra.Command, args []string) error {
	if len(args) != 1 || !strict.ValidToken(args[0]) {
		return render.Usagef("needs the name of one tenant: 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	return nil
}
