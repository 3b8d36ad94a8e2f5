package anthropic

import (
	"net/http"
	"time"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

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
	BaseURL string // Up to, without, "/v1/messages". Default DefaultBaseURL.
	APIKey  string // Sent as x-api-key. Required unless NoAuth.
	NoAuth  bool   // The endpoint takes no key.
	Model   string // Used by requests that name none; may be empty when all do.

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

	// Transport makes the HTTP requests. Default: one that pools connections to the host. Redirects are never followed.
	Transport http.RoundTripper

	StartTimeout time.Duration // From the request to the first byte of the answer. Default 2 minutes.
	IdleTimeout  time.Duration // Between two pieces of the answer, pings included. Default 60 s.
	MaxLine      int           // Of an event or of a reply that is not streamed, in bytes. Default 4 MiB.
	MaxReply     int64         // Of a whole streamed reply, framing included, in bytes. Default 16 MiB.
}

// Provider is one endpoint. Safe for any number of concurrent calls.
type Provider struct {
	config Config
	http   *httpstream.Client
	client api.Client
}

var _ model.Provider = (*Provider)(nil)

// New checks the configuration; a mistake is a *messages.FieldError. It does not connect, and reads nothing from the
// environment.
func New(c Config) (*Provider, error) {
	endpoint := c.endpoint()
	if err := endpoint.Check("/v1/messages", "/v1"); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(c.BaseURL), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "longshore"),
	}
	if !c.NoAuth {
		options = append(options, option.WithAPIKey(c.APIKey))
	}
	return &Provider{config: c, client: api.NewClient(options...), http: httpstream.New(endpoint)}, nil
}

func (c *Config) endpoint() httpstream.Config {
	return httpstream.Config{
		BaseURL: c.BaseURL, APIKey: c.APIKey, NoAuth: c.NoAuth, Transport: c.Transport,
		StartTimeout: c.StartTimeout, IdleTimeout: c.IdleTimeout, MaxLine: c.MaxLine, MaxReply: c.MaxReply,
		URLVariable: "ANTHROPIC_BASE_URL", RequestIDs: []string{"Request-Id", "X-Request-Id", "Cf-Ray"},
	}
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
