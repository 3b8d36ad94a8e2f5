package openai

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/wire"
)

// Defaults.
const (
	DefaultBaseURL      = "https://api.openai.com/v1"
	defaultIdleTimeout  = 60 * time.Second
	defaultStartTimeout = 2 * time.Minute // local servers read the whole prompt before they answer
	defaultMaxLine      = 4 << 20         // recorded lines reach tens of KiB; images and audio are not asked for
	defaultMaxReply     = 16 << 20        // framing included: a token costs some 300 bytes on the wire
)

// Limits of the transport that New makes.
const (
	dialTimeout     = 10 * time.Second
	idleConnections = 1024 // kept open to the one host, so that a busy fleet member does not dial for every call
	idleConnTimeout = 90 * time.Second
)

// defaultAzureVersion is Azure's last version of the API that is no preview.
const defaultAzureVersion = "2024-10-21"

// Config is one endpoint.
type Config struct {
	BaseURL      string // Up to, without, "/chat/completions"; of Azure up to, without, "/openai". Default DefaultBaseURL.
	APIKey       string // Sent as a bearer token. Required unless NoAuth.
	NoAuth       bool   // The endpoint takes no key.
	Organization string // Sent as OpenAI-Organization; may be empty.
	Model        string // Used by requests that name none; may be empty when all do. Of Azure it is the deployment.

	Flavour      Flavour             // Default by the host of BaseURL, Compatible for unknown ones.
	APIVersion   string              // Of Azure. Default 2024-10-21.
	Capabilities *model.Capabilities // Of the model. Default by Flavour.

	// Transport makes the HTTP requests. Default: one that pools connections to the host. Redirects are never followed.
	Transport http.RoundTripper

	StartTimeout time.Duration // From the request to the first byte of the answer. Default 2 minutes.
	IdleTimeout  time.Duration // Between two pieces of the answer, keepalives included. Default 60 s.
	MaxLine      int           // Of an event or of a reply that is not streamed, in bytes. Default 4 MiB.
	MaxReply     int64         // Of a whole streamed reply, framing included, in bytes. Default 16 MiB.
}

// Provider is one endpoint. Safe for any number of concurrent calls.
type Provider struct {
	client  *api.Client
	model   string
	flavour Flavour
	can     model.Capabilities
	secrets wire.Redactor
	idle    interface{ CloseIdleConnections() }
}

var _ model.Provider = (*Provider)(nil)

// New checks the configuration; a mistake is a *messages.FieldError. It does not connect.
func New(c Config) (*Provider, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	secrets := wire.Redactor{Key: c.APIKey}
	client := &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	conf := api.DefaultConfig(c.APIKey)
	if c.Flavour == Azure {
		conf.APIType, conf.APIVersion = api.APITypeAzure, c.APIVersion
	}
	conf.BaseURL = c.BaseURL
	conf.OrgID = c.Organization
	conf.HTTPClient = &normaliser{
		client: client, secrets: secrets, startTimeout: c.StartTimeout, idleTimeout: c.IdleTimeout,
		maxLine: c.MaxLine, maxReply: c.MaxReply,
	}
	return &Provider{
		client: api.NewClientWithConfig(conf), model: c.Model, flavour: c.Flavour, can: *c.Capabilities,
		secrets: secrets, idle: client,
	}, nil
}

// Capabilities are those of the configuration, or the flavour's.
func (p *Provider) Capabilities() model.Capabilities { return p.can }

// Close closes the connections that are not in use.
func (p *Provider) Close() { p.idle.CloseIdleConnections() }

func (c *Config) check() error {
	if err := checkURL(c.BaseURL); err != nil {
		return err
	}
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
	case c.APIKey == "" && !c.NoAuth:
		return &messages.FieldError{Field: "apiKey", Reason: "is missing; say so if the endpoint takes none"}
	case c.APIKey != "" && c.NoAuth:
		return &messages.FieldError{Field: "apiKey", Reason: "is set for an endpoint that takes none"}
	case !headerValue(c.APIKey):
		return &messages.FieldError{Field: "apiKey", Reason: "holds a space, a line break or a character outside ASCII"}
	case !headerValue(c.Organization):
		return &messages.FieldError{Field: "organization", Reason: "holds a space, a line break or a character outside ASCII"}
	case c.StartTimeout < 0:
		return &messages.FieldError{Field: "startTimeout", Reason: "must not be negative"}
	case c.IdleTimeout < 0:
		return &messages.FieldError{Field: "idleTimeout", Reason: "must not be negative"}
	case c.MaxLine < 0:
		return &messages.FieldError{Field: "maxLine", Reason: "must not be negative"}
	case c.MaxReply < 0:
		return &messages.FieldError{Field: "maxReply", Reason: "must not be negative"}
	}
	return nil
}

func checkURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return &messages.FieldError{Field: "baseURL", Reason: "is not a URL"} // err would show a password in it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return &messages.FieldError{Field: "baseURL", Reason: "must begin with http:// or https:// and a host"}
	case u.User != nil:
		return &messages.FieldError{Field: "baseURL", Reason: "must not hold a user or password"}
	case u.RawQuery != "" || u.Fragment != "":
		return &messages.FieldError{Field: "baseURL", Reason: "must not hold a query or fragment"}
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return &messages.FieldError{Field: "baseURL", Reason: "must end before /chat/completions"}
	}
	return nil
}

func headerValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
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
	if c.Transport == nil {
		c.Transport = transport()
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = defaultStartTimeout
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.MaxLine == 0 {
		c.MaxLine = defaultMaxLine
	}
	if c.MaxReply == 0 {
		c.MaxReply = defaultMaxReply
	}
}

func transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleConnTimeout,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // a gateway that compresses holds tokens back
	}
}
