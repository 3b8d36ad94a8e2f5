package cli

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func (c *commands) status() *cobra.Command {
	var s shared
	cmd := &cobra.Command{
		Use:   "status ID",
		Short: "Tell what a run is up to",
		Args:  oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := s.ref(args[0])
			if err != nil {
				return err
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				status, err := client.Status(cmd.Context(), run)
				switch {
				case err != nil:
					return explain(err, run)
				case s.output.json:
					return c.writeJSON(cmd, status)
				default:
					return writeStatus(cmd.OutOrStdout(), status, c.options.Now())
				}
			})
		},
	}
	s.register(cmd)
	return cmd
}

func writeStatus(w io.Writer, s *messages.RunStatus, now time.Time) error {
	what := string(s.Status)
	if s.Status == messages.StatusWaiting && s.Waits != "" {
		what += " for " + s.Waits
	}
	if s.NotBefore != nil {
		what = "scheduled until " + s.NotBefore.In(now.Location()).Format(time.RFC3339)
	}
	if s.Cancel {
		what += ", asked to stop"
	}
	if s.Ignored {
		what += " (a decision without a valid signature was ignored)"
	}
	rows := [][2]string{
		{"id", s.ID},
		{"tenant", s.Tenant},
		{"status", what},
		{"updated", fmt.Sprintf("%s (%s ago)", s.Updated.In(now.Location()).Format(time.RFC3339), span(now.Sub(s.Updated)))},
	}
	if s.Cause != nil {
		rows = append(rows, [2]string{"model", fmt.Sprintf("attempt %d failed: %s", s.Cause.Attempt, s.Cause.Text())})
		if s.Until != nil {
			rows = append(rows, [2]string{"next try", s.Until.In(now.Location()).Format(time.RFC3339)})
		}
	}
	if s.Attempt > 0 {
		rows = append(rows, [2]string{"attempt", strconv.Itoa(s.Attempt)})
	}
	if s.Sequence > 0 {
		rows = append(rows, [2]string{"events", strconv.FormatUint(s.Sequence, 10)})
	}
	if s.Webhook != nil {
		rows = append(rows, [2]string{"webhook", webhookText(s.Webhook)})
	}
	table := newTable(w)
	for _, row := range rows {
		if err := writeRow(table, row[:]...); err != nil {
			return err
		}
	}
	return flush(table)
}

// webhookText says what became of a webhook.
func webhookText(s *messages.WebhookState) string {
	if s.State != messages.WebhookDead {
		return string(s.State)
	}
	return fmt.Sprintf("dead after %s: %s", count(int64(s.Attempts), "attempt"), s.LastError)
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func flush(table *tabwriter.Writer) error {
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
