package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// Version is the command `longshore version`.
func Version(version string, raw bool) *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output.JSON {
				return render.WriteJSON(cmd, map[string]string{
					"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				}, raw)
			}
			return render.Write(cmd.OutOrStdout(), fmt.Sprintf("longshore %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
		},
	}
	output.Register(cmd)
	return cmd
}
