package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// completeNoFiles keeps file names from being offered for the arguments of commands that take none.
func completeNoFiles(cmd *cobra.Command) {
	_, args, _ := strings.Cut(cmd.Use, " ")
	takesFile := strings.Contains(args, "FILE") || strings.Contains(args, "FOLDER") || strings.Contains(args, ".yaml") || strings.Contains(args, "DIR")
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !takesFile {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}
