// Package memory is the commands `longshore memory import` and `longshore memory quality`. It stands apart from the client commands because it
// links what reads documents, and the memory of workers.
package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/worker/memory/embedding"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/memory/longterm/quality"
)

// Quality is `longshore memory quality`, with the environment of the process.
func Quality(environ func() []string) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "quality", Short: "Show how often a search finds the document that answers",
		Long: "Store documents of an invented shipping company in the process, ask questions about them by words, by vector and by both,\n" +
			"and show how often the document that answers is among the first five. The vectors come from LONGSHORE_EMBEDDINGS_MODEL,\n" +
			"which is asked for about 320 short texts, or without it from the rules of the built-in model scripted.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.LongTerm
			if err := settings.Load(&s, environ()); err != nil {
				return err
			}
			by, shut, err := fleet.Embedder(s)
			if err != nil {
				return err
			}
			defer shut()
			if by == nil || s.EmbeddingsModel == settings.EmbeddingsScripted {
				by = embedding.NewScripted(quality.Texts()...)
			}
			store := memstore.New(memstore.Config{})
			report, err := quality.Measure(cmd.Context(), store, longterm.Place{Tenant: "quality", Collection: "quality"}, by)
			if err != nil {
				return err
			}
			if *asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			return show(cmd, report)
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

func show(cmd *cobra.Command, report quality.Report) error {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%d documents, %d questions, vectors of %s: recall at %d\n\n", report.Documents, report.Questions, report.Model, quality.Top)
	table := render.NewTable(w)
	kinds := slices.Sorted(maps.Keys(report.Results[0].Kinds))
	header := []string{"SEARCH", "ALL"}
	for _, kind := range kinds {
		header = append(header, kind+" ("+strconv.Itoa(report.Results[0].Kinds[kind].Asked)+")")
	}
	table.Row(header...)
	rate := func(r quality.Recall) string { return strconv.FormatFloat(r.Rate(), 'f', 3, 64) }
	for _, r := range report.Results {
		row := []string{r.Way, rate(r.All)}
		for _, kind := range kinds {
			row = append(row, rate(r.Kinds[kind]))
		}
		table.Row(row...)
	}
	return table.Flush()
}
