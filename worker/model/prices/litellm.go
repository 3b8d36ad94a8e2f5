package prices

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxImport bounds a file that is imported, in bytes.
const MaxImport = 16 << 20

// anthropicFamily is the one family that is not OpenAI's: whatever else LiteLLM lists is reached by OpenAI's protocol.
const (
	anthropicFamily = "anthropic"
	openaiFamily    = "openai"
)

// liteLLM is what we read of an entry of LiteLLM's model_prices_and_context_window.json. Whatever else it holds is
// theirs; amounts are US dollars per token.
type liteLLM struct {
	Provider   string   `json:"litellm_provider"`
	Mode       string   `json:"mode"`
	Input      *float64 `json:"input_cost_per_token"`
	Output     *float64 `json:"output_cost_per_token"`
	CacheRead  *float64 `json:"cache_read_input_token_cost"`
	CacheWrite *float64 `json:"cache_creation_input_token_cost"`
	Reasoning  *float64 `json:"output_cost_per_reasoning_token"`
}

// Import makes a file of the chat models of some providers in LiteLLM's model_prices_and_context_window.json. The
// providers are LiteLLM's names. Left out, and counted, is what cannot be read or has no price, and a model that two of
// the providers sell at different prices: replies do not say whose it was.
func Import(data []byte, providers []string, date, source string) (f *File, left int, err error) {
	if len(data) > MaxImport {
		return nil, 0, fmt.Errorf("larger than %d bytes", MaxImport)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, 0, errors.New("not the JSON object that LiteLLM's model_prices_and_context_window.json is")
	}
	byName := map[[2]string]*Price{}
	clash := map[[2]string]bool{}
	for name, raw := range entries {
		if name == "sample_spec" { // explains the others
			continue
		}
		var e liteLLM
		if json.Unmarshal(raw, &e) != nil {
			left++
			continue
		}
		if !slices.Contains(providers, e.Provider) || e.Mode != "chat" && e.Mode != "responses" {
			continue
		}
		p := e.price(name)
		if p == nil {
			left++
			continue
		}
		key := [2]string{p.Provider, p.Models[0]}
		if other := byName[key]; other != nil && !same(other, p) {
			clash[key] = true
		}
		byName[key] = p
	}
	f = &File{Version: Version, Currency: Currency, Date: date, Source: source, Prices: []Price{}}
	for key, p := range byName {
		if clash[key] {
			left++
			continue
		}
		f.Prices = append(f.Prices, *p)
	}
	slices.SortFunc(f.Prices, func(a, b Price) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Models[0], b.Models[0]))
	})
	return f, left, f.check()
}

// price is nil when the entry has none.
func (e *liteLLM) price(name string) *Price {
	if e.Input == nil || e.Output == nil {
		return nil
	}
	p := Price{
		Provider: openaiFamily, Models: []string{strings.TrimPrefix(name, e.Provider+"/")},
		Input: perMillion(e.Input), Output: perMillion(e.Output), CacheRead: perMillion(e.CacheRead),
		CacheWrite: perMillion(e.CacheWrite), Reasoning: perMillion(e.Reasoning),
	}
	if e.Provider == anthropicFamily {
		p.Provider = anthropicFamily
	}
	if p.check("", map[[2]string]bool{}) != nil || strings.HasSuffix(name, "*") {
		return nil
	}
	return &p
}

// perMillion takes out the noise of a multiplication of small numbers.
func perMillion(usd *float64) *float64 {
	if usd == nil {
		return nil
	}
	const million, digits = 1e6, 1e9
	return new(math.Round(*usd*million*digits) / digits)
}

func same(a, b *Price) bool {
	equal := func(x, y *float64) bool { return x == y || x != nil && y != nil && *x == *y }
	return equal(a.Input, b.Input) && equal(a.Output, b.Output) && equal(a.CacheRead, b.CacheRead) &&
		equal(a.CacheWrite, b.CacheWrite) && equal(a.Reasoning, b.Reasoning)
}
