package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-run/longshore/deploy/settings"
)

const many = `
default: fast
providers:
  - name: fast
    kind: openai
    baseURL: https://models.example/v1
    keyEnv: FAST_KEY
    model: fast-1
    flavour: openrouter
    capabilities: {images: false}
    contextWindow: 128000
    models:
      fast-2: {capabilities: {tools: false}, contextWindow: 8192, maxOutput: 1024}
    limits: {requestsPerMinute: 600, tokensPerMinute: 100000, inFlight: 32, tenant: {inFlight: 4}}
  - {name: claude, kind: anthropic, keyFile: claude.key, model: claude-x}
  - {name: local, kind: openai, baseURL: "http://127.0.0.1:11434/v1", auth: none}
  - {name: play, kind: scripted, script: play.yaml}
  - {name: plain, kind: openai, key: sk-plain-123456}
`

// providersEnv writes a providers file and what it names, and returns a good environment with it.
func providersEnv(t *testing.T, text string, more ...string) (environ []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		"p.yaml": text, "claude.key": "  sk-claude-123456\n", "empty.key": "\n", "two.key": "a b\n", "large.key": strings.Repeat("x", 20<<10),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append(more, "NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "FAST_KEY=sk-fast-123456", "EMPTY=",
		"LONGSHORE_PROVIDERS="+filepath.Join(dir, "p.yaml")), dir
}

func TestProvidersFile(t *testing.T) {
	environ, dir := providersEnv(t, many, "OPENAI_API_KEY=sk-short-123456", "OPENAI_MODEL=gpt")
	var s settings.Worker
	if err := settings.Load(&s, environ); err != nil {
		t.Fatal(err)
	}
	no := false
	want := []settings.Provider{
		{Name: "openai", Kind: "openai", Key: "sk-short-123456", Model: "gpt"},
		{
			Name: "fast", Kind: "openai", BaseURL: "https://models.example/v1", Key: "sk-fast-123456", KeyEnv: "FAST_KEY", Model: "fast-1",
			Flavour: "openrouter",
			Ability: settings.Ability{Capabilities: settings.Capabilities{Images: &no}, ContextWindow: 128000},
			Models: map[string]settings.Ability{
				"fast-2": {Capabilities: settings.Capabilities{Tools: &no}, ContextWindow: 8192, MaxOutput: 1024},
			},
			Limits: settings.Limits{
				Rate:   settings.Rate{RequestsPerMinute: 600, TokensPerMinute: 100000, InFlight: 32},
				Tenant: settings.Rate{InFlight: 4},
			},
		},
		{Name: "claude", Kind: "anthropic", Key: "sk-claude-123456", KeyFile: filepath.Join(dir, "claude.key"), Model: "claude-x"},
		{Name: "local", Kind: "openai", BaseURL: "http://127.0.0.1:11434/v1", Auth: "none"},
		{Name: "play", Kind: "scripted", Script: filepath.Join(dir, "play.yaml")},
		{Name: "plain", Kind: "openai", Key: "sk-plain-123456"},
	}
	if diff := cmp.Diff(want, s.Providers(), cmpopts.IgnoreUnexported(settings.Provider{})); diff != "" {
		t.Error(diff)
	}
	if s.Default() != "fast" || !slices.Equal(s.PlainKeys(), []string{"plain"}) || !s.Configured() {
		t.Errorf("default %q, plain keys %q", s.Default(), s.PlainKeys())
	}
	for _, secret := range []string{"sk-short-123456", "sk-fast-123456", "sk-claude-123456", "sk-plain-123456"} {
		if !slices.Contains(settings.Secrets(s), secret) || !slices.Contains(settings.Secrets(&s), secret) {
			t.Errorf("%s is not among the secrets", secret)
		}
	}
}

