// Package credential keeps the secrets that an operator gave names, so that a tool can use one which no model, agent, record
// or event ever sees. An agent names a credential; a tool adds it to a request last, after policy has judged the
// request, and only for the hosts that the operator named with it.
package credential

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is a credential as an operator writes it. The secret itself stands elsewhere: in a variable or in a file.
type Config struct {
	Env  string `json:"env,omitempty"`  // variable that holds the secret
	File string `json:"file,omitempty"` // or the file that does; white space around it does not count
	// Hosts that the secret may be sent to over HTTP, as hosts.Parse reads them. Without any it is not for HTTP.
	Hosts  []string `json:"hosts,omitempty"`
	Header string   `json:"header,omitempty"` // default Authorization
	Prefix *string  `json:"prefix,omitempty"` // before the secret; default "Bearer " in Authorization, else nothing
}

// Check returns a *messages.FieldError about the credential that stands at a field.
func (c *Config) Check(field string) error {
	wrong := func(sub, reason string) error { return &messages.FieldError{Field: field + "." + sub, Reason: reason} }
	switch {
	case c.Env == "" && c.File == "":
		return wrong("env", "is missing: name the variable that holds the secret, or a file")
	case c.Env != "" && c.File != "":
		return wrong("file", "env is set too: the secret stands in one place")
	case c.Env != "" && !variable(c.Env):
		return wrong("env", "must be the name of the variable that holds the secret: letters, digits and _. A secret does not belong in this file")
	case strings.ContainsFunc(c.Header, func(r rune) bool { return !tokenRune(r) }):
		return wrong("header", "is not the name of a header")
	case c.Prefix != nil && strings.ContainsFunc(*c.Prefix, unprintable):
		return wrong("prefix", "must be printable ASCII")
	case len(c.Hosts) == 0 && (c.Header != "" || c.Prefix != nil):
		return wrong("hosts", "is missing: a header is sent to the hosts that are listed, and there are none")
	}
	if _, err := hosts.Parse(c.Hosts); err != nil {
		return wrong("hosts", err.Error())
	}
	return nil
}

func tokenRune(r rune) bool {
	return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// variable reports whether a text may be the name of a variable.
func variable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// Errors of Add. The text names the credential, if there is one, and the host, and is fit for a model.
var (
	ErrUnknown = errors.New("is not the name of a credential")
	ErrHost    = errors.New("the credential is not for this host")
)

// Store holds the credentials of a worker. Safe for concurrent use. A nil Store has none.
type Store struct{ named map[string]*secret }

type secret struct {
	value, header, prefix string
	hosts                 hosts.List
}

// New returns a Store of checked configurations, whose secrets get looks up.
func New(configs map[string]Config, get func(Config) (string, error)) (*Store, error) {
	s := &Store{make(map[string]*secret, len(configs))}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		c := configs[name]
		field := "credentials." + strict.Shown(name)
		if err := strict.CheckToken(field, name); err != nil {
			return nil, err
		}
		if err := c.Check(field); err != nil {
			return nil, err
		}
		value, err := get(c)
		if err != nil {
			return nil, &messages.FieldError{Field: field, Reason: err.Error()}
		}
		n := &secret{value: value, header: c.Header}
		if n.header == "" {
			n.header, n.prefix = "Authorization", "Bearer "
		}
		if c.Prefix != nil {
			n.prefix = *c.Prefix
		}
		if n.hosts, err = hosts.Parse(c.Hosts); err != nil {
			return nil, &messages.FieldError{Field: field + ".hosts", Reason: err.Error()}
		}
		if !n.hosts.Empty() && strings.ContainsFunc(value, unprintable) {
			return nil, &messages.FieldError{Field: field, Reason: "holds a line break or a character outside ASCII, which no header can carry"}
		}
		s.named[name] = n
	}
	return s, nil
}

// Names are those of all credentials, sorted.
func (s *Store) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.named))
}

// Has reports whether there is a credential of that name.
func (s *Store) Has(name string) bool { return s != nil && s.named[name] != nil }

// Values are the secrets, to be redacted wherever text leaves the worker.
func (s *Store) Values() []string {
	var all []string
	for _, name := range s.Names() {
		all = append(all, s.named[name].value)
	}
	return all
}

// Redact takes a secret out of an answer of a server that shows what it was sent. What leaves the worker is redacted anyway; a
// tool that cuts an answer does it before, for half a secret is not known as one.
func (s *Store) Redact(name string, answer []byte) []byte {
	if !s.Has(name) {
		return answer
	}
	return bytes.ReplaceAll(answer, []byte(s.named[name].value), []byte("[redacted]"))
}

// unknown is the error of a name that no credential has. It does not repeat the name: those who mistake the field for the place of
// the secret write the secret there.
func (s *Store) unknown() error {
	if names := s.Names(); len(names) > 0 {
		return fmt.Errorf("%w; known: %s", ErrUnknown, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w: spec.credentials has none", ErrUnknown)
}

// Secret returns a secret for a connection that is not HTTP and that the operator configured to use it. It is not for
// values that come from a model or an agent.
func (s *Store) Secret(name string) (string, error) {
	if !s.Has(name) {
		return "", s.unknown()
	}
	return s.named[name].value, nil
}

// Add adds a credential to a request, for each hop anew: it wraps ErrHost when the operator did not name the host with it, or
// when the request would carry it in clear text to anything but the machine itself.
func (s *Store) Add(name string, req *http.Request) error {
	n, err := s.sent(name, req)
	if err != nil {
		return err
	}
	req.Header.Set(n.header, n.prefix+n.value)
	return nil
}

// AddPassword is Add for servers that take a token as a password alone, as those of git do. The secret may be user:password; without
// a user it is given one that the large hosts take for tokens.
func (s *Store) AddPassword(name string, req *http.Request) error {
	const anyUser = "x-access-token"
	n, err := s.sent(name, req)
	if err != nil {
		return err
	}
	user, password, ok := strings.Cut(n.value, ":")
	if !ok {
		user, password = anyUser, n.value
	}
	req.SetBasicAuth(user, password)
	return nil
}

// sent is a credential that may be sent with a request.
func (s *Store) sent(name string, req *http.Request) (*secret, error) {
	if !s.Has(name) {
		return nil, s.unknown()
	}
	n, at := s.named[name], hosts.Endpoint(req.URL)
	if !n.hosts.Lists(at) {
		return nil, fmt.Errorf("%q: %w: %s", name, ErrHost, at)
	}
	if req.URL.Scheme != "https" && !loopback(at) {
		return nil, fmt.Errorf("%q: %w: it is sent over https alone", name, ErrHost)
	}
	return n, nil
}

// loopback reports whether an endpoint is an address of this machine. A name never is: it may lead elsewhere.
func loopback(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
