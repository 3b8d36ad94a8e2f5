//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is imported can be listed and used; what cannot be read is named.
func TestPrices(t *testing.T) {
	dir := t.TempDir()
	lite, out, bad := filepath.Join(dir, "lite.json"), filepath.Join(dir, "out.json"), filepath.Join(dir, "bad.yaml")
	for name, data := range map[string]string{
		lite: `{"gpt-x":{"litellm_provider":"openai","mode":"chat","input_cost_per_token":2.5e-06,"output_cost_per_token":1e-05}}`,
		bad:  "version: 1\ncurrency: USD\ndate: 2026-01-02\nsource: x\nprices:\n- {provider: p, models: [m], input: 1}\n",
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := call(t, nil, "prices", "import", lite, "-o", out); got.code != 0 || got.stderr != "1 model priced, 0 left out\n" {
		t.Errorf("import: %+v", got)
	}
	got := call(t, []string{"LONGSHORE_PRICES=" + out}, "prices", "list")
	if got.code != 0 || !strings.Contains(got.stdout, "gpt-x") || !strings.Contains(got.stdout, "claude-sonnet-4-5") {
		t.Errorf("list: %+v", got)
	}
	got = call(t, []string{"LONGSHORE_PRICES=" + out}, "prices", "list", "-o", "json")
	first, rest, _ := strings.Cut(got.stdout, "\n")
	type price struct {
		Provider, Currency, Date, Source string
		Models                           []string
		Input, Output                    float64
		CacheRead, CacheWrite, Reasoning *float64
	}
	p := decode[price](t, first+"\n")
	if got.code != 0 || p.Provider != "openai" || !slices.Equal(p.Models, []string{"gpt-x"}) || p.Input != 2.5 || p.Output != 10 || p.CacheRead != nil ||
		p.Currency != "USD" || p.Date == "" || !strings.HasPrefix(p.Source, "LiteLLM") || !strings.Contains(rest, "claude-sonnet-4-5") {
		t.Errorf("list: %+v, %+v", p, got)
	}
	for line := range strings.Lines(rest) {
		decode[price](t, line)
	}
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"no such file":       {nil, []string{"prices", "import", filepath.Join(dir, "none")}, "no such file"},
		"not LiteLLM's":      {nil, []string{"prices", "import", bad}, "model_prices_and_context_window.json"},
		"a bad table":        {[]string{"LONGSHORE_PRICES=" + bad}, []string{"prices", "list"}, "LONGSHORE_PRICES: prices[0].output: is missing"},
		"a bad table to run": {[]string{"LONGSHORE_PRICES=" + bad}, []string{"run", "hello"}, "LONGSHORE_PRICES: prices[0].output: is missing"},
		"a strange output":   {nil, []string{"prices", "list", "-o", "yaml"}, "text or json"},
		"no file named":      {nil, []string{"prices", "import"}, "arg"},
	} {
		if got := call(t, tc.env, tc.args...); got.code != 2 || !strings.Contains(got.stderr, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