func TestDefaultProvider(t *testing.T) {
	two := "providers: [{name: play, kind: scripted, script: x}, {name: a, kind: openai, key: k-123456, model: m}, {name: b, kind: openai, key: k-123456}]"
	for name, tc := range map[string]struct {
		text    string
		environ []string
		want    string
	}{
		"the first that is real":    {two, nil, "a"},
		"a short variable's":        {two, []string{"OPENAI_API_KEY=sk-123456", "OPENAI_MODEL=m"}, "openai"},
		"Anthropic's":               {two, []string{"ANTHROPIC_API_KEY=sk-123456", "ANTHROPIC_MODEL=m"}, "anthropic"},
		"the choice":                {"default: play\n" + two, []string{"OPENAI_API_KEY=sk-123456", "OPENAI_MODEL=m"}, "play"},
		"the choice of a short one": {"default: openai\n" + two, []string{"OPENAI_API_KEY=sk-123456", "OPENAI_MODEL=m"}, "openai"},
		"only a script":             {"providers: [{name: play, kind: scripted, script: x}]", nil, "play"},
		"a variable that the file takes": {
			"providers: [{name: openai, kind: openai, keyEnv: OPENAI_API_KEY, model: m}]", []string{"OPENAI_API_KEY=sk-123456"}, "openai",
		},
	} {
		t.Run(name, func(t *testing.T) {
			environ, _ := providersEnv(t, tc.text, tc.environ...)
			var s settings.Worker
			if err := settings.Load(&s, environ); err != nil || s.Default() != tc.want {
				t.Errorf("default %q, %v, want %q", s.Default(), err, tc.want)
			}
		})
	}
}

