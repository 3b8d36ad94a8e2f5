package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what an operator grants. Zero means the default.
type Config struct {
	Collections []string          `json:"collections,omitempty"` // that tools may use; default "facts"
	Scope       string            `json:"scope,omitempty"`       // who shares what is kept: ScopeAgent (default), ScopeSession or ScopeTenant
	TextBytes   int               `json:"textBytes,omitempty"`   // of one text; default 8 KiB, at most 64 KiB
	TTL         messages.Duration `json:"ttl,omitzero"`          // of a text, by default and at most; default: no end

	Now func() time.Time `json:"-"` // default: the system's clock
}

// Values of Config.Scope.
const (
	ScopeAgent   = "agent"
	ScopeSession = "session"
	ScopeTenant  = "tenant"
)

// Limits and defaults.
const (
	defaultCollection = "facts"
	maxCollections    = 32
	defaultText       = 8 << 10
	mostText          = 64 << 10
	defaultRecalled   = 5
	mostRecalled      = 50
	maxRecalled       = 32 << 10 // bytes of an answer
	mostForgotten     = 100
	mostTTL           = messages.Duration(100 * 365 * 24 * time.Hour) // of a text whose operator sets none
)

// ParseConfig reads an operator's part, checks it and fills in the defaults. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) {
	if err := strict.Decode(part, &c); err != nil {
		return Config{}, err
	}
	return c, c.check()
}

// check fills in the defaults.
func (c *Config) check() error {
	if len(c.Collections) == 0 {
		c.Collections = []string{defaultCollection}
	}
	if c.Scope == "" {
		c.Scope = ScopeAgent
	}
	if c.TextBytes == 0 {
		c.TextBytes = defaultText
	}
	for i, name := range c.Collections {
		field := fmt.Sprintf("collections[%d]", i)
		if err := strict.CheckToken(field, name); err != nil {
			return err
		}
		if slices.Index(c.Collections, name) != i {
			return &messages.FieldError{Field: field, Reason: "is named twice"}
		}
	}
	switch {
	case len(c.Collections) > maxCollections:
		return &messages.FieldError{Field: "collections", Reason: fmt.Sprintf("must be at most %d", maxCollections)}
	case !slices.Contains([]string{ScopeAgent, ScopeSession, ScopeTenant}, c.Scope):
		return &messages.FieldError{Field: "scope", Reason: "must be agent, session or tenant"}
	case c.TextBytes < 1 || c.TextBytes > mostText:
		return &messages.FieldError{Field: "textBytes", Reason: fmt.Sprintf("must be 1 to %d", mostText)}
	case c.TTL != 0 && (c.TTL < messages.Duration(time.Second) || c.TTL > mostTTL):
		return &messages.FieldError{Field: "ttl", Reason: "must be 1s to 876000h"}
	}
	return nil
}

func (c *Config) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}
