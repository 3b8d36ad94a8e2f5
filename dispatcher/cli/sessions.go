package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

func (c *commands) sessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show or forget conversations",
		Long: "List, show or forget sessions. A session is a conversation that goes on over several runs: those that were submitted\n" +
			"with the same --session.",
	}
	cmd.AddCommand(c.listSessions(), c.showSession(), c.deleteSession())
	return cmd
}

func (c *commands) listSessions() *cobra.Command {
	var s shared
	cmd := &cobra.Command{
		Use: "list", Short: "List the sessions by name", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Sessions(cmd.Context(), s.tenant)
				switch {
				case err != nil:
					return explain(err, messages.Ref{Tenant: s.tenant})
				case len(list.Sessions) == 0 && !s.output.json:
					return write(cmd.ErrOrStderr(), fmt.Sprintf("no sessions of tenant %s\n", s.tenant))
				case list.More:
					if err := write(cmd.ErrOrStderr(), "there are more than these\n"); err != nil {
						return err
					}
				}
				if s.output.json {
					return writeLines(c, cmd, list.Sessions)
				}
				return writeSessions(cmd.OutOrStdout(), list.Sessions, c.options.Now())
			})
		},
	}
	s.register(cmd)
	return cmd
}

func (c *commands) showSession() *cobra.Command {
	var s shared
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show the runs of a session", Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				found, err := client.Session(cmd.Context(), s.tenant, args[0])
				switch {
				case err != nil:
					return explainSession(err, s.tenant, args[0])
				case s.output.json:
					return c.writeJSON(cmd, found)
				default:
					return writeSession(cmd.OutOrStdout(), found)
				}
			})
		},
	}
	s.register(cmd)
	return cmd
}

func (c *commands) deleteSession() *cobra.Command {
	var s shared
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Forget a conversation",
		Long: "Forget a conversation: the next run of the session begins a new one. The logs of its runs stay as long as those of other\n" +
			"runs.",
		Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				was, err := client.DeleteSession(cmd.Context(), s.tenant, args[0])
				switch {
				case err != nil:
					return explainSession(err, s.tenant, args[0])
				case s.output.json:
					return c.writeJSON(cmd, was)
				default:
					return write(cmd.OutOrStdout(), fmt.Sprintf("session %s is forgotten\n", visible(args[0])))
				}
			})
		},
	}
	s.register(cmd)
	return cmd
}

// oneSession wants the name of a session.
func oneSession(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("needs the name of one session, got %d arguments", len(args))
	}
	if !strict.ValidToken(args[0]) {
		return usagef("the name of a session is 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	return nil
}

func explainSession(err error, tenant, name string) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoSession):
		return &lineError{visible(fmt.Sprintf("no session %s of tenant %s: see `longshore sessions list`", name, tenant)), err}
	case errors.Is(err, dispatcher.ErrSessionBusy):
		return &lineError{visible(fmt.Sprintf("session %s has runs that have not ended: see `longshore sessions show %s`", name, name)), err}
	default:
		return explain(err, messages.Ref{Tenant: tenant})
	}
}

func writeSessions(w io.Writer, list []messages.SessionStatus, now time.Time) error {
	table := newTable(w)
	writeRow(table, "NAME", "TURN", "WAITING", "ENDED", "UPDATED")
	for _, s := range list {
		writeRow(table, s.Name, cmp.Or(s.Turn, "-"), strconv.Itoa(s.Queue), strconv.Itoa(s.Turns), span(now.Sub(s.Updated))+" ago")
	}
	return flush(table)
}

func writeSession(w io.Writer, s *messages.SessionStatus) error {
	table := newTable(w)
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
		writeRow(table, row[:]...)
	}
	return flush(table)
}
