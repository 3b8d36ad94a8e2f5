package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what an operator grants.
type Config struct {
	// Hosts that may be called, as hosts.Parse reads them. One without a port may be called on the port of the scheme alone.
	Hosts     []string `json:"hosts"`
	Methods   []string `json:"methods,omitzero"`    // default GET and HEAD
	Private   []string `json:"private,omitzero"`    // of the hosts: those that may lead to addresses beyond the open internet
	PlainHTTP []string `json:"plainHttp,omitzero"`  // of the hosts: those that may be called over http too
	UserAgent string   `json:"userAgent,omitempty"` // default "longshore"

	Timeout messages.Duration `json:"timeout,omitzero"`  // of a call with its redirects and retries; default 30 s
	MaxBody int64             `json:"maxBody,omitempty"` // bytes of a body after decompression; default 5 MiB
}

// Limits and defaults of Config.
const (
	defaultAgent   = "longshore"
	defaultTimeout = 30 * time.Second
	mostTimeout    = 10 * time.Minute
	defaultBody    = 5 << 20
	mostBody       = 64 << 20
	maxAgent       = 256
	maxMethods     = 32
)

// policy is what the operator grants, ready to judge by.
type policy struct {
	hosts, private, plain hosts.List
	methods               []string
}

// newPolicy checks a configuration and fills in its defaults. The error is a *messages.FieldError.
func newPolicy(c *Config) (*policy, error) {
	wrong := func(field, format string, args ...any) error {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	p := &policy{}
	for _, list := range []struct {
		field string
		from  []string
		to    *hosts.List
	}{{"hosts", c.Hosts, &p.hosts}, {"private", c.Private, &p.private}, {"plainHttp", c.PlainHTTP, &p.plain}} {
		var err error
		if *list.to, err = hosts.Parse(list.from); err != nil {
			return nil, wrong(list.field, "%s", err.Error())
		}
	}
	if p.hosts.Empty() {
		return nil, wrong("hosts", "is missing: list the hosts that may be called")
	}
	if c.Methods == nil {
		c.Methods = []string{http.MethodGet, http.MethodHead}
	}
	if len(c.Methods) == 0 || len(c.Methods) > maxMethods {
		return nil, wrong("methods", "must name 1 to %d methods", maxMethods)
	}
	for i, m := range c.Methods {
		if m == "" || strings.ContainsFunc(m, func(r rune) bool { return r < 'A' || r > 'Z' }) {
			return nil, wrong(fmt.Sprintf("methods[%d]", i), "must be a method in capitals, such as GET")
		}
		if m == http.MethodConnect || m == http.MethodTrace {
			return nil, wrong(fmt.Sprintf("methods[%d]", i), "%s cannot be granted: it is for proxies and echoes the request", m)
		}
	}
	p.methods = slices.Clone(c.Methods)
	if c.UserAgent == "" {
		c.UserAgent = defaultAgent
	}
	if len(c.UserAgent) > maxAgent || strings.ContainsFunc(c.UserAgent, unprintable) {
		return nil, wrong("userAgent", "must be printable ASCII of %d characters at most", maxAgent)
	}
	if c.Timeout == 0 {
		c.Timeout = messages.Duration(defaultTimeout)
	}
	if c.Timeout < messages.Duration(time.Second) || c.Timeout > messages.Duration(mostTimeout) {
		return nil, wrong("timeout", "must be 1s to %v", mostTimeout)
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultBody
	}
	if c.MaxBody < 1 || c.MaxBody > mostBody {
		return nil, wrong("maxBody", "must be 1 to %d bytes", mostBody)
	}
	return p, nil
}

// ParseConfig reads an operator's part. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) { return c, strict.Decode(part, &c) }
