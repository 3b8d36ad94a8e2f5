package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/prices"
	"github.com/longshore-run/longshore/worker/runner"
)

// priced is a price table that also knows which model a name stands for.
type priced struct {
	*prices.Table

	models settings.Models
}

var _ runner.Prices = priced{}

// priceTable reads the operator's prices. Its error names the variable.
func priceTable(s settings.Models) (priced, error) {
	t, err := prices.Load(s.Prices)
	if err != nil {
		return priced{}, settings.Errorf("LONGSHORE_PRICES: %v", err)
	}
	return priced{t, s}, nil
}

// Cost implements runner.Prices.
func (p priced) Cost(provider, model string, u messages.Usage) (usd float64, ok bool) {
	if provider == "" {
		provider, model = p.named(model)
	}
	return p.Table.Cost(provider, model, u)
}

// named is the family and the model behind the name that an agent gives; the router finds the same.
func (p priced) named(name string) (provider, model string) {
	all := p.models.Providers()
	find := func(named string) *settings.Provider {
		i := slices.IndexFunc(all, func(p settings.Provider) bool { return p.Name == named })
		if i < 0 {
			return nil
		}
		return &all[i]
	}
	first, rest, _ := strings.Cut(name, "/")
	if at := find(first); at != nil {
		return at.Kind, or(rest, at.Model)
	}
	if at := find(p.models.Default()); at != nil {
		return at.Kind, or(name, at.Model)
	}
	return settings.KindScripted, name
}

// perMillion is what tokens of an endpoint's model cost.
func (p priced) perMillion(endpoint, model string) (in, out float64, ok bool) {
	family, model := p.named(endpoint + "/" + model)
	found := p.Find(family, model)
	if found == nil || found.Input == nil || found.Output == nil {
		return 0, 0, false
	}
	return *found.Input, *found.Output, true
}

// PricesCommand is `longshore prices`. Getenv is the environment. With raw, JSON is written as it is, for an output that
// is no terminal.
func PricesCommand(getenv func(string) string, raw bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prices", Short: "Show and import the prices of models",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(pricesList(getenv, raw), pricesImport())
	return cmd
}

func pricesList(getenv func(string) string, raw bool) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "list", Short: "Show the prices that a worker with this environment goes by",
		Long: "Show the built-in prices, and those of the file that LONGSHORE_PRICES names. Where both price a model, the file\n" +
			"counts. A model that is not listed has no known price. With -o json each price is a line.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := prices.Load(getenv("LONGSHORE_PRICES"))
			if err != nil {
				return cli.Usagef("LONGSHORE_PRICES: %v", err)
			}
			for _, f := range t.Files() {
				if *asJSON {
					err = writePrices(cmd, f, raw)
				} else {
					err = show(cmd, f)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	asJSON = cli.OutputFlag(cmd)
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
		if err := cli.WriteJSON(cmd, listedPrice{p, f.Currency, f.Date, f.Source}, raw); err != nil {
			return err
		}
	}
	return nil
}

func show(cmd *cobra.Command, f *prices.File) error {
	out := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(out, "%s per million tokens, as of %s, from %s\n\n", f.Currency, f.Date, strconv.QuoteToGraphic(f.Source)); err != nil {
		return fmt.Errorf("print prices: %w", err)
	}
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "PROVIDER\tMODEL\tINPUT\tOUTPUT\tCACHE READ\tCACHE WRITE\tREASONING")
	for i := range f.Prices {
		p := &f.Prices[i]
		for _, m := range p.Models {
			_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(p.Provider), plain(m),
				dollars(p.Input), dollars(p.Output), dollars(p.CacheRead), dollars(p.CacheWrite), dollars(p.Reasoning))
		}
	}
	_, _ = fmt.Fprintln(tw)
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print prices: %w", err)
	}
	return nil
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
		Use: "import FILE", Short: "Make a price file of LiteLLM's model_prices_and_context_window.json",
		Long: "Make a price file for LONGSHORE_PRICES of a copy of LiteLLM's model_prices_and_context_window.json: the chat models\n" +
			"of the providers in --from. Nothing is fetched. Check what it says before you rely on it.",
		Example: "  longshore prices import model_prices_and_context_window.json --from openai,anthropic,groq -o prices.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := cli.ReadFile(cmd, args[0], prices.MaxImport)
			if err != nil {
				return err
			}
			f, left, err := prices.Import(data, from, time.Now().UTC().Format(time.DateOnly), "LiteLLM, model_prices_and_context_window.json")
			if err != nil {
				return cli.Usagef("import %s: %v", args[0], err)
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
			fmt.Fprintf(cmd.ErrOrStderr(), "%d models priced, %d left out\n", len(f.Prices), left)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default: standard output)")
	cmd.Flags().StringSliceVar(&from, "from", []string{"openai", "anthropic"}, "providers to take, as LiteLLM names them")
	return cmd
}
