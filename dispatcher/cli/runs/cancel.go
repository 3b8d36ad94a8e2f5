package runs

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

func (c runs) cancel() *cobra.Command {
	s := conn.OfRun{Changes: true}
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a run",
		Long:  "Ask a run to stop. The request is recorded when this returns; a run that was only queued has ended by then.",
		Args:  s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				status, err := client.Cancel(cmd.Context(), run, reason)
				switch {
				case err != nil:
					return render.Explain(err, run)
				case s.Output.JSON:
					return c.WriteJSON(cmd, status)
				case status.Status.Ended():
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("run %s is %s\n", run.Run, render.Visible(string(status.Status))))
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("run %s was asked to stop: see `%s`\n", run.Run, render.Command("watch", run)))
				}
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; watchers see it")
	return cmd
}
