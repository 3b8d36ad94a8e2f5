package cli_test

import (
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
)

// A tenant in the options is the default of every command, and a flag is stronger.
func TestTenantOfCommands(t *testing.T) {
	connect := func(context.Context) (*dispatcher.Client, func(), error) { return nil, nil, errors.New("no") }
	var look func(all []*cobra.Command) int
	look = func(all []*cobra.Command) (n int) {
		for _, cmd := range all {
			if f := cmd.PersistentFlags().Lookup("tenant"); f != nil {
				n++
				if f.Value.String() != "acme" || f.DefValue != "acme" || f.Changed {
					t.Errorf("%s: %s, %s, %t", cmd.Name(), f.Value, f.DefValue, f.Changed)
				}
			}
			n += look(cmd.Commands())
		}
		return n
	}
	if look(cli.Commands(connect, report.Options{Tenant: "acme"})) == 0 {
		t.Error("no command has a tenant")
	}
	for _, cmd := range cli.Commands(connect) {
		if f := cmd.PersistentFlags().Lookup("tenant"); f != nil && f.Value.String() != "default" {
			t.Errorf("%s: %s without one", cmd.Name(), f.Value)
		}
	}
}
