package settings

import "strings"

// Kinds of providers.
const (
	KindOpenAI    = "openai" // whatever speaks OpenAI's chat completions
	KindAnthropic = "anthropic"
	KindScripted  = "scripted"
)

// authNone says that an endpoint takes no key.
const authNone = "none"

// Provider is one model provider, as the file of LONGSHORE_PROVIDERS or the short variables say it.
type Provider struct {
	Name         string `json:"name"` // as agents use it
	Kind         string `json:"kind"`
	BaseURL      string `json:"baseURL,omitempty"` //nolint:tagliatelle // as other tools spell it; default: the kind's own
	Key          string `json:"key,omitempty"`     // after Load the key itself, wherever it came from
	KeyEnv       string `json:"keyEnv,omitempty"`  // the variable that holds it
	KeyFile      string `json:"keyFile,omitempty"` // the file that holds it; after Load relative to nothing
	Auth         string `json:"auth,omitempty"`    // "none": it takes no key
	Organization string `json:"organization,omitempty"`
	Model        string `json:"model,omitempty"`      // of agents that name none
	Flavour      string `json:"flavour,omitempty"`    // of kind openai: whose habits it has; default by its address
	APIVersion   string `json:"apiVersion,omitempty"` // of Azure
	Script       string `json:"script,omitempty"`     // of kind scripted: its file

	Ability
	Models map[string]Ability `json:"models,omitempty"` // of the models that differ from the others
	Limits Limits             `json:"limits,omitzero"`

	source string // what errors call it: the path in the file, or a variable
}

// NoAuth reports whether it takes no key.
func (p *Provider) NoAuth() bool { return p.Auth == authNone }

// FromFile reports whether it stands in the file of LONGSHORE_PROVIDERS, and not in the short variables.
func (p *Provider) FromFile() bool { return strings.HasPrefix(p.source, providersEnv) }

// Source is what to name in an error about the provider: the file and the path in it, or the variables.
func (p *Provider) Source() string { return p.source }

// Ability is what a file says about models. What is left out is as the kind of provider has it.
type Ability struct {
	Capabilities  Capabilities `json:"capabilities,omitzero"`
	ContextWindow int          `json:"contextWindow,omitempty"` // tokens; 0: not said
	MaxOutput     int          `json:"maxOutput,omitempty"`     // tokens; 0: not said
}

// Capabilities are what models can do or not; nil: not said.
type Capabilities struct {
	Tools      *bool `json:"tools,omitempty"`
	Streaming  *bool `json:"streaming,omitempty"`
	JSONSchema *bool `json:"jsonSchema,omitempty"`
	JSONMode   *bool `json:"jsonMode,omitempty"`
	Images     *bool `json:"images,omitempty"`
	Files      *bool `json:"files,omitempty"`
	Reasoning  *bool `json:"reasoning,omitempty"`
}

// Limits are what all workers together may ask of a provider, for each of its models; 0: no limit.
type Limits struct {
	Rate
	Tenant Rate `json:"tenant,omitzero"` // of each tenant
}

// Rate is a limit.
type Rate struct {
	RequestsPerMinute int `json:"requestsPerMinute,omitempty"`
	TokensPerMinute   int `json:"tokensPerMinute,omitempty"`
	InFlight          int `json:"inFlight,omitempty"`
}
