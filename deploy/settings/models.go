package settings

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Names of the providers of the short variables, as agents use them.
const (
	NameOpenAI    = "openai"
	NameAnthropic = "anthropic"
	NameScripted  = "scripted"
	NameLite      = messages.LiteProvider // there if /run-lite has a model or an address of its own
)

// Models says which language models there are.
type Models struct {
	OpenAIKey   string `env:"OPENAI_API_KEY"  help:"key of an OpenAI-compatible provider" secret:"true"`
	OpenAIURL   string `env:"OPENAI_BASE_URL" help:"its base URL (default https://api.openai.com/v1)"`
	OpenAIModel string `env:"OPENAI_MODEL"    help:"the model of agents that name none; needed with a key"`

	LiteModel string `env:"OPENAI_LITE_MODEL"    help:"the model of /run-lite (default OPENAI_MODEL)"`
	LiteURL   string `env:"OPENAI_LITE_BASE_URL" help:"base URL of the model of /run-lite (default OPENAI_BASE_URL)"`

	AnthropicKey   string `env:"ANTHROPIC_API_KEY"  help:"key of Anthropic" secret:"true"`
	AnthropicURL   string `env:"ANTHROPIC_BASE_URL" help:"its base URL (default https://api.anthropic.com)"`
	AnthropicModel string `env:"ANTHROPIC_MODEL"    help:"the model of agents that name none; needed with a key"`

	Script string `env:"LONGSHORE_SCRIPT" help:"YAML file for the scripted model: demos and load tests without a key"`

	ProvidersFile string `env:"LONGSHORE_PROVIDERS" help:"YAML file with any number of model providers"`

	ModelRPM      int           `env:"LONGSHORE_MODEL_RPM"       envDefault:"0"  help:"requests per minute to each model, of the whole fleet; 0: no limit"`
	ModelTPM      int           `env:"LONGSHORE_MODEL_TPM"       envDefault:"0"  help:"tokens per minute of each model, of the whole fleet; 0: no limit"`
	ModelInFlight int           `env:"LONGSHORE_MODEL_INFLIGHT"  envDefault:"0"  help:"calls of each model at once, of the whole fleet; 0: no limit"`
	ReplyCacheTTL time.Duration `env:"LONGSHORE_REPLY_CACHE_TTL" envDefault:"1h" help:"how long a cached reply answers the same request, for agents with cache: true; 0: never"`

	ModelReply   time.Duration `env:"LONGSHORE_MODEL_REPLY_TIMEOUT" envDefault:"30m" help:"how long a model may take for a whole reply"`
	ModelStart   time.Duration `env:"LONGSHORE_MODEL_START_TIMEOUT" envDefault:"2m" help:"how long a model may take to start its answer"`
	ModelRetries *int          `env:"LONGSHORE_MODEL_RETRIES"       envDefault:"3"  help:"how often a failed model call is retried, unless its agent says otherwise: 0 to 10"`

	Prices string `env:"LONGSHORE_PRICES" help:"YAML or JSON file with prices of models, in addition to or instead of the built-in ones"`

	file    *ProvidersFile // as Load read it
	liteKey string         // OPENAI_API_KEY when it makes no provider but that of /run-lite
}

// Configured reports whether any provider is given.
func (s *Models) Configured() bool {
	return s.OpenAIKey != "" || s.AnthropicKey != "" || s.Script != "" || s.ProvidersFile != ""
}

// Check returns an *Error. No provider at all is no error here.
func (s *Models) Check() error {
	switch {
	case s.OpenAIKey != "" && s.OpenAIModel == "":
		return Errorf("OPENAI_MODEL is missing: the name of the model to use with OPENAI_API_KEY")
	case s.OpenAIKey == "" && (s.OpenAIURL != "" || s.OpenAIModel != ""):
		return Errorf("OPENAI_API_KEY is missing: OPENAI_BASE_URL or OPENAI_MODEL is set (any text will do for a server that needs no key)")
	case s.AnthropicKey != "" && s.AnthropicModel == "":
		return Errorf("ANTHROPIC_MODEL is missing: the name of the model to use with ANTHROPIC_API_KEY")
	case s.AnthropicKey == "" && (s.AnthropicURL != "" || s.AnthropicModel != ""):
		return Errorf("ANTHROPIC_API_KEY is missing: ANTHROPIC_BASE_URL or ANTHROPIC_MODEL is set (any text will do for a server that needs no key)")
	}
	if s.ModelRPM < 0 || s.ModelTPM < 0 || s.ModelInFlight < 0 || s.ReplyCacheTTL < 0 {
		return Errorf("LONGSHORE_MODEL_RPM, LONGSHORE_MODEL_TPM, LONGSHORE_MODEL_INFLIGHT and LONGSHORE_REPLY_CACHE_TTL must not be below 0")
	}
	if s.ModelStart < 0 {
		return Errorf("LONGSHORE_MODEL_START_TIMEOUT: must be above 0")
	}
	if s.ModelReply < 0 {
		return Errorf("LONGSHORE_MODEL_REPLY_TIMEOUT: must be above 0")
	}
	if n := s.ModelRetries; n != nil && (*n < 0 || *n > messages.MaxModelRetries) {
		return Errorf("LONGSHORE_MODEL_RETRIES: must be 0 to %d", messages.MaxModelRetries)
	}
	if s.OpenAIURL != "" {
		if p, err := url.Parse(s.OpenAIURL); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return Errorf("OPENAI_BASE_URL: not an address such as https://api.openai.com/v1")
		}
	}
	if s.AnthropicURL != "" {
		if p, err := url.Parse(s.AnthropicURL); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return Errorf("ANTHROPIC_BASE_URL: not an address such as https://api.anthropic.com")
		}
	}
	if err := s.checkLite(); err != nil {
		return err
	}
	return s.checkProviders()
}

