package runs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/strict"
)

func (c runs) logs() *cobra.Command {
	var s conn.OfRun
	var o dispatcher.LogOptions
	var level string
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show what processes logged about a run",
		Long: "Show what workers and dispatchers logged about a run: calls that failed and were retried, waits, workers that\n" +
			"were lost. The normal course of a run is logged only at the level debug, if LONGSHORE_LOG_LEVEL of the workers is\n" +
			"debug; use `longshore watch` to follow it. With -o json each entry is one line.",
		Example: "  longshore logs 01JD0000000000000000000000 -f --level warn",
		Args:    s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Level = logentry.LogLevel(level); level != "" && o.Level.Check() != nil {
				return render.Usagef("--level: must be debug, info, warn or error")
			}
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				return c.showLogs(cmd, client, run, o, s.Output.JSON)
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "follow the log until the run has ended")
	cmd.Flags().StringVar(&level, "level", "", "only entries of this level and above: debug, info, warn or error")
	return cmd
}

func (c runs) showLogs(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, o dispatcher.LogOptions, asJSON bool) error {
	if o.Follow && unknown(cmd, client, run) {
		if err := render.Write(cmd.ErrOrStderr(), fmt.Sprintf("run %s of tenant %s is not known (yet): waiting for it\n", run.Run, run.Tenant)); err != nil {
			return err
		}
	}
	shown := 0
	for e, err := range client.Runs().Logs(cmd.Context(), run, o) {
		if err != nil {
			return report.StoppedWatching(cmd.Context(), err, run)
		}
		shown++
		if asJSON {
			err = c.WriteJSON(cmd, &e)
		} else {
			err = render.Write(cmd.OutOrStdout(), c.logLine(&e.LogEntry)+"\n")
		}
		if err != nil {
			return err
		}
	}
	if shown > 0 {
		return nil
	}
	if _, err := client.Status(cmd.Context(), run); err != nil {
		return render.Explain(err, run)
	}
	return render.Write(cmd.ErrOrStderr(), "no log entries\n")
}

// maxLogValue bounds a value of data on a line, in bytes; -o json has it whole.
const maxLogValue = 400

// logLine formats an entry on one line for people. Its origin is untrusted, so control characters are escaped.
func (c runs) logLine(e *logentry.LogEntry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s:", render.Clock(e.Timestamp, c.Options.Now()), strings.ToUpper(string(e.Level)), e.Component)
	if e.Step > 0 {
		b.WriteString(" step " + strconv.Itoa(e.Step) + ":")
	}
	b.WriteString(" " + e.Message)
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		b.WriteString(" " + key + "=" + strict.Clip(logValue(e.Data[key]), maxLogValue))
	}
	return render.Visible(b.String())
}

// logValue is a value of data: words as they are, other text in quotes.
func logValue(v any) string {
	if s, ok := v.(string); ok && s != "" && !strings.ContainsAny(s, " \t\r\n\"=") {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}
