package prices_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/prices"
)

const head = `"version":1,"currency":"USD","date":"2026-01-02","source":"a test"`

func load(t *testing.T, file string) *prices.Table {
	t.Helper()
	name := filepath.Join(t.TempDir(), "prices")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := prices.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCost(t *testing.T) {
	table := load(t, `{`+head+`,"prices":[
		{"provider":"openai","models":["big","big-2*"],"input":2,"output":10,"cacheRead":0.5,"cacheWrite":4,"reasoning":20},
		{"provider":"openai","models":["big-2026"],"input":1,"output":1},
		{"provider":"openai","models":["big-2-small*"],"input":3,"output":3},
		{"provider":"openai","models":["own/*"],"input":0,"output":0},
		{"provider":"openai","models":["gpt-4o"],"input":100,"output":100}
	]}`)
	const m = 1_000_000
	for name, tc := range map[string]struct {
		provider, model string
		usage           messages.Usage
		want            float64
		unknown         bool
	}{
		"input and output":        {"openai", "big", messages.Usage{Input: m, Output: m}, 12, false},
		"a few tokens":            {"openai", "big", messages.Usage{Input: 1, Output: 1}, 0.000012, false},
		"part of it from a cache": {"openai", "big", messages.Usage{Input: m, CacheRead: m / 2, CacheWrite: m / 4}, 0.5 + 0.25 + 1, false},
		"reasoning":               {"openai", "big", messages.Usage{Output: m, Reasoning: m / 2}, 15, false},
		"more cached than sent":   {"openai", "big", messages.Usage{Input: 1, CacheRead: m}, 0.5, false},
		"a pattern":               {"openai", "big-2-x", messages.Usage{Input: m}, 2, false},
		"an exact name first":     {"openai", "big-2026", messages.Usage{Input: m}, 1, false},
		"a longer pattern first":  {"openai", "big-2-small-1", messages.Usage{Input: m}, 3, false},
		"the operator's first":    {"openai", "gpt-4o", messages.Usage{Input: m}, 100, false},
		"and the built-in":        {"anthropic", "claude-sonnet-4-5", messages.Usage{Input: m, CacheRead: m}, 0.3, false},
		"free":                    {"openai", "own/llama", messages.Usage{Input: m, Output: m}, 0, false},
		"free and uncounted":      {"openai", "own/llama", messages.Usage{}, 0, false},
		"the script":              {"scripted", "", messages.Usage{}, 0, false},
		"unknown model":           {"openai", "bigger", messages.Usage{Input: 1}, 0, true},
		"unknown provider":        {"azure", "big", messages.Usage{Input: 1}, 0, true},
		"a variant of a model":    {"openai", "gpt-4o-audio-preview", messages.Usage{Input: 1}, 0, true},
		"usage was not told":      {"openai", "big", messages.Usage{}, 0, true},
		"nonsense usage":          {"openai", "big", messages.Usage{Input: -m, Output: 1, CacheRead: -m, Reasoning: m}, 0.00002, false},
	} {
		t.Run(name, func(t *testing.T) {
			usd, ok := table.Cost(tc.provider, tc.model, tc.usage)
			if ok == tc.unknown || usd != tc.want {
				t.Errorf("%v, %v; want %v", usd, ok, tc.want)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	table := load(t, "version: 1\ncurrency: USD\ndate: 2026-01-02\nsource: a test\nreplace: true\nprices:\n- {provider: openai, models: [x], input: 0, output: 0}\n")
	if table.Find("openai", "x") == nil || table.Find("openai", "gpt-4o") != nil || len(table.Files()) != 1 {
		t.Error("the built-in prices count although they are replaced")
	}
	if builtin, err := prices.Load(""); err != nil || builtin.Find("openai", "gpt-4o") == nil {
		t.Errorf("no file: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	price := func(s string) string { return `{` + head + `,"prices":[` + s + `]}` }
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":              {``, "the file is empty"},
		"a list":               {`[]`, "body: "},
		"not YAML":             {"\t{", "read YAML: "},
		"another version":      {`{"version":2,"currency":"USD","date":"2026-01-02","source":"x","prices":[]}`, "version: must be 1"},
		"another currency":     {`{"version":1,"currency":"EUR","date":"2026-01-02","source":"x","prices":[]}`, "currency: must be USD"},
		"no day":               {`{"version":1,"currency":"USD","date":"today","source":"x","prices":[]}`, "date: "},
		"no source":            {`{"version":1,"currency":"USD","date":"2026-01-02","source":"","prices":[]}`, "source: "},
		"an unknown field":     {price(`{"provider":"p","models":["m"],"input":1,"output":1,"inptu":1}`), "prices[0].inptu: "},
		"no output":            {price(`{"provider":"p","models":["m"],"input":1}`), "prices[0].output: is missing"},
		"null":                 {price(`{"provider":"p","models":["m"],"input":1,"output":null}`), "prices[0].output: "},
		"negative":             {price(`{"provider":"p","models":["m"],"input":-1,"output":1}`), "prices[0].input: must be"},
		"a fortune":            {price(`{"provider":"p","models":["m"],"input":1e300,"output":1}`), "prices[0].input: must be"},
		"beyond any number":    {price(`{"provider":"p","models":["m"],"input":1e999,"output":1}`), "prices[0].input: "},
		"text":                 {price(`{"provider":"p","models":["m"],"input":"free","output":1}`), "prices[0].input: "},
		"infinity in YAML":     {"version: .inf", "read YAML: "},
		"no model":             {price(`{"provider":"p","models":[],"input":1,"output":1}`), "prices[0].models: "},
		"a star in the middle": {price(`{"provider":"p","models":["a*b"],"input":1,"output":1}`), "prices[0].models[0]: "},
		"a long name":          {price(`{"provider":"p","models":["` + strings.Repeat("x", 257) + `"],"input":1,"output":1}`), "prices[0].models[0]: "},
		"twice":                {price(`{"provider":"p","models":["m"],"input":1,"output":1},{"provider":"p","models":["m"],"input":2,"output":1}`), "prices[1].models[0]: has a price already"},
		"too large":            {strings.Repeat(" ", 5<<20), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := prices.Parse([]byte(tc.in)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := prices.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}

// liteLLM has the shape of LiteLLM's file, its explanation of itself included.
const liteLLM = `{
	"sample_spec": {"litellm_provider": "one of https://docs.litellm.ai/docs/providers", "mode": "one of: chat", "input_cost_per_token": 0.0, "max_tokens": "LEGACY parameter"},
	"gpt-x": {"litellm_provider": "openai", "mode": "chat", "max_tokens": 16384, "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-06, "supports_vision": true, "supported_modalities": ["text"]},
	"claude-x": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_creation_input_token_cost": 3.75e-06, "input_cost_per_token_above_200k_tokens": 6e-06},
	"groq/llama": {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 5e-08, "output_cost_per_token": 8e-08},
	"cheap/llama": {"litellm_provider": "cheap", "mode": "chat", "input_cost_per_token": 1e-08, "output_cost_per_token": 1e-08},
	"openai/half": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06},
	"negative": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": -1, "output_cost_per_token": 1},
	"text-embedding": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 1e-07, "output_cost_per_token": 0},
	"broken": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": "free"}
}`

func TestImport(t *testing.T) {
	for name, tc := range map[string]struct {
		from []string
		want string
		left int
	}{
		"two providers": {[]string{"openai", "anthropic"}, `[{"provider":"anthropic","models":["claude-x"],"input":3,"output":15,"cacheWrite":3.75},` +
			`{"provider":"openai","models":["gpt-x"],"input":2.5,"output":10,"cacheRead":1.25}]`, 3},
		"a prefix is the provider's":       {[]string{"groq"}, `[{"provider":"openai","models":["llama"],"input":0.05,"output":0.08}]`, 1},
		"two prices of one model are none": {[]string{"groq", "cheap"}, `[]`, 2},
		"no model":                         {nil, `[]`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, left, err := prices.Import([]byte(liteLLM), tc.from, "2026-01-02", "a test")
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(f.Prices)
			if err != nil || string(got) != tc.want || left != tc.left {
				t.Errorf("%d left, %v:\n%s\nwant %d:\n%s", left, err, got, tc.left, tc.want)
			}
			whole, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := prices.Parse(whole); err != nil {
				t.Errorf("it cannot be read again: %v", err)
			}
		})
	}
	for name, in := range map[string]string{"nothing": "", "a list": "[]", "null in it": `{"a":`, "HTML": "<html>", "too large": strings.Repeat(" ", 17<<20)} {
		if _, _, err := prices.Import([]byte(in), nil, "2026-01-02", "x"); err == nil {
			t.Errorf("%s was imported", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{` + head + `,"prices":[{"provider":"openai","models":["big","big-2*"],"input":2,"output":10,"cacheRead":0.5}]}`))
	f.Add([]byte("version: 1\ncurrency: USD\ndate: 2026-01-02\nsource: x\nprices: []\n"))
	f.Add([]byte(liteLLM))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := prices.Parse(data); err == nil {
			again, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := prices.Parse(again); err != nil {
				t.Errorf("%s: %v", again, err)
			}
		}
		if file, _, err := prices.Import(data, []string{"openai", "anthropic"}, "2026-01-02", "x"); err == nil && file.Prices == nil {
			t.Error("an import without prices must be an empty list")
		}
	})
}
