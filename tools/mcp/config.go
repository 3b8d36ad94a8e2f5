package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/credential"
)

// Config is what an operator grants.
type Config struct {
	// Lock is the file with the definitions of tools that models are told, relative to the operator's file.
	Lock    string            `json:"lock,omitempty"` // default DefaultLock
	Servers map[string]Server `json:"servers"`        // by a name of letters, digits and -, which begins the names of its tools
}

// Server is one server: a command for stdio, or a URL.
type Server struct {
	Command []string          `json:"command,omitzero"` // program and arguments, without a shell
	Env     map[string]string `json:"env,omitzero"`     // in addition to PATH and HOME of the worker
	Secrets map[string]string `json:"secrets,omitzero"` // variables that hold a credential: its name
	Dir     string            `json:"dir,omitempty"`    // working directory; default that of the operator's file

	URL        string `json:"url,omitempty"`        // of the one endpoint of a server with streamable HTTP
	Credential string `json:"credential,omitempty"` // added to each request
	OAuth      *OAuth `json:"oauth,omitempty"`      // or a token that is asked for with client credentials

	Tools     []string                   `json:"tools,omitzero"` // by the server's names; default all that are pinned
	Effects   map[string]messages.Effect `json:"effects,omitzero"`
	Resources bool                       `json:"resources,omitempty"` // may be listed and read
	Prompts   bool                       `json:"prompts,omitempty"`

	Timeout messages.Duration `json:"timeout,omitzero"` // of a call; default 30 s
	Bytes   int               `json:"bytes,omitempty"`  // of one message of the server; default 4 MiB
}

// OAuth is the client credentials grant.
type OAuth struct {
	TokenURL   string   `json:"tokenUrl"`
	ClientID   string   `json:"clientId"`
	Credential string   `json:"credential"` // whose secret is the client's; its hosts must list that of tokenUrl
	Scopes     []string `json:"scopes,omitzero"`
}

// DefaultLock is the name of the lock file.
const DefaultLock = "mcp.lock.json"

// Limits and defaults of Config.
const (
	maxServers     = 64
	maxServerName  = 32
	maxArgs        = 64
	maxArg         = 4 << 10
	defaultTimeout = 30 * time.Second
	mostTimeout    = 10 * time.Minute
	defaultBytes   = 4 << 20
	leastBytes     = 64 << 10
	mostBytes      = 64 << 20
)

// ParseConfig reads and checks an operator's part, and fills in its defaults. The error is a *messages.FieldError.
func ParseConfig(part []byte, credentials *credential.Store) (Config, error) {
	var c Config
	if err := strict.Decode(part, &c); err != nil {
		return c, err
	}
	if c.Lock == "" {
		c.Lock = DefaultLock
	}
	if len(c.Servers) == 0 || len(c.Servers) > maxServers {
		return c, wrong("servers", "must name 1 to %d servers", maxServers)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		field := "servers." + strict.Shown(name)
		if !strict.ValidToken(name) || len(name) > maxServerName || strings.Contains(name, "_") {
			return c, wrong(field, "the name must be 1 to %d letters, digits and -: those of tools begin with it and _", maxServerName)
		}
		s := c.Servers[name]
		if err := s.check(credentials); err != nil {
			return c, strict.Under(field, err)
		}
		c.Servers[name] = s
	}
	return c, nil
}

func (s *Server) check(credentials *credential.Store) error {
	var err error
	switch {
	case s.Command == nil && s.URL == "":
		return wrong("command", "is missing: name the program and its arguments, or a url")
	case s.Command != nil && s.URL != "":
		return wrong("url", "command is set too: a server is a process or an address")
	case s.URL != "":
		err = s.checkAddress(credentials)
	default:
		err = s.checkCommand(credentials)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Effects)) {
		switch s.Effects[name] {
		case messages.EffectRead, messages.EffectIdempotent, messages.EffectOnce:
		default:
			return wrong("effects."+strict.Shown(name), "must be read, idempotent or once")
		}
	}
	if s.Timeout == 0 {
		s.Timeout = messages.Duration(defaultTimeout)
	}
	if s.Timeout < messages.Duration(time.Second) || s.Timeout > messages.Duration(mostTimeout) {
		return wrong("timeout", "must be 1s to %v", mostTimeout)
	}
	if s.Bytes == 0 {
		s.Bytes = defaultBytes
	}
	if s.Bytes < leastBytes || s.Bytes > mostBytes {
		return wrong("bytes", "must be %d to %d", leastBytes, mostBytes)
	}
	return nil
}

func (s *Server) checkCommand(credentials *credential.Store) error {
	switch {
	case s.Credential != "":
		return wrong("credential", "is for a url; secrets gives a process one in a variable")
	case s.OAuth != nil:
		return wrong("oauth", "is for a url")
	case len(s.Command) == 0 || s.Command[0] == "" || len(s.Command) > maxArgs:
		return wrong("command", "must be a program and up to %d arguments", maxArgs-1)
	}
	for i, arg := range s.Command {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			return wrong(fmt.Sprintf("command[%d]", i), "must be text of %d bytes at most", maxArg)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if err := checkVariable("env", name, s.Env[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		value, err := credentials.Secret(s.Secrets[name])
		if err != nil {
			return wrong("secrets."+strict.Shown(name), "%s", err.Error())
		}
		if err := checkVariable("secrets", name, value); err != nil {
			return err
		}
		if _, twice := s.Env[name]; twice {
			return wrong("secrets."+strict.Shown(name), "stands in env too")
		}
	}
	return nil
}

func checkVariable(field, name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' }) {
		return wrong(field+"."+strict.Shown(name), "is not the name of a variable")
	}
	if strings.ContainsRune(value, 0) {
		return wrong(field+"."+strict.Shown(name), "holds a zero byte")
	}
	return nil
}

func (s *Server) checkAddress(credentials *credential.Store) error {
	switch {
	case s.Env != nil || s.Secrets != nil:
		return wrong("env", "and secrets are for a command")
	case s.Dir != "":
		return wrong("dir", "is for a command")
	}
	u, err := parseURL(s.URL)
	if err != nil {
		return wrong("url", "%s", err.Error())
	}
	if s.OAuth == nil {
		if s.Credential == "" {
			return nil
		}
		if err := credentials.Add(s.Credential, &http.Request{URL: u, Header: http.Header{}}); err != nil { // a request that is not sent
			return wrong("credential", "%s", err.Error())
		}
		return nil
	}
	if s.Credential != "" {
		return wrong("credential", "oauth is set too: a request carries one of them")
	}
	token, err := parseURL(s.OAuth.TokenURL)
	if err != nil {
		return wrong("oauth.tokenUrl", "%s", err.Error())
	}
	if s.OAuth.ClientID == "" {
		return wrong("oauth.clientId", "is missing")
	}
	if err := credentials.Add(s.OAuth.Credential, &http.Request{URL: token, Header: http.Header{}}); err != nil {
		return wrong("oauth.credential", "%s", err.Error())
	}
	if !carries(u) {
		return wrong("url", "must begin with https://: the token would be sent in clear text")
	}
	return nil
}

// parseURL reads the address of an endpoint.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("must be an address such as https://mcp.example.com/mcp, without a user")
	}
	return u, nil
}
