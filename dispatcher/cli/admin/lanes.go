package admin

import (
	"cmp"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func (c fleets) lanes() *cobra.Command {
	var (
		req    control.LanesRequest
		output render.Format
	)
	cmd := &cobra.Command{
		Use: "lanes", Short: "Show what is waiting in the queue",
		Long: "Show what is waiting in the lanes of the queue. Each tenant has one lane per priority; workers take from them in turn.\n" +
			"Wake-ups of waiting runs, of all tenants, come first.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := req.Check(); err != nil {
				return render.Misuse(err)
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Fleet().Lanes(cmd.Context(), req)
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{Tenant: req.Tenant})
				case len(list.Lanes) == 0 && !output.JSON:
					return render.Write(cmd.ErrOrStderr(), "nothing is queued\n")
				case list.More:
					if err := render.Write(cmd.ErrOrStderr(), "there are more than these\n"); err != nil {
						return err
					}
				}
				if output.JSON {
					return conn.WriteLines(c.Caller, cmd, list.Lanes)
				}
				return writeLanes(cmd.OutOrStdout(), list.Lanes, c.Options.Now())
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Tenant, "tenant", "", "only the lanes of this tenant")
	flags.BoolVar(&req.All, "all", false, "also show empty lanes")
	flags.VarP(&output, "output", "o", "text or json")
	return cmd
}

func writeLanes(w io.Writer, list []control.LaneStatus, now time.Time) error {
	table := render.NewTable(w)
	table.Row("PRIORITY", "TENANT", "QUEUED", "IN FLIGHT", "OLDEST")
	for _, l := range list {
		oldest := "-"
		if l.Oldest != nil {
			oldest = render.Span(now.Sub(*l.Oldest)) + " ago"
		}
		table.Row(string(l.Priority), cmp.Or(l.Tenant, "-"), strconv.Itoa(l.Queued), strconv.Itoa(l.InFlight), oldest)
	}
	return table.Flush()
}
