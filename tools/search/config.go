package search

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/outbound"
)

// Config is what an operator grants.
type Config struct {
	Provider   string `json:"provider"`           // "brave" or "tavily"
	Credential string `json:"credential"`         // name of the credential for the provider
	Endpoint   string `json:"endpoint,omitempty"` // address of the search; default the provider's own
	UserAgent  string `json:"userAgent,omitempty"`

	Timeout messages.Duration `json:"timeout,omitzero"` // of a search with its retries; default 20 s
}

const (
	defaultTimeout = 20 * time.Second
	mostTimeout    = 2 * time.Minute
	maxAgent       = 256
)

// ParseConfig reads an operator's part. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) { return c, strict.Decode(part, &c) }

// newSearcher checks a configuration and fills in its defaults. The error is a *messages.FieldError.
func newSearcher(c Config, credentials *credential.Store) (*searcher, error) {
	wrong := func(field, format string, args ...any) error {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	p, ok := providers()[c.Provider]
	if !ok {
		return nil, wrong("provider", "must be one of %s", strings.Join(slices.Sorted(maps.Keys(providers())), ", "))
	}
	if c.Credential == "" {
		return nil, wrong("credential", "is missing: name the credential for the provider")
	}
	if c.Endpoint == "" {
		c.Endpoint = p.endpoint
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, wrong("endpoint", "must be an address such as %s", p.endpoint)
	}
	if c.UserAgent == "" {
		c.UserAgent = "longshore"
	}
	if len(c.UserAgent) > maxAgent || strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, wrong("userAgent", "must be printable ASCII of %d characters at most", maxAgent)
	}
	if c.Timeout == 0 {
		c.Timeout = messages.Duration(defaultTimeout)
	}
	if c.Timeout < messages.Duration(time.Second) || c.Timeout > messages.Duration(mostTimeout) {
		return nil, wrong("timeout", "must be 1s to %v", mostTimeout)
	}
	req := &http.Request{URL: u, Header: http.Header{}}        // which is not sent
	if err := credentials.Add(c.Credential, req); err != nil { // which is so over http, except to the machine itself
		return nil, wrong("credential", "%s", err.Error())
	}
	if req.Header.Get(p.header) == "" {
		return nil, wrong("credential", "%q is not sent in the header %s, in which the provider wants it: set header of the credential", c.Credential, p.header)
	}
	// An operator who names an address means it, wherever it leads, except to where clouds keep credentials of machines.
	chosen := hosts.List{}
	if c.Endpoint != p.endpoint {
		if chosen, err = hosts.Parse([]string{hosts.Endpoint(u)}); err != nil {
			return nil, wrong("endpoint", "%s", err.Error())
		}
	}
	return &searcher{cfg: c, provider: p, credentials: credentials, client: outbound.New(outbound.Guard(chosen, chosen), maxBody)}, nil
}
