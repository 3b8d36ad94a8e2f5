package keyset

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// status is what is known of the keys of a fleet.
type status struct {
	Keys    []keyStatus    `json:"keys"`
	Tenants []tenantStatus `json:"tenants"`
}

type keyStatus struct {
	Key     string `json:"key"`
	Writes  bool   `json:"writes"`
	Missing bool   `json:"missing,omitempty"` // keysets of tenants need it, and LONGSHORE_KEYSET lacks it
	Tenants int    `json:"tenants"`           // whose keyset is encrypted with it
}

type tenantStatus struct {
	Tenant    string    `json:"tenant"`
	Key       string    `json:"key,omitempty"`
	Made      time.Time `json:"made,omitzero"`
	Destroyed time.Time `json:"destroyed,omitzero"`
}

func statusCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show which key writes, and which tenants have a key", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return over(cmd, cfg, func(ctx context.Context, k *keyring.Keyring, m *keyring.Master) error {
				s, err := look(ctx, k, m)
				if err != nil {
					return err
				}
				if *asJSON {
					return render.WriteJSON(cmd, s, cfg.Raw)
				}
				return s.print(cmd)
			})
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

func look(ctx context.Context, k *keyring.Keyring, m *keyring.Master) (*status, error) {
	s := &status{Tenants: []tenantStatus{}}
	for _, key := range m.Keys() {
		s.Keys = append(s.Keys, keyStatus{Key: keyring.KeyID(key.ID), Writes: key.Writes})
	}
	for t, err := range k.Tenants(ctx) {
		if err != nil {
			return nil, err
		}
		one := tenantStatus{Tenant: t.Name, Made: t.Made}
		if n := len(t.Destroyed); n > 0 {
			one.Destroyed = t.Destroyed[n-1].At
		}
		if t.Master != 0 {
			one.Key = keyring.KeyID(t.Master)
			at := slices.IndexFunc(s.Keys, func(k keyStatus) bool { return k.Key == one.Key })
			if at < 0 {
				s.Keys, at = append(s.Keys, keyStatus{Key: one.Key, Missing: true}), len(s.Keys)
			}
			s.Keys[at].Tenants++
		}
		s.Tenants = append(s.Tenants, one)
	}
	return s, nil
}

func (s *status) print(cmd *cobra.Command) error {
	t := render.NewTable(cmd.OutOrStdout())
	t.Row("KEY", "USE", "TENANTS")
	for _, k := range s.Keys {
		use := "reads"
		switch {
		case k.Writes:
			use = "writes"
		case k.Missing:
			use = "missing"
		}
		t.Row(k.Key, use, strconv.Itoa(k.Tenants))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, one := range s.Tenants {
		if one.Key == "" {
			if err := render.Write(cmd.OutOrStdout(), fmt.Sprintf("the key of tenant %s was destroyed at %s\n", one.Tenant, render.At(one.Destroyed, time.Now()))); err != nil {
				return err
			}
		}
	}
	return nil
}