// Each mistake is one line that names file and field and says what to do.
func TestWrongProvidersFiles(t *testing.T) {
	one := func(rest string) string { return "providers: [{name: a, kind: openai, " + rest + "}]" }
	for name, tc := range map[string]struct {
		text, want string
		environ    []string
	}{
		"nothing":                 {text: "", want: `LONGSHORE_PROVIDERS: p.yaml: is empty: list at least one provider under "providers"`},
		"only a comment":          {text: "# later", want: `LONGSHORE_PROVIDERS: p.yaml: is empty: list at least one provider under "providers"`},
		"not YAML":                {text: "providers: [", want: `LONGSHORE_PROVIDERS: p.yaml: read YAML: line 2: did not find expected node content`},
		"a list":                  {text: "- name: a", want: `LONGSHORE_PROVIDERS: p.yaml: body: must be an object, not an array`},
		"two documents":           {text: one("key: k-123456, model: m") + "\n---\nproviders: []", want: `LONGSHORE_PROVIDERS: p.yaml: a second YAML document begins on line 3: give one document in each file`},
		"keys that are no text":   {text: "1: 2", want: `LONGSHORE_PROVIDERS: p.yaml: read YAML: a key is not a string, or a number is not finite`},
		"an unknown field":        {text: "provider: []", want: `LONGSHORE_PROVIDERS: p.yaml: provider: unknown field: did you mean providers? (line 1)`},
		"an unknown field inside": {text: one("keyenv: K"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyenv: unknown field: did you mean keyEnv? (line 1)`},
		"a field twice":           {text: "default: a\ndefault: b", want: `LONGSHORE_PROVIDERS: p.yaml: read YAML: line 2: mapping key "default" already defined at line 1`},
		"no providers":            {text: "default: a", want: `LONGSHORE_PROVIDERS: p.yaml: providers: is empty: list at least one, with name and kind`},
		"an empty list":           {text: "providers: []", want: `LONGSHORE_PROVIDERS: p.yaml: providers: is empty: list at least one, with name and kind (line 1)`},
		"null":                    {text: "providers: [null]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0]: null is not allowed (line 1)`},
		"a wrong type":            {text: one("key: k-123456, model: m, limits: {inFlight: many}"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].limits.inFlight: must be an integer, not a string (line 1)`},
		"a fraction":              {text: one("key: k-123456, model: m, contextWindow: 1.5"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].contextWindow: must be an integer that fits in 64 bits (line 1)`},
		"no name":                 {text: "providers: [{kind: openai, key: k-123456}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].name: must be 1 to 64 characters of A-Z a-z 0-9 _ - (line 1)`},
		"a name with a slash":     {text: "providers: [{name: a/b, kind: openai, key: k-123456}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].name: must be 1 to 64 characters of A-Z a-z 0-9 _ - (line 1)`},
		"a name twice":            {text: "providers: [{name: a, kind: openai, key: k-123456}, {name: a, kind: anthropic, key: k-123456}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[1].name: "a" is taken by providers[0]: names must differ (line 1)`},
		"no kind":                 {text: "providers: [{name: a}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].kind: is missing: openai, anthropic or scripted (line 1)`},
		"an unknown kind":         {text: "providers: [{name: a, kind: gemini}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].kind: "gemini" is not openai, anthropic or scripted (line 1)`},
		"no key":                  {text: one("model: m"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyEnv: is missing: name the variable that holds the key, or set keyFile, or auth: none (line 1)`},
		"two keys":                {text: one("key: k-123456, keyEnv: FAST_KEY"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyEnv: key is set too: give the key in one way (line 1)`},
		"a key and none":          {text: one("auth: none, keyFile: claude.key"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyFile: is set together with auth: leave one of them out (line 1)`},
		"a strange auth":          {text: one("auth: oauth"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].auth: must be none, or left out when there is a key (line 1)`},
		"none at the kind's own":  {text: one("auth: none"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].baseURL: is missing: an endpoint with auth: none has an address of its own (line 1)`},
		"a variable not set":      {text: one("keyEnv: NOWHERE"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyEnv: the variable NOWHERE is not set: set it to the key of this provider`},
		"a key for a variable":    {text: one("keyEnv: sk-live-7f"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyEnv: the variable that keyEnv names is not set: set it to the key of this provider`},
		"an empty variable":       {text: one("keyEnv: EMPTY"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyEnv: the variable EMPTY is not set: set it to the key of this provider`},
		"no key file":             {text: one("keyFile: nowhere.key"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyFile: open nowhere.key: no such file or directory: check the name and that this process may read it`},
		"an empty key file":       {text: one("keyFile: empty.key"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyFile: empty.key is empty: put the key into it`},
		"a folder as key file":    {text: one("keyFile: ."), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyFile: . is a folder: name a file`},
		"a large key file":        {text: one("keyFile: large.key"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyFile: read large.key: larger than 16384 bytes, which is the limit`},
		"a key with a space":      {text: one("keyFile: two.key"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].keyFile: the key holds a space, a line break or a character outside ASCII`},
		"a strange address":       {text: one("key: k-123456, baseURL: here"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].baseURL: must be an address such as https://host/v1, without a password (line 1)`},
		"a password in it":        {text: one("key: k-123456, baseURL: 'https://me:pa55word@host/v1'"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].baseURL: must be an address such as https://host/v1, without a password (line 1)`},
		"a negative window":       {text: one("key: k-123456, contextWindow: -1"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].contextWindow: must be 0 to 1000000000 (line 1)`},
		"a negative window below": {text: one("key: k-123456, models: {m: {contextWindow: -1}}"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].models.m.contextWindow: must be 0 to 1000000000 (line 1)`},
		"a negative limit":        {text: one("key: k-123456, limits: {inFlight: -1}"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].limits.inFlight: must be 0 to 1000000000 (line 1)`},
		"a tenant's limit":        {text: one("key: k-123456, limits: {tenant: {requestsPerMinute: -1}}"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].limits.tenant.requestsPerMinute: must be 0 to 1000000000 (line 1)`},
		"a script elsewhere":      {text: one("key: k-123456, script: s.yaml"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].script: belongs to kind scripted only (line 1)`},
		"no script":               {text: "providers: [{name: a, kind: scripted}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].script: is missing: the file that the model plays (line 1)`},
		"a script with a key":     {text: "providers: [{name: a, kind: scripted, script: s, key: k-123456}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].key: does not belong to kind scripted (line 1)`},
		"a flavour elsewhere":     {text: "providers: [{name: a, kind: anthropic, key: k-123456, flavour: vllm}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].flavour: belongs to kind openai only (line 1)`},
		"a nameless model":        {text: one("key: k-123456, models: {'': {}}"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].models: a name must have 1 to 256 bytes (line 1)`},
		"an unknown default":      {text: "default: b\n" + one("key: k-123456"), want: `LONGSHORE_PROVIDERS: p.yaml: default: "b" is not the name of a provider`},
		"a default without model": {text: one("key: k-123456"), want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].model: is missing: "a" is the default provider, and agents that name no model use it`},
		"the name of a short one": {
			text: "providers: [{name: openai, kind: openai, key: k-123456, model: m}]", want: `LONGSHORE_PROVIDERS: p.yaml: providers[0].name: "openai" is the provider of OPENAI_BASE_URL, OPENAI_API_KEY or OPENAI_MODEL: choose another name`,
			environ: []string{"OPENAI_API_KEY=sk-123456", "OPENAI_MODEL=m"},
		},
		"Anthropic without model": {text: one("key: k-123456, model: m"), want: `ANTHROPIC_MODEL is missing: the name of the model to use with ANTHROPIC_API_KEY`, environ: []string{"ANTHROPIC_API_KEY=sk-123456"}},
		"Anthropic without key":   {text: one("key: k-123456, model: m"), want: `ANTHROPIC_API_KEY is missing: ANTHROPIC_BASE_URL or ANTHROPIC_MODEL is set (any text will do for a server that needs no key)`, environ: []string{"ANTHROPIC_MODEL=m"}},
	} {
		t.Run(name, func(t *testing.T) {
			environ, dir := providersEnv(t, tc.text, tc.environ...)
			var s settings.Worker
			err := settings.Load(&s, environ)
			if err == nil {
				t.Fatal("it was read")
			}
			got := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
			got = strings.ReplaceAll(got, dir, ".")
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if strings.ContainsAny(got, "\n\r") || strings.Contains(got, "123456") || strings.Contains(got, "pa55word") {
				t.Errorf("not one clean line: %q", got)
			}
		})
	}
	var s settings.Worker
	environ, dir := providersEnv(t, many)
	err := settings.Load(&s, append(environ, "LONGSHORE_PROVIDERS="+dir))
	if err == nil || err.Error() != "LONGSHORE_PROVIDERS: "+dir+" is a folder: name a file" {
		t.Errorf("a folder: %v", err)
	}
	err = settings.Load(&s, append(environ, "LONGSHORE_PROVIDERS=/nowhere/p.yaml"))
	if err == nil || err.Error() != "LONGSHORE_PROVIDERS: open /nowhere/p.yaml: no such file or directory: check the name and that this process may read it" {
		t.Errorf("no file: %v", err)
	}
}

// The file that the page shows is right.
func TestDocumentedProvidersFile(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "default: main")
	text, _, ok := strings.Cut(text, "```")
	f, err := settings.ParseProviders([]byte("default: main" + text))
	if !ok || err != nil || len(f.Providers) < 3 {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzParseProviders(f *testing.F) {
	for _, text := range []string{
		many, "", "a: [", "- a", "providers: [null]", "providers: [{name: a, kind: openai, auth: none, baseURL: 'http://h'}]",
		"a: &a [x, x]\nb: &b [*a, *a]\nproviders: [*b, *b]", "1: 2", "providers: [{models: {? [a] : b}}]", "x: !!binary aGk=", "d: .inf", "---\n---\n", "\xff\xfe",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := settings.ParseProviders(data)
		if (err == nil) != (file != nil) {
			t.Fatalf("%v with %v", file, err)
		}
		if err != nil {
			return
		}
		for _, p := range file.Providers {
			if p.Name == "" || p.Kind == "" || p.ContextWindow < 0 || p.Limits.InFlight < 0 {
				t.Errorf("read %+v", p)
			}
		}
	})
}
