package fleet

import (
	"slices"
	"strings"

	"github.com/longshore-run/longshore/deploy/settings"
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
