package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// Version is the command `longshore version`.
func Version(version string, raw bool) *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output.json {
				return WriteJSON(cmd, map[string]string{
					"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				}, raw)
			}
			return write(cmd.OutOrStdout(), fmt.Sprintf("longshore %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
		},
	}
	output.register(cmd)
	return cmd
}
