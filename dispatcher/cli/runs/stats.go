package runs

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func (c runs) stats() *cobra.Command {
	var f filter
	var by string
	cmd := &cobra.Command{
		Use: "stats", Short: "Show statistics of the runs of the last 24 hours",
		Long: "Show statistics of runs that have started: how they ended, their cost, how long they took, and why they failed. --by groups\n" +
			"them by agent, model, code, day or status; --by tool shows tool calls.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.limit = 1
			if err := f.check(); err != nil {
				return err
			}
			req := control.StatsRequest{RunsRequest: control.RunsRequest{Tenant: f.Tenant, Search: f.search, Labels: f.labels}, By: control.StatsBy(by)}
			if err := req.Check(); err != nil {
				return render.Misuse(err)
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				stats, err := client.Runs().Stats(cmd.Context(), f.runs(c.Options.Now()), control.StatsBy(by))
				switch {
				case errors.Is(err, dispatcher.ErrNoIndex):
					return render.Worded("the dispatcher keeps no index of runs, or cannot ask it now: see LONGSHORE_INDEX and its log", err)
				case err != nil:
					return render.Explain(err, messages.Ref{Tenant: f.Tenant, Run: "_"})
				case f.Output.JSON:
					return c.WriteJSON(cmd, stats)
				}
				if err := writeStats(cmd.OutOrStdout(), stats); err != nil {
					return err
				}
				return render.Write(cmd.ErrOrStderr(), behindNote(stats.IndexLag, c.Options.Now()))
			})
		},
	}
	f.Register(cmd)
	f.registerFilter(cmd)
	cmd.Flags().StringVar(&by, "by", "", "agent, model, code, day, hour, minute, status or tool")
	return cmd
}

// behindNote says what an answer of the index does not know yet.
func behindNote(lag control.IndexLag, now time.Time) string {
	if lag.Behind == 0 {
		return ""
	}
	if lag.AsOf == nil {
		return fmt.Sprintf("without the last %s: the index is behind\n", render.Count(int64(lag.Behind), "event"))
	}
	return fmt.Sprintf("without the last %s: the index is behind, as of %s\n", render.Count(int64(lag.Behind), "event"), render.At(*lag.AsOf, now))
}

func writeStats(w io.Writer, stats *control.RunStats) error {
	table := render.NewTable(w)
	if stats.By == control.StatsByTool {
		table.Row("TOOL", "CALLS", "ERRORS", "TIME", "RUNS")
		for _, u := range stats.Tools {
			table.Row(render.Truncate(u.Tool, render.ListedToken), number(u.Calls), number(u.Errors), render.Took(time.Duration(u.Millis)*time.Millisecond), number(u.Runs))
		}
		return table.Flush()
	}
	table.Row("", "RUNS", "COMPLETED", "FAILED", "CANCELLED", "SUCCESS", "STEPS", "TOKENS", "COST", "P50", "P95")
	for _, g := range stats.Groups {
		key := g.Key
		if key == "" {
			key = "?"
		}
		table.Row(groupCells(key, &g)...)
	}
	table.Row(groupCells("all", &stats.Total)...)
	return table.Flush()
}

func groupCells(name string, g *control.RunGroup) []string {
	rate := "-"
	if g.SuccessRate != nil {
		rate = fmt.Sprintf("%.1f%%", *g.SuccessRate*100)
	}
	cost := messages.Money(g.Cost)
	if g.Unpriced > 0 {
		cost += "+?" // some is not known
	}
	of := func(s messages.Status) string { return strconv.Itoa(g.Statuses[s]) }
	duration := func(ms *int64) string {
		if ms == nil {
			return "-"
		}
		return render.Took(time.Duration(*ms) * time.Millisecond)
	}
	return []string{
		render.Truncate(name, render.ListedToken), strconv.Itoa(g.Runs), of(messages.StatusCompleted), of(messages.StatusFailed), of(messages.StatusCancelled), rate,
		number(g.Steps), number(g.Tokens), cost, duration(g.P50), duration(g.P95),
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
