package runs

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func (c runs) steer() *cobra.Command {
	s := said{OfRun: conn.OfRun{Changes: true}}
	cmd := &cobra.Command{
		Use: "steer RUN TEXT", Short: "Send a message to a run",
		Long: "Send a message to a run, which its model reads before its next call. Nothing in progress is aborted, and a waiting run keeps\n" +
			"waiting. The message is recorded when the command returns.",
		Args: s.Args(1, 1, "the id of a run and what to tell it in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := control.SteerRequest{Message: s.Rest(args)[0], By: cmp.Or(s.by, c.Options.User)}
			return c.WithRun(cmd, &s.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				status, err := client.Steer(cmd.Context(), run, req)
				switch {
				case err != nil:
					return render.Explain(err, run)
				case s.Output.JSON:
					return c.WriteJSON(cmd, status)
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("sent: run %s is %s: see `%s`\n", run.Run, render.Visible(string(status.Status)), render.Command("watch", run)))
				}
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().StringVar(&s.by, "by", "", "your name, which is recorded (default: the user of this process)")
	return cmd
}
