package command

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/worker/model/prices"
)

// pricesCommand is `longshore prices`.
func (p *Process) pricesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "prices", Short: "Show and import the prices of models",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(p.pricesList(), pricesImport())
	return cmd
}

func (p *Process) pricesList() *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "list", Short: "Show the prices that a worker with this environment uses",
		Long: "Show the built-in prices, and those of the file that LONGSHORE_PRICES names. If both price a model, the file\n" +
			"counts. A model that is not listed has no known price. With -o json each price is one line.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := prices.Load(p.env("LONGSHORE_PRICES"))
			if err != nil {
				return render.Usagef("LONGSHORE_PRICES: %v", err)
			}
			for _, f := range t.Files() {
				if *asJSON {
					err = writePrices(cmd, f, p.raw())
				} else {
					err = showPrices(cmd, f)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// listedPrice is a price as JSON: as its file has it, with what the file says about all of its prices.
type listedPrice struct {
	prices.Price

	Currency string `json:"currency"`
	Date     string `json:"date"`
	Source   string `json:"source"`
}

func writePrices(cmd *cobra.Command, f *prices.File, raw bool) error {
	for _, p := range f.Prices {
		if err := render.WriteJSON(cmd, listedPrice{p, f.Currency, f.Date, f.Source}, raw); err != nil {
			return err
		}
	}
	return nil
}

func showPrices(cmd *cobra.Command, f *prices.File) error {
	out := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(out, "%s per million tokens, as of %s, from %s\n\n", f.Currency, f.Date, strconv.QuoteToGraphic(f.Source)); err != nil {
		return fmt.Errorf("print prices: %w", err)
	}
	table := render.NewTable(out)
	table.Row("PROVIDER", "MODEL", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "REASONING")
	for i := range f.Prices {
		p := &f.Prices[i]
		for _, m := range p.Models {
			table.Row(plain(p.Provider), plain(m),
				dollars(p.Input), dollars(p.Output), dollars(p.CacheRead), dollars(p.CacheWrite), dollars(p.Reasoning))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return render.Write(out, "\n")
}

// plain keeps what a file says from steering a terminal.
func plain(s string) string {
	q := strconv.QuoteToGraphic(s)
	return q[1 : len(q)-1]
}

func dollars(usd *float64) string {
	if usd == nil {
		return "-"
	}
	return strconv.FormatFloat(*usd, 'f', -1, 64)
}

func pricesImport() *cobra.Command {
	var output string
	var from []string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Make a price file from LiteLLM's model_prices_and_context_window.json",
		Long: "Make a price file for LONGSHORE_PRICES from a copy of LiteLLM's model_prices_and_context_window.json: the chat models\n" +
			"of the providers in --from. Nothing is fetched. Check the prices before you rely on them.",
		Example: "  longshore prices import model_prices_and_context_window.json --from openai,anthropic,groq -o prices.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs one file, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := render.ReadFile(cmd, args[0], prices.MaxImport)
			if err != nil {
				return err
			}
			f, left, err := prices.Import(data, from, time.Now().UTC().Format(time.DateOnly), "LiteLLM, model_prices_and_context_window.json")
			if err != nil {
				return render.Usagef("import %s: %v", args[0], err)
			}
			out, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				return fmt.Errorf("encode prices: %w", err)
			}
			out = append(out, '\n')
			if output == "" {
				_, err = cmd.OutOrStdout().Write(out)
			} else {
				err = os.WriteFile(output, out, 0o644) //nolint:gosec // prices are public
			}
			if err != nil {
				return fmt.Errorf("write prices: %w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s priced, %d left out\n", render.Count(int64(len(f.Prices)), "model"), left)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default: standard output)")
	cmd.Flags().StringSliceVar(&from, "from", []string{"openai", "anthropic"}, "providers to take, as LiteLLM names them")
	return cmd
}
