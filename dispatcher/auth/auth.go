// Package auth identifies callers over HTTP and decides what they may do.
//
// An Authenticator finds the Principal of a bearer token; the leaves apikey and jwks are two. Principal.May is the one
// place that decides about a permission. Denials bounds and announces what was refused. The package itself knows neither
// HTTP nor NATS.
package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Errors of an Authenticator.
var (
	// ErrUnknown means that the token is not valid, or no longer. The error that wraps it says why, and is shown to the caller.
	ErrUnknown = errors.New("the token is not valid")
	// ErrUnavailable means that the token cannot be checked at the moment.
	ErrUnavailable = errors.New("the token cannot be checked now")
)

// Kind says what a principal has shown.
type Kind string

// Kinds.
const (
	KindKey Kind = "key"
	KindJWT Kind = "jwt"
)

// Principal is an authenticated caller.
type Principal struct {
	Kind   Kind
	ID     string // of the key, or the subject of the JWT
	Name   string // for people; may be empty
	Tenant string // or control.AllTenants
	Roles  []control.AccessRole
}

// String names a principal in records and events: "key:abc123 (ci)", "jwt:ann@example.com".
func (p *Principal) String() string {
	const most = 128 // bytes of each part
	s := string(p.Kind) + ":" + strict.Clip(p.ID, most)
	if p.Name != "" {
		s += " (" + strict.Clip(p.Name, most/2) + ")"
	}
	return s
}

// AllTenants reports whether the principal may act for every tenant.
func (p *Principal) AllTenants() bool { return p.Tenant == control.AllTenants }

// May reports whether the principal may do what needs the permission.
func (p *Principal) May(what control.Permission) bool {
	if what.FleetWide() && !p.AllTenants() {
		return false
	}
	return slices.ContainsFunc(what.Roles(), func(r control.AccessRole) bool { return slices.Contains(p.Roles, r) })
}

// Includes reports whether the principal may do all that another one may, for every tenant of that one.
func (p *Principal) Includes(other *Principal) bool {
	if !p.AllTenants() && p.Tenant != other.Tenant {
		return false
	}
	return !slices.ContainsFunc(control.Permissions(), func(what control.Permission) bool { return other.May(what) && !p.May(what) })
}

// Authenticator tells whose a bearer token is.
type Authenticator interface {
	// Authenticate returns the principal of a token. An error is ErrUnknown or ErrUnavailable. With cheap it uses only what is in
	// memory and sends no request; a token that is not cached is ErrUnknown.
	Authenticate(ctx context.Context, token string, cheap bool) (*Principal, error)
}

// Any tries Keys for tokens that look like one of ours, and Tokens for others. Either may be nil.
type Any struct {
	Keys   Authenticator
	Tokens Authenticator
}

var _ Authenticator = Any{}

// KeyPrefix begins every API key.
const KeyPrefix = "lsk_"

// maxToken bounds a token, in bytes.
const maxToken = 8 << 10

// lookup bounds how long one token may take.
const lookup = 10 * time.Second

// Authenticate implements Authenticator.
func (a Any) Authenticate(ctx context.Context, token string, cheap bool) (*Principal, error) {
	by := a.Tokens
	if len(token) > len(KeyPrefix) && token[:len(KeyPrefix)] == KeyPrefix {
		by = a.Keys
	}
	if by == nil || len(token) > maxToken {
		return nil, ErrUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	return by.Authenticate(ctx, token, cheap)
}
