package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func (c *commands) cancel() *cobra.Command {
	s := ofRun{changes: true}
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a run",
		Long:  "Ask a run to stop. The request is recorded when this returns; a run that was only queued has ended by then.",
		Args:  s.one(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				status, err := client.Cancel(cmd.Context(), run, reason)
				switch {
				case err != nil:
					return explain(err, run)
				case s.output.json:
					return c.writeJSON(cmd, status)
				case status.Status.Ended():
					return write(cmd.OutOrStdout(), fmt.Sprintf("run %s is %s\n", run.Run, visible(string(status.Status))))
				default:
					return write(cmd.OutOrStdout(), fmt.Sprintf("run %s was asked to stop: see `%s`\n", run.Run, command("watch", run)))
				}
			})
		},
	}
	s.register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; those who watch are shown it")
	return cmd
}
