package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// heldFlags are the flags of commands about pauses.
type heldFlags struct {
	output format
	by     string
}

func (f *heldFlags) register(c *commands, cmd *cobra.Command) {
	cmd.Flags().VarP(&f.output, "output", "o", "text or json")
	cmd.Flags().StringVar(&f.by, "by", c.options.User, "who does it; it is kept with the change")
}

func (c *commands) pause() *cobra.Command {
	var f heldFlags
	var reason string
	cmd := &cobra.Command{
		Use:   "pause [tenant|agent|provider NAME]",
		Short: "Pause a tenant, an agent or a provider",
		Long: "Pause a tenant, an agent or a provider. Within 2 seconds its runs begin no further step, until it is resumed; steps in hand\n" +
			"end first. Models of a paused provider are not called: runs fall back to another model of their agent, or wait.\n" +
			"Without arguments it lists what is paused.",
		Args: pausable(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				if len(args) == 0 {
					list, err := client.Pauses(cmd.Context())
					switch {
					case err != nil:
						return oneLine(err)
					case f.output.json:
						return writeLines(c, cmd, list.Pauses)
					case len(list.Pauses) == 0:
						return write(cmd.ErrOrStderr(), "nothing is paused\n")
					default:
						return writePauses(cmd.OutOrStdout(), list.Pauses, c.options.Now())
					}
				}
				p, err := client.Pause(cmd.Context(), ofPause(args), f.by, reason)
				switch {
				case errors.Is(err, dispatcher.ErrUnknownAgent):
					return &lineError{visible(unknownAgent(err) + ": see `longshore agents list`"), err}
				case err != nil:
					return oneLine(err)
				case f.output.json:
					return c.writeJSON(cmd, p)
				default:
					return write(cmd.OutOrStdout(), fmt.Sprintf("%s is paused, everywhere within 2 seconds: steps in hand end first. Go on with `longshore resume %s`\n", p.QuotaRef, p.QuotaRef))
				}
			})
		},
	}
	f.register(c, cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; `longshore why` shows it")
	return cmd
}

func (c *commands) resume() *cobra.Command {
	var f heldFlags
	cmd := &cobra.Command{
		Use: "resume tenant|agent|provider NAME", Short: "Resume what is paused",
		Long: "Resume what is paused. Its runs go on within 2 seconds.",
		Args: pausable(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				p, err := client.Resume(cmd.Context(), ofPause(args), f.by)
				switch {
				case errors.Is(err, dispatcher.ErrNotPaused):
					return &lineError{visible(fmt.Sprintf("%s is not paused: see `longshore pause`", ofPause(args))), err}
				case err != nil:
					return oneLine(err)
				case f.output.json:
					return c.writeJSON(cmd, p)
				default:
					return write(cmd.OutOrStdout(), p.String()+" goes on, everywhere within 2 seconds\n")
				}
			})
		},
	}
	f.register(c, cmd)
	return cmd
}

func ofPause(args []string) messages.QuotaRef {
	return messages.QuotaRef{Kind: messages.QuotaKind(args[0]), Name: args[1]}
}

// pausable wants what can be paused.
func pausable(orNothing bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && orNothing:
			return nil
		case len(args) != 2:
			return usagef("needs tenant, agent or provider and its name, got %d arguments", len(args))
		}
		of := ofPause(args)
		if err := of.Check(); err != nil {
			return usage(err)
		}
		return nil
	}
}

func writePauses(w io.Writer, list []messages.PausedThing, now time.Time) error {
	table := newTable(w)
	writeRow(table, "KIND", "NAME", "BY", "SINCE", "REASON")
	for _, p := range list {
		writeRow(table, string(p.Kind), p.Name, p.By, span(now.Sub(p.At))+" ago", p.Reason)
	}
	return flush(table)
}

func (c *commands) why() *cobra.Command {
	var s ofRun
	cmd := &cobra.Command{
		Use: "why ID", Short: "Tell what a run waits for", Long: "Tell in one sentence what a run waits for, or what it does. -o json has the facts.",
		Args: s.one(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				y, err := client.Why(cmd.Context(), run)
				switch {
				case err != nil:
					return explain(err, run)
				case s.output.json:
					return c.writeJSON(cmd, y)
				default:
					return write(cmd.OutOrStdout(), visible(y.Text)+"\n")
				}
			})
		},
	}
	s.register(cmd)
	return cmd
}
