package httpstream

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Defaults of Config.
const (
	defaultStartTimeout = 2 * time.Minute // local servers read the whole prompt before they answer
	defaultIdleTimeout  = 60 * time.Second
	defaultMaxLine      = 4 << 20  // recorded lines reach tens of KiB; images and audio are not asked for
	defaultMaxReply     = 16 << 20 // framing included: a token costs some 100 to 300 bytes on the wire
)

// Limits of the transport that New makes.
const (
	dialTimeout     = 10 * time.Second
	idleConnections = 1024 // kept open to the one host, so that a busy fleet member does not dial for every call
	idleConnTimeout = 90 * time.Second
)

// Endpoint is what a provider's configuration has of every endpoint: where it is, and the bounds of its answers.
type Endpoint struct {
	BaseURL string // Up to, without, the path of the API. Default: that of the provider.
	APIKey  string // Required unless NoAuth. Providers send it; this package only keeps it out of errors.
	NoAuth  bool   // The endpoint takes no key.

	Transport    http.RoundTripper // Makes the requests. Default: one that pools connections to the host. Redirects are never followed.
	StartTimeout time.Duration     // From the request to the first byte of the answer. Default 2 minutes.
	IdleTimeout  time.Duration     // Between two pieces of the answer, keepalives included. Default 60 s.
	MaxLine      int               // Of an event or of an answer that is not streamed, in bytes. Default 4 MiB.
	MaxReply     int64             // Of a whole streamed answer, framing included, in bytes. Default 16 MiB.
}

// Config is an endpoint and what its provider knows of the protocol.
type Config struct {
	Endpoint

	URLVariable string   // The environment variable of BaseURL, which hints name.
	RequestIDs  []string // Headers that may hold the provider's id of a request, the best first.
	// Lenient takes a data line that is JSON by itself as an event, before its blank line comes, and lines of JSON
	// without "data:": servers of many makes omit them.
	Lenient bool
}

// Check returns a *messages.FieldError for a mistake. A base URL must end before the path, of which endings are tails.
func (c *Endpoint) Check(path string, tails ...string) error {
	if err := checkURL(c.BaseURL, path, tails); err != nil {
		return err
	}
	switch {
	case c.APIKey == "" && !c.NoAuth:
		return &messages.FieldError{Field: "apiKey", Reason: "is missing; say so if the endpoint takes none"}
	case c.APIKey != "" && c.NoAuth:
		return &messages.FieldError{Field: "apiKey", Reason: "is set for an endpoint that takes none"}
	case !HeaderValue(c.APIKey):
		return &messages.FieldError{Field: "apiKey", Reason: "holds a space, a line break or a character outside ASCII"}
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

func checkURL(s, path string, tails []string) error {
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
	}
	for _, tail := range append(tails, path) {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), tail) {
			return &messages.FieldError{Field: "baseURL", Reason: "must end before " + path}
		}
	}
	return nil
}

// HeaderValue reports whether s can be sent as the value of a header.
func HeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Client makes calls to one endpoint. Safe for any number of concurrent calls.
type Client struct {
	config  Config
	http    *http.Client
	secrets redactor
}

// New sets the defaults of a configuration that Check has accepted. It does not connect.
func New(c Config) *Client {
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
	return &Client{
		config: c, secrets: redactor{c.APIKey},
		http: &http.Client{
			Transport:     c.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

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
