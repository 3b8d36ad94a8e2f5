package admin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// fleets are the commands about workers, and about what is queued or paused for them.
type fleets struct{ *conn.Caller }

func (c fleets) workersCommand() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "workers", Short: "List the workers", Args: cobra.NoArgs,
		Long: "List the workers that answer within half a second.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Fleet().Workers(cmd.Context())
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{})
				case output.JSON:
					return conn.WriteLines(c.Caller, cmd, list)
				case len(list) == 0:
					return render.Write(cmd.ErrOrStderr(), "no worker answers: start one with `longshore worker`\n")
				default:
					return writeWorkers(cmd.OutOrStdout(), list, c.Options.Now())
				}
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func (c fleets) drainCommand() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "drain WORKER", Short: "Drain a worker: hand its runs back and end it",
		Long: "Drain one worker, given by name or id: it takes nothing new, hands its runs back after their step, and ends. Its runs continue\n" +
			"on other workers. The worker inside `longshore dev` ends without its fleet.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs the name or id of one worker, got %d arguments", len(args))
			}
			if err := (control.WorkerDrain{Worker: args[0]}).Check(); err != nil {
				return render.Misuse(err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				w, err := client.Fleet().Drain(cmd.Context(), args[0])
				switch {
				case err != nil:
					return explainWorker(err, args[0])
				case output.JSON:
					return c.WriteJSON(cmd, w)
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("worker %s drains: it hands back %s\n", render.Visible(w.Name), render.Count(int64(w.Held), "run")))
				}
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func explainWorker(err error, name string) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoWorker):
		return render.Worded(render.Visible(fmt.Sprintf("no worker %s: see `longshore workers`", name)), err)
	case errors.Is(err, dispatcher.ErrManyWorkers):
		return render.Worded(render.Visible(fmt.Sprintf("several workers have the name %s: say the id of one, see `longshore workers`", name)), err)
	default:
		return render.Explain(err, messages.Ref{})
	}
}

func writeWorkers(w io.Writer, list []messages.WorkerStatus, now time.Time) error {
	table := render.NewTable(w)
	table.Row("NAME", "ID", "HOST", "VERSION", "BUSY", "SLOTS", "HELD", "SINCE", "STATE", "LABELS", "TOOLS")
	for _, s := range list {
		state := "works"
		switch {
		case s.Draining:
			state = "drains"
		case s.Memory != nil && s.Memory.Waiting > 0:
			state = fmt.Sprintf("%d wait for memory", s.Memory.Waiting)
		}
		table.Row(s.Name, s.ID, cmp.Or(s.Host, "-"), cmp.Or(s.Version, "-"), strconv.Itoa(s.Busy), strconv.Itoa(s.Slots),
			strconv.Itoa(s.Held), render.Span(now.Sub(s.Since))+" ago", state,
			cmp.Or(s.Labels.String(), "-"), cmp.Or(strings.Join(s.Tools, ","), "-"))
	}
	return table.Flush()
}
