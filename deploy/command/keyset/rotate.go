package keyset

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

func rotateCommand(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate", Short: "Replace the keys that encrypt what is stored, without downtime",
		Long: "Replace keys in steps. Between two of them give the changed file to all dispatchers and workers and restart them, one after\n" +
			"the other:\n\n" +
			"  1. longshore keys rotate add FILE       adds a key, which so far only reads\n" +
			"  2. longshore keys rotate promote FILE   lets the new key write\n" +
			"  3. longshore keys rotate tenants        encrypts the keysets of tenants with it, and gives them new keys\n" +
			"  4. longshore keys rotate retire FILE    removes the old keys\n\n" +
			"Step 3 alone gives tenants new keys at any time, and needs no restart. What old keys of tenants have sealed is still read.",
	}
	cmd.AddCommand(addCommand(cfg), promoteCommand(cfg), tenantsCommand(cfg), retireCommand(cfg))
	return cmd
}

func addCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "add FILE", Short: "Add a key, which so far only reads, to the keyset in a file", Args: render.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := read(args[0])
			if err != nil {
				return err
			}
			next, id, err := m.Add()
			if err == nil {
				err = write(args[0], next, true)
			}
			if err != nil {
				return err
			}
			return tell(cmd, cfg, *asJSON, id)
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

func promoteCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "promote FILE", Short: "Let the newest key of the keyset in a file write", Args: render.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := read(args[0])
			if err != nil {
				return err
			}
			all := m.Keys()
			newest := all[len(all)-1]
			if newest.Writes {
				return render.Usagef("the newest key %s writes already: add one first, with `longshore keys rotate add`", keyring.KeyID(newest.ID))
			}
			next, err := m.Promote(newest.ID)
			if err == nil {
				err = write(args[0], next, true)
			}
			if err != nil {
				return err
			}
			return tell(cmd, cfg, *asJSON, newest.ID)
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

func tenantsCommand(cfg Config) *cobra.Command {
	var tenant string
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "tenants", Short: "Give tenants new keys, encrypted with the key that writes",
		Long: "Give each tenant, or one, a new key that writes, and encrypt its keyset with the key of LONGSHORE_KEYSET that writes. It needs a\n" +
			"NATS user that may change the bucket KEYRING, such as that of a dispatcher.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return over(cmd, cfg, func(ctx context.Context, k *keyring.Keyring, _ *keyring.Master) error {
				names, err := tenants(ctx, k, tenant)
				if err != nil {
					return err
				}
				if err := each(names, func(name string) error { return k.Rotate(ctx, name) }); err != nil {
					return err
				}
				return done(cmd, cfg, *asJSON, map[string]int{"tenants": len(names)}, render.Count(int64(len(names)), "tenant")+" with a new key\n")
			})
		},
	}
	asJSON = render.OutputFlag(cmd)
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant")
	return cmd
}

func retireCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "retire FILE", Short: "Remove the keys that no longer write from the keyset in a file",
		Long: "Remove the keys that do not write, unless the keyset of a tenant is still encrypted with one of them: the command looks in NATS. All\n" +
			"processes must already have the keyset whose new key writes.",
		Args: render.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := read(args[0])
			if err == nil {
				err = fleet.CheckRetire(args[0], m)
			}
			if err != nil {
				return err
			}
			return over(cmd, cfg, func(ctx context.Context, k *keyring.Keyring, _ *keyring.Master) error {
				for t, err := range k.Tenants(ctx) {
					if err != nil {
						return err
					}
					if t.Master != 0 && t.Master != m.Writer() {
						return settings.Errorf("the keyset of tenant %s is encrypted with key %s: run `longshore keys rotate tenants` first", t.Name, keyring.KeyID(t.Master))
					}
				}
				next, gone := m, 0
				for _, key := range m.Keys() {
					if key.Writes {
						continue
					}
					if next, err = next.Retire(key.ID); err != nil {
						return err
					}
					gone++
				}
				if gone == 0 {
					return errors.New("there is no key but the one that writes")
				}
				if err := write(args[0], next, true); err != nil {
					return err
				}
				return done(cmd, cfg, *asJSON, map[string]int{"removed": gone}, "removed "+render.Count(int64(gone), "key")+"\n")
			})
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}
