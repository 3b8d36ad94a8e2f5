package prices

import (
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Table prices model calls. It never changes, and is safe for concurrent use.
type Table struct {
	files []layer // the first that has a price for a model decides
}

type layer struct {
	file    *File
	exact   map[[2]string]*Price // by provider and model
	pattern []pattern            // longest prefix first
}

type pattern struct {
	provider, prefix string
	price            *Price
}

func newTable(files ...*File) *Table {
	t := &Table{}
	for _, f := range files {
		l := layer{file: f, exact: map[[2]string]*Price{}}
		for i := range f.Prices {
			p := &f.Prices[i]
			for _, m := range p.Models {
				if prefix, open := strings.CutSuffix(m, "*"); open {
					l.pattern = append(l.pattern, pattern{p.Provider, prefix, p})
				} else {
					l.exact[[2]string{p.Provider, m}] = p
				}
			}
		}
		slices.SortStableFunc(l.pattern, func(a, b pattern) int { return len(b.prefix) - len(a.prefix) })
		t.files = append(t.files, l)
	}
	return t
}

// Files are those that the table is made of; of two that price a model the first counts.
func (t *Table) Files() []*File {
	out := make([]*File, len(t.files))
	for i := range t.files {
		out[i] = t.files[i].file
	}
	return out
}

// Find is the price of a model, nil when it is unknown. Names are compared as they are written; an exact one goes
// before a pattern, and a longer pattern before a shorter one.
func (t *Table) Find(provider, model string) *Price {
	for i := range t.files {
		l := &t.files[i]
		if p := l.exact[[2]string{provider, model}]; p != nil {
			return p
		}
		for _, p := range l.pattern {
			if p.provider == provider && strings.HasPrefix(model, p.prefix) {
				return p.price
			}
		}
	}
	return nil
}

// Cost is what a call with this usage cost, in US dollars, rounded to a billionth. False: the price is unknown, or the
// provider did not say what was used of a model that costs something.
func (t *Table) Cost(provider, model string, u messages.Usage) (usd float64, ok bool) {
	p := t.Find(provider, model)
	if p == nil {
		return 0, false
	}
	if u.Input <= 0 && u.Output <= 0 && !p.free() {
		return 0, false
	}
	cacheRead, cacheWrite := max(u.CacheRead, 0), max(u.CacheWrite, 0)
	reasoning := min(max(u.Reasoning, 0), max(u.Output, 0))
	sum := float64(max(u.Input-cacheRead-cacheWrite, 0))**p.Input +
		float64(cacheRead)*or(p.CacheRead, p.Input) + float64(cacheWrite)*or(p.CacheWrite, p.Input) +
		float64(max(u.Output, 0)-reasoning)**p.Output + float64(reasoning)*or(p.Reasoning, p.Output)
	const million = 1e6
	return messages.RoundCost(sum / million), true
}

func (p *Price) free() bool {
	for _, usd := range []*float64{p.Input, p.Output, p.CacheRead, p.CacheWrite, p.Reasoning} {
		if usd != nil && *usd != 0 {
			return false
		}
	}
	return true
}

func or(usd, instead *float64) float64 {
	if usd == nil {
		return *instead
	}
	return *usd
}
