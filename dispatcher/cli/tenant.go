package cli

import "github.com/spf13/cobra"

// ofTenant makes a tenant the default of all --tenant flags; an empty one changes nothing.
func ofTenant(tenant string, commands []*cobra.Command) []*cobra.Command {
	if tenant == "" {
		return commands
	}
	for _, cmd := range commands {
		if f := cmd.PersistentFlags().Lookup("tenant"); f != nil {
			f.DefValue = tenant
			_ = f.Value.Set(tenant) // a string takes any
		}
		ofTenant(tenant, cmd.Commands())
	}
	return commands
}
