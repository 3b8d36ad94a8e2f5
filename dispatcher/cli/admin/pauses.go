package admin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// heldFlags are the flags of commands about pauses.
type heldFlags struct {
	output render.Format
	by     string
}

func (f *heldFlags) register(c *conn.Caller, cmd *cobra.Command) {
	cmd.Flags().VarP(&f.output, "output", "o", "text or json")
	cmd.Flags().StringVar(&f.by, "by", c.Options.User, "your name, which is stored with the change")
}

func (c fleets) pause() *cobra.Command {
	var f heldFlags
	var reason string
	cmd := &cobra.Command{
		Use:   "pause [tenant|agent|provider NAME]",
		Short: "Pause a tenant, an agent or a provider",
		Long: "Pause a tenant, an agent or a provider. Within 2 seconds its runs start no further step until it is resumed; steps in\n" +
			"progress end first. Models of a paused provider are not called: runs fall back to another model of their agent, or wait.\n" +
			"Without arguments it lists the pauses.",
		Args: pausable(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				if len(args) == 0 {
					list, err := client.Fleet().Pauses(cmd.Context())
					switch {
					case err != nil:
						return render.OneLine(err)
					case f.output.JSON:
						return conn.WriteLines(c.Caller, cmd, list.Pauses)
					case len(list.Pauses) == 0:
						return render.Write(cmd.ErrOrStderr(), "nothing is paused\n")
					default:
						return writePauses(cmd.OutOrStdout(), list.Pauses, c.Options.Now())
					}
				}
				p, err := client.Fleet().Pause(cmd.Context(), ofPause(args), f.by, reason)
				switch {
				case errors.Is(err, dispatcher.ErrUnknownAgent):
					return render.Worded(render.Visible(render.UnknownAgent(err)+": see `longshore agents list`"), err)
				case err != nil:
					return render.OneLine(err)
				case f.output.JSON:
					return c.WriteJSON(cmd, p)
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("%s is paused, everywhere within 2 seconds: steps in progress end first. Resume with `longshore resume %s`\n", p.QuotaRef, p.QuotaRef))
				}
			})
		},
	}
	f.register(c.Caller, cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; `longshore why` shows it")
	return cmd
}

func (c fleets) resume() *cobra.Command {
	var f heldFlags
	cmd := &cobra.Command{
		Use: "resume tenant|agent|provider NAME", Short: "Resume a paused tenant, agent or provider",
		Long: "Resume a paused tenant, agent or provider. Its runs continue within 2 seconds.",
		Args: pausable(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				p, err := client.Fleet().Resume(cmd.Context(), ofPause(args), f.by)
				switch {
				case errors.Is(err, dispatcher.ErrNotPaused):
					return render.Worded(render.Visible(fmt.Sprintf("%s is not paused: see `longshore pause`", ofPause(args))), err)
				case err != nil:
					return render.OneLine(err)
				case f.output.JSON:
					return c.WriteJSON(cmd, p)
				default:
					return render.Write(cmd.OutOrStdout(), p.String()+" is resumed, everywhere within 2 seconds\n")
				}
			})
		},
	}
	f.register(c.Caller, cmd)
	return cmd
}

func ofPause(args []string) queue.QuotaRef {
	return queue.QuotaRef{Kind: queue.QuotaKind(args[0]), Name: args[1]}
}

// pausable wants what can be paused.
func pausable(orNothing bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && orNothing:
			return nil
		case len(args) != 2:
			return render.Usagef("needs tenant, agent or provider and its name, got %d arguments", len(args))
		}
		of := ofPause(args)
		if err := of.Check(); err != nil {
			return render.Misuse(err)
		}
		return nil
	}
}

func writePauses(w io.Writer, list []control.PausedThing, now time.Time) error {
	table := render.NewTable(w)
	table.Row("KIND", "NAME", "BY", "SINCE", "REASON")
	for _, p := range list {
		table.Row(string(p.Kind), p.Name, p.By, render.Span(now.Sub(p.At))+" ago", p.Reason)
	}
	return table.Flush()
}

func (c fleets) why() *cobra.Command {
	var s conn.OfRun
	cmd := &cobra.Command{
		Use: "why ID", Short: "Say what a run is waiting for", Long: "Say in one sentence what a run is waiting for, or what it is doing. If it waits for runs to which it delegated, a line follows\n" +
			"for each of them, and for those below. -o json prints the details.",
		Args: s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				y, err := client.Runs().Why(cmd.Context(), run)
				switch {
				case err != nil:
					return render.Explain(err, run)
				case s.Output.JSON:
					return c.WriteJSON(cmd, y)
				default:
					return render.Write(cmd.OutOrStdout(), render.Visible(render.Why(y, c.Options.Now()))+"\n"+whyBelow(y, 1, c.Options.Now()))
				}
			})
		},
	}
	s.Register(cmd)
	return cmd
}

// whyBelow is a line for each run that a run waits for, with a › for each level that it is below.
func whyBelow(y *control.Why, depth int, now time.Time) string {
	var b strings.Builder
	for i := range y.Children {
		child := &y.Children[i]
		fmt.Fprintf(&b, "%s %s: %s\n", strings.Repeat("›", depth), child.ID, render.Visible(render.Why(child, now)))
		b.WriteString(whyBelow(child, depth+1, now))
	}
	return b.String()
}
