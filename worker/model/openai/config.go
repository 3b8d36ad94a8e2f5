package openai

import (
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// DefaultBaseURL is OpenAI's.
const DefaultBaseURL = "https://api.openai.com/v1"

// defaultAzureVersion is Azure's last version of the API that is no preview.
const defaultAzureVersion = "2024-10-21"

// Config is one endpoint.
type Config struct {
	// Endpoint: BaseURL is up to, without, "/chat/completions", of Azure up to, without, "/openai", by default DefaultBaseURL.
	// APIKey is sent as a bearer token.
	httpstream.Endpoint

	Organization string // Sent as OpenAI-Organization; may be empty.
	Model        string // Used by requests that name none; may be empty when all do. Of Azure it is the deployment.

	Flavour      Flavour             // Default by the host of BaseURL, Compatible for unknown ones.
	APIVersion   string              // Of Azure. Default 2024-10-21.
	Capabilities *model.Capabilities // Of the model. Default by Flavour.
}

// Provider is one endpoint. Safe for any number of concurrent calls.
type Provider struct {
	config Config
	http   *httpstream.Client
}

var _ model.Provider = (*Provider)(nil)

// New checks the configuration; a mistake is a *messages.FieldError. It does not connect.
func New(c Config) (*Provider, error) {
	if err := c.Check("/chat/completions"); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	return &Provider{config: c, http: httpstream.New(httpstream.Config{
		Endpoint:    c.Endpoint,
		URLVariable: "OPENAI_BASE_URL", RequestIDs: []string{"X-Request-Id", "Request-Id", "X-Generation-Id", "Cf-Ray"},
		Lenient: true,
	})}, nil
}

// Capabilities are those of the configuration, or the flavour's.
func (p *Provider) Capabilities() model.Capabilities { return *p.config.Capabilities }

// Close closes the connections that are not in use.
func (p *Provider) Close() { p.http.Close() }

func (c *Config) check() error {
	if c.Flavour != "" {
		if err := c.Flavour.check(); err != nil {
			return err
		}
	}
	switch {
	case c.APIVersion != "" && c.Flavour != Azure && flavourOf(c.BaseURL) != Azure:
		return &messages.FieldError{Field: "apiVersion", Reason: "is set for an endpoint that is not Azure's"}
	case strings.ContainsFunc(c.APIVersion, func(r rune) bool { return notAlphanumeric(r) && r != '-' }):
		return &messages.FieldError{Field: "apiVersion", Reason: "must be such as 2024-10-21"}
	case c.Flavour == Azure && c.BaseURL == "":
		return &messages.FieldError{Field: "baseURL", Reason: "is missing; Azure's has the name of the resource in it"}
	case c.Capabilities != nil && (c.Capabilities.MaxOutput < 0 || c.Capabilities.ContextWindow < 0):
		return &messages.FieldError{Field: "capabilities", Reason: "must not hold negative numbers"}
	case !httpstream.HeaderValue(c.Organization):
		return &messages.FieldError{Field: "organization", Reason: "holds a space, a line break or a character outside ASCII"}
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if c.Flavour == "" {
		c.Flavour = flavourOf(c.BaseURL)
	}
	if c.APIVersion == "" {
		c.APIVersion = defaultAzureVersion
	}
	if c.Capabilities == nil {
		can := c.Flavour.capabilities()
		c.Capabilities = &can
	}
}
