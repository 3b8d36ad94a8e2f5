package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func (c *commands) steer() *cobra.Command {
	s := said{ofRun: ofRun{changes: true}}
	cmd := &cobra.Command{
		Use: "steer RUN TEXT", Short: "Tell a run something",
		Long: "Tell a run something that its model reads before its next call. What goes on is not aborted, and a run that waits goes on\n" +
			"waiting. It is recorded when this returns.",
		Args: s.args(1, 1, "the id of a run and what to tell it in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := messages.SteerRequest{Message: s.rest(args)[0], By: cmp.Or(s.by, c.options.User)}
			return c.withRun(cmd, &s.ofRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				status, err := client.Steer(cmd.Context(), run, req)
				switch {
				case err != nil:
					return explain(err, run)
				case s.output.json:
					return c.writeJSON(cmd, status)
				default:
					return write(cmd.OutOrStdout(), fmt.Sprintf("told: run %s is %s: see `%s`\n", run.Run, visible(string(status.Status)), command("watch", run)))
				}
			})
		},
	}
	s.register(cmd)
	cmd.Flags().StringVar(&s.by, "by", "", "who says it; it is recorded (default: the user of this process)")
	return cmd
}
