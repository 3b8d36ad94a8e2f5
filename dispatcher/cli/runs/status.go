package runs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// width of a card; it is a flag.
type cardFormat struct {
	render.Format

	wide bool
}

// String implements pflag.Value.
func (f *cardFormat) String() string {
	if f.wide {
		return "wide"
	}
	return f.Format.String()
}

// Set implements pflag.Value.
func (f *cardFormat) Set(s string) error {
	f.wide = s == "wide"
	if f.wide {
		f.JSON = false
		return nil
	}
	if f.Format.Set(s) != nil {
		return errors.New("must be text, wide or json")
	}
	return nil
}

func (c runs) status() *cobra.Command {
	var s conn.OfRun
	var output cardFormat
	cmd := &cobra.Command{
		Use: "status ID", SuggestFor: []string{"show", "get", "describe", "inspect"},
		Short: "Show a run at a glance: what it is doing or waiting for, or how it ended",
		Long: "Show a run at a glance: its agent and input, what it is doing or waiting for, how it ended, its cost and its files.\n" +
			"-o wide adds its tokens, models, times and tool calls; -o json has all of it.",
		Args: s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				card, err := cardOf(cmd.Context(), client, run)
				switch {
				case err != nil:
					return render.Explain(err, run)
				case output.JSON:
					return c.WriteJSON(cmd, card)
				default:
					return c.writeCard(cmd, card, output.wide)
				}
			})
		},
	}
	s.Register(cmd)
	cmd.PersistentFlags().Lookup("output").Value = &output
	cmd.PersistentFlags().Lookup("output").Usage = "text, wide or json"
	return cmd
}

// webhookText describes the state of a webhook.
func webhookText(s *control.WebhookState) string {
	if s.State != control.WebhookDead {
		return string(s.State)
	}
	return fmt.Sprintf("dead after %s: %s", render.Count(int64(s.Attempts), "attempt"), s.LastError)
}
