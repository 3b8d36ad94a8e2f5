package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const (
	indexLook = 500 * time.Millisecond // how often a rebuild is looked at
	indexTell = 20                     // looks for which there is a line, where there is no terminal
)

// indexes are the commands about the run index.
type indexes struct{ *conn.Caller }

func (c indexes) index() *cobra.Command {
	cmd := &cobra.Command{
		Use: "index", Short: "Show and rebuild the index of runs",
		Long: "Show and rebuild the index of runs. Dispatchers derive it from the events; lists and statistics are read from it.",
	}
	var output render.Format
	cmd.PersistentFlags().VarP(&output, "output", "o", "text or json")
	cmd.AddCommand(&cobra.Command{
		Use: "status", Short: "Show how far the index is", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				s, err := client.Index().Status(cmd.Context())
				switch {
				case err != nil:
					return explainIndex(err)
				case output.JSON:
					return c.WriteJSON(cmd, s)
				}
				return render.Write(cmd.OutOrStdout(), indexLine(s))
			})
		},
	}, &cobra.Command{
		Use: "rebuild", Short: "Rebuild the index from the events, and wait until it is complete",
		Long: "Rebuild the index from the stored events, while the fleet keeps working. Runs whose first events have\n" +
			"expired keep their rows. If you interrupt the command, the dispatchers continue the rebuild.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				s, err := c.rebuildIndex(cmd, client)
				switch {
				case err != nil:
					return explainIndex(err)
				case output.JSON:
					return c.WriteJSON(cmd, s)
				}
				return render.Write(cmd.OutOrStdout(), indexLine(s))
			})
		},
	})
	return cmd
}

func (c indexes) rebuildIndex(cmd *cobra.Command, client *dispatcher.Client) (*control.IndexStatus, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), control.IndexRebuildTime)
	defer cancel()
	if err := client.Index().Rebuild(ctx); err != nil {
		return nil, err
	}
	options := c.Options.WithDefaults()
	bar := &report.Bar{Options: &options, Out: cmd.ErrOrStderr()}
	defer bar.Clear()
	tick := time.NewTicker(indexLook)
	defer tick.Stop()
	for began, n := options.Now(), 0; ; n++ {
		s, err := client.Index().Status(cmd.Context())
		if err != nil || s.Behind == 0 || s.Error != "" {
			return s, err
		}
		text := rebuildProgress(s, options.Now().Sub(began))
		bar.Draw(text)
		if !options.Terminal && n%indexTell == 0 {
			if err := render.Write(cmd.ErrOrStderr(), text+"\n"); err != nil {
				return nil, err
			}
		}
		select {
		case <-tick.C:
		case <-cmd.Context().Done():
			return nil, context.Cause(cmd.Context())
		}
	}
}

// rebuildProgress is how far a rebuild is that began a while ago.
func rebuildProgress(s *control.IndexStatus, since time.Duration) string {
	text := fmt.Sprintf("%s %d of %d events", report.Cells(int(s.Position), int(s.Last)), s.Position, s.Last)
	if since < time.Second || s.Position == 0 {
		return text
	}
	rate := float64(s.Position) / since.Seconds()
	left := time.Duration(float64(s.Behind) / rate * float64(time.Second)).Round(time.Second)
	return text + fmt.Sprintf(", %.0f a second, about %s to go", rate, left)
}

func explainIndex(err error) error {
	if errors.Is(err, dispatcher.ErrNoIndex) {
		return render.Worded("the dispatcher keeps no index of runs, or cannot ask it now: see LONGSHORE_INDEX and its log", err)
	}
	return render.Explain(err, messages.Ref{Tenant: messages.DefaultTenant, Run: "_"})
}

func indexLine(s *control.IndexStatus) string {
	line := fmt.Sprintf("%s: %d runs, %d steps, up to event %d of %d, %d behind\n", s.Kind, s.Runs, s.Steps, s.Position, s.Last, s.Behind)
	if s.Error != "" {
		line += "it is not kept: " + render.Visible(s.Error) + "\n"
	}
	return line
}
