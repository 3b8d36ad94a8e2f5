package anthropic

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// Defaults.
const (
	DefaultBaseURL   = "https://api.anthropic.com"
	DefaultMaxTokens = 8192
	defaultContext   = 200_000
)

// minThinking is the least budget that the API takes.
const minThinking = 1024

// Config is one endpoint.
type Config struct {
	// Endpoint: BaseURL is up to, without, "/v1/messages", by default DefaultBaseURL. APIKey is sent as x-api-key.
	httpstream.Endpoint

	Model string // Used by requests that name none; may be empty when all do.

	// MaxTokens of a reply, for requests that do not say: the API wants a limit. Default 8192, and Thinking more.
	MaxTokens int
	// Thinking is the budget of tokens for reasoning, a part of the reply's limit: at least 1024; 0 is off. It is
	// made smaller, down to off, so that half of a request's limit is left for the reply. A request that is thought
	// about has no temperature.
	Thinking int
	// NoCache leaves prompt caching off. Otherwise tools, the system prompt and the conversation so far are marked
	// to be cached: that makes a run of many steps a good deal cheaper.
	NoCache bool
	// Capabilities of the model. Default: all but JSONMode, which the API lacks, a context of 200,000 tokens, and
	// no known limit of a reply. What it cannot do is not asked of it.
	Capabilities *model.Capabilities
}

// Provider is one endpoint. Safe for any number of concurrent calls.
type Provider struct {
	config Config
	http   *httpstream.Client
}

var _ model.Provider = (*Provider)(nil)

// New checks the configuration; a mistake is a *messages.FieldError. It does not connect, and reads nothing from the
// environment.
func New(c Config) (*Provider, error) {
	if err := c.Check("/v1/messages", "/v1"); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	return &Provider{config: c, http: httpstream.New(httpstream.Config{
		Endpoint:    c.Endpoint,
		URLVariable: "ANTHROPIC_BASE_URL", RequestIDs: []string{"Request-Id", "X-Request-Id", "Cf-Ray"},
	})}, nil
}

// Close closes the connections that are not in use.
func (p *Provider) Close() { p.http.Close() }

// Capabilities are what the configuration says that the model can do.
func (p *Provider) Capabilities() model.Capabilities { return *p.config.Capabilities }

func (c *Config) check() error {
	switch {
	case c.MaxTokens < 0:
		return &messages.FieldError{Field: "maxTokens", Reason: "must not be negative"}
	case c.Thinking != 0 && c.Thinking < minThinking:
		return &messages.FieldError{Field: "thinking", Reason: "must be 0 or at least 1024 tokens"}
	case c.MaxTokens > 0 && c.Thinking >= c.MaxTokens:
		return &messages.FieldError{Field: "thinking", Reason: "must be less than maxTokens, of which it is a part"}
	case c.Capabilities != nil && (c.Capabilities.ContextWindow < 0 || c.Capabilities.MaxOutput < 0):
		return &messages.FieldError{Field: "capabilities", Reason: "must not hold negative numbers"}
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = DefaultMaxTokens + c.Thinking
	}
	can := model.Capabilities{
		Tools: true, Streaming: true, JSONSchema: true, Images: true, Files: true, Reasoning: true, ContextWindow: defaultContext,
	}
	if c.Capabilities != nil {
		can = *c.Capabilities
	}
	c.Capabilities = &can
}
