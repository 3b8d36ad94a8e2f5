package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// sessions are the commands about sessions.
type sessions struct{ *conn.Caller }

func (c sessions) sessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show or forget conversations",
		Long: "List, show or forget sessions. A session is a conversation that spans several runs: those that were submitted\n" +
			"with the same --session.",
	}
	cmd.AddCommand(c.listSessions(), c.showSession(), c.deleteSession())
	return cmd
}

func (c sessions) listSessions() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "list", Short: "List the sessions by name", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Sessions().List(cmd.Context(), s.Tenant)
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{Tenant: s.Tenant})
				case len(list.Sessions) == 0 && !s.Output.JSON:
					return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no sessions of tenant %s\n", s.Tenant))
				case list.More:
					if err := render.Write(cmd.ErrOrStderr(), "there are more than these\n"); err != nil {
						return err
					}
				}
				if s.Output.JSON {
					return conn.WriteLines(c.Caller, cmd, list.Sessions)
				}
				return writeSessions(cmd.OutOrStdout(), list.Sessions, c.Options.Now())
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (c sessions) showSession() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show the runs of a session", Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				found, err := client.Sessions().Get(cmd.Context(), s.Tenant, args[0])
				switch {
				case err != nil:
					return explainSession(err, s.Tenant, args[0])
				case s.Output.JSON:
					return c.WriteJSON(cmd, found)
				default:
					return writeSession(cmd.OutOrStdout(), found)
				}
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (c sessions) deleteSession() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Forget a conversation",
		Long: "Forget a conversation: the next run of the session starts a new one. The logs of its runs stay as long as those of other\n" +
			"runs.",
		Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				was, err := client.Sessions().Delete(cmd.Context(), s.Tenant, args[0])
				switch {
				case err != nil:
					return explainSession(err, s.Tenant, args[0])
				case s.Output.JSON:
					return c.WriteJSON(cmd, was)
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("session %s is forgotten\n", render.Visible(args[0])))
				}
			})
		},
	}
	s.Register(cmd)
	return cmd
}

// oneSession wants the name of a session.
func oneSession(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return render.Usagef("needs the name of one session, got %d arguments", len(args))
	}
	if !strict.ValidToken(args[0]) {
		return render.Usagef("the name of a session is 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	return nil
}

func explainSession(err error, tenant, name string) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoSession):
		return render.Worded(render.Visible(fmt.Sprintf("no session %s of tenant %s: see `longshore sessions list`", name, tenant)), err)
	case errors.Is(err, dispatcher.ErrSessionBusy):
		return render.Worded(render.Visible(fmt.Sprintf("session %s has runs that have not ended: see `longshore sessions show %s`", name, name)), err)
	default:
		return render.Explain(err, messages.Ref{Tenant: tenant})
	}
}

func writeSessions(w io.Writer, list []control.SessionStatus, now time.Time) error {
	table := render.NewTable(w)
	table.Row("NAME", "TURN", "WAITING", "ENDED", "UPDATED")
	for _, s := range list {
		table.Row(s.Name, cmp.Or(s.Turn, "-"), strconv.Itoa(s.Queue), strconv.Itoa(s.Turns), render.Span(now.Sub(s.Updated))+" ago")
	}
	return table.Flush()
}

func writeSession(w io.Writer, s *control.SessionStatus) error {
	table := render.NewTable(w)
	rows := make([][2]string, 0, len(s.Ended)+len(s.Waiting)+1)
	for _, id := range s.Ended {
		rows = append(rows, [2]string{"ended", id})
	}
	if s.Turn != "" {
		rows = append(rows, [2]string{"turn", s.Turn})
	}
	for _, id := range s.Waiting {
		rows = append(rows, [2]string{"waiting", id})
	}
	for _, row := range rows {
		table.Row(row[:]...)
	}
	return table.Flush()
}
