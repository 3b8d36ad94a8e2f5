package catalog

import (
	"cmp"
	"context"
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
)

// sessions are the commands about sessions.
func sessions(caller *conn.Caller) *cobra.Command {
	n := named[control.SessionStatus]{
		Caller: caller, one: "session", many: "sessions", explain: explainSession, rows: writeSessions, details: writeSession,
		list: func(ctx context.Context, c *dispatcher.Client, tenant string) ([]control.SessionStatus, bool, error) {
			list, err := c.Sessions().List(ctx, tenant)
			if err != nil {
				return nil, false, err
			}
			return list.Sessions, list.More, nil
		},
		get: func(ctx context.Context, c *dispatcher.Client, tenant, name string) (*control.SessionStatus, error) {
			return c.Sessions().Get(ctx, tenant, name)
		},
		remove: func(ctx context.Context, c *dispatcher.Client, tenant, name string) (*control.SessionStatus, error) {
			return c.Sessions().Delete(ctx, tenant, name)
		},
		removed: func(name string, _ *control.SessionStatus) string {
			return fmt.Sprintf("session %s is forgotten\n", name)
		},
	}
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show or forget conversations",
		Long: "List, show or forget sessions. A session is a conversation that spans several runs: those that were submitted\n" +
			"with the same --session.",
	}
	cmd.AddCommand(
		n.listed(&cobra.Command{Use: "list", Short: "List the sessions by name"}),
		n.shown(&cobra.Command{Use: "show NAME", Short: "Show the runs of a session"}),
		n.deleted(&cobra.Command{
			Use: "delete NAME", Short: "Forget a conversation",
			Long: "Forget a conversation: the next run of the session starts a new one, and what long-term memory holds of this session\n" +
				"alone is removed. The logs of its runs stay as long as those of other runs.",
		}),
	)
	return cmd
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

func writeSession(w io.Writer, s *control.SessionStatus, _ time.Time) error {
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