func (s *Models) readProviders(environ []string) (err error) {
	if s.ProvidersFile != "" {
		s.file, err = loadProviders(s.ProvidersFile, environment(environ))
	}
	// A variable that holds the key of a provider in the file makes no provider of its own in addition.
	if s.OpenAIURL == "" && s.OpenAIModel == "" && s.takes("OPENAI_API_KEY") {
		s.OpenAIKey, s.liteKey = "", s.OpenAIKey
	}
	if s.AnthropicURL == "" && s.AnthropicModel == "" && s.takes("ANTHROPIC_API_KEY") {
		s.AnthropicKey = ""
	}
	return err
}

// takes reports whether the file has a key from a variable.
func (s *Models) takes(variable string) bool {
	return s.file != nil && slices.ContainsFunc(s.file.Providers, func(p Provider) bool { return p.KeyEnv == variable })
}

// Providers are those of the short variables, then those of the file.
func (s *Models) Providers() []Provider {
	var out []Provider
	if s.OpenAIKey != "" {
		out = append(out, Provider{
			Name: NameOpenAI, Kind: KindOpenAI, BaseURL: s.OpenAIURL, Key: s.OpenAIKey, Model: s.OpenAIModel,
			source: "OPENAI_BASE_URL, OPENAI_API_KEY or OPENAI_MODEL",
		})
	}
	if s.AnthropicKey != "" {
		out = append(out, Provider{
			Name: NameAnthropic, Kind: KindAnthropic, BaseURL: s.AnthropicURL, Key: s.AnthropicKey, Model: s.AnthropicModel,
			source: "ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY or ANTHROPIC_MODEL",
		})
	}
	if s.Script != "" {
		out = append(out, Provider{Name: NameScripted, Kind: KindScripted, Script: s.Script, source: "LONGSHORE_SCRIPT"})
	}
	if s.lite() {
		out = append(out, Provider{
			Name: NameLite, Kind: KindOpenAI, BaseURL: cmp.Or(s.LiteURL, s.OpenAIURL), Key: cmp.Or(s.OpenAIKey, s.liteKey),
			Model: cmp.Or(s.LiteModel, s.OpenAIModel), source: "OPENAI_LITE_BASE_URL, OPENAI_API_KEY or OPENAI_LITE_MODEL",
		})
	}
	if s.file != nil {
		out = append(out, s.file.Providers...)
	}
	return out
}

// Default is the provider of agents that name none: the file's own choice, or else the first provider there is, a
// scripted one only if there is no other. Empty: there is none.
func (s *Models) Default() string {
	if s.file != nil && s.file.Default != "" {
		return s.file.Default
	}
	all := s.Providers()
	for i := range all {
		if all[i].Kind != KindScripted && (all[i].Name != NameLite || !s.lite()) {
			return all[i].Name
		}
	}
	if len(all) > 0 {
		return all[0].Name
	}
	return ""
}

// lite reports whether the variables make a provider for /run-lite.
func (s *Models) lite() bool { return s.LiteModel != "" || s.LiteURL != "" }

func (s *Models) checkLite() error {
	switch {
	case !s.lite():
	case s.OpenAIKey == "" && s.liteKey == "":
		return Errorf("OPENAI_API_KEY is missing: OPENAI_LITE_MODEL or OPENAI_LITE_BASE_URL is set (any text will do for a server that needs no key)")
	case s.LiteModel == "" && s.OpenAIModel == "":
		return Errorf("OPENAI_LITE_MODEL is missing: the name of the model at OPENAI_LITE_BASE_URL")
	case s.LiteURL != "" && !isHTTP(s.LiteURL):
		return Errorf("OPENAI_LITE_BASE_URL: not an address such as https://api.openai.com/v1, without a password")
	}
	return nil
}

// PlainKeys are the names of the providers whose key is written in the file itself.
func (s *Models) PlainKeys() []string {
	var out []string
	if s.file != nil {
		for i := range s.file.Providers {
			if p := &s.file.Providers[i]; p.Key != "" && p.KeyEnv == "" && p.KeyFile == "" {
				out = append(out, p.Name)
			}
		}
	}
	return out
}

// keys are the secrets of the file.
func (s *Models) keys() []string {
	var out []string
	if s.file != nil {
		for i := range s.file.Providers {
			if key := s.file.Providers[i].Key; key != "" {
				out = append(out, key)
			}
		}
	}
	return out
}

// checkProviders checks what the variables and the file say together.
func (s *Models) checkProviders() error {
	if s.file == nil {
		return nil
	}
	all := s.Providers()
	byName := map[string]*Provider{}
	for i := range all {
		p := &all[i]
		if other := byName[p.Name]; other != nil {
			return Errorf("%s.name: %q is the provider of %s: choose another name", p.source, p.Name, other.source)
		}
		byName[p.Name] = p
	}
	first := byName[s.Default()]
	switch {
	case first == nil:
		return Errorf("%s: %s: default: %q is not the name of a provider", providersEnv, s.ProvidersFile, oneLine(s.Default()))
	case first.Model == "" && first.Kind != KindScripted:
		return Errorf("%s.model: is missing: %q is the default provider, and agents that name no model use it", first.source, first.Name)
	}
	return nil
}
