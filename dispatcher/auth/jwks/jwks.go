// Package jwks knows people and programs by JSON Web Tokens that an identity provider signed.
//
// The provider's public keys come from a JWKS document, by HTTPS or from a file. RS256, ES256 and EdDSA count, and
// nothing else.
package jwks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages/control"
)

// Config is fixed for the life of Tokens.
type Config struct {
	From        string           // https:// address of the JWKS, or a file; http:// only of this machine
	Issuer      string           // that tokens must name
	Audience    string           // that must be among those of a token
	TenantClaim string           // default "tenant"
	RolesClaim  string           // default "roles"
	Now         func() time.Time // default: time.Now
}

const (
	leeway    = time.Minute // that clocks may differ
	maxRoles  = 100         // of a token; others are not ours
	maxKeyID  = 256
	claimDots = "." // between the names of claims within claims
)

// Tokens authenticates JWTs. Safe for concurrent use.
type Tokens struct {
	cfg  Config
	keys *keySet
}

var _ auth.Authenticator = (*Tokens)(nil)

// New returns Tokens. Load reads the keys for the first time; else the first token does.
func New(cfg Config) *Tokens {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.TenantClaim == "" {
		cfg.TenantClaim = "tenant"
	}
	if cfg.RolesClaim == "" {
		cfg.RolesClaim = "roles"
	}
	return &Tokens{cfg: cfg, keys: newKeySet(cfg.From, cfg.Now)}
}

// Load reads the keys, so that a mistake shows early.
func (t *Tokens) Load(ctx context.Context) error { return t.keys.refresh(ctx) }

// Run reads the keys anew every ten minutes until ctx ends; failed is called when that did not work.
func (t *Tokens) Run(ctx context.Context, failed func(error)) { t.keys.keep(ctx, failed) }

// algorithms that count. HMAC is not among them: its secret would be a public key.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}
}

// unknown is auth.ErrUnknown with a reason, which is shown to who asked.
func unknown(why string) error { return fmt.Errorf("%w: %s", auth.ErrUnknown, why) }

// Authenticate implements auth.Authenticator.
func (t *Tokens) Authenticate(ctx context.Context, token string, cheap bool) (*auth.Principal, error) {
	if strings.Count(token, ".") != 2 {
		return nil, auth.ErrUnknown
	}
	parsed, err := jwt.ParseSigned(token, algorithms())
	if err != nil || len(parsed.Headers) != 1 {
		return nil, unknown("it is no JWT signed with RS256, ES256 or EdDSA")
	}
	kid := parsed.Headers[0].KeyID
	if len(kid) > maxKeyID {
		return nil, auth.ErrUnknown
	}
	keys, err := t.keys.find(ctx, kid, cheap)
	if err != nil {
		return nil, err
	}
	var (
		std    jwt.Claims
		claims map[string]json.RawMessage
	)
	if !slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		return fits(k, parsed.Headers[0].Algorithm) && parsed.Claims(k.Key, &std, &claims) == nil
	}) {
		return nil, unknown("its signature is of no known key")
	}
	if err := t.check(&std); err != nil {
		return nil, err
	}
	return t.principal(&std, claims)
}

// fits reports whether a key is for an algorithm.
func fits(k jose.JSONWebKey, algorithm string) bool {
	return (k.Algorithm == "" || k.Algorithm == algorithm) && (k.Use == "" || k.Use == "sig")
}

func (t *Tokens) check(c *jwt.Claims) error {
	if c.Expiry == nil {
		return unknown("it has no exp")
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: t.cfg.Issuer, AnyAudience: jwt.Audience{t.cfg.Audience}, Time: t.cfg.Now()}, leeway)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrExpired):
		return unknown("it has expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return unknown("it is not valid yet")
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return unknown("it is of another issuer")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return unknown("it is for another audience")
	default:
		return auth.ErrUnknown
	}
}

// principal reads the claims that are ours. Roles that are not ours are left out.
func (t *Tokens) principal(std *jwt.Claims, claims map[string]json.RawMessage) (*auth.Principal, error) {
	p := &auth.Principal{Kind: auth.KindJWT, ID: std.Subject}
	if p.ID == "" {
		return nil, unknown("it has no sub")
	}
	if err := json.Unmarshal(claim(claims, t.cfg.TenantClaim), &p.Tenant); err != nil {
		return nil, unknown("it names no tenant")
	}
	for _, r := range words(claim(claims, t.cfg.RolesClaim)) {
		if role := control.AccessRole(r); slices.Contains(control.AccessRoles(), role) && !slices.Contains(p.Roles, role) {
			p.Roles = append(p.Roles, role)
		}
	}
	if len(p.Roles) == 0 {
		return nil, unknown("it names no role")
	}
	if err := control.CheckAccess(p.Tenant, p.Roles); err != nil {
		return nil, unknown("its tenant or roles are not valid")
	}
	return p, nil
}

// claim is a claim by its name or, where there is none, by the names of the claims that it is within. It is never empty.
func claim(claims map[string]json.RawMessage, name string) json.RawMessage {
	if v, ok := claims[name]; ok {
		return v
	}
	outer, inner, ok := strings.Cut(name, claimDots)
	if !ok {
		return json.RawMessage("{}")
	}
	var within map[string]json.RawMessage
	if json.Unmarshal(claims[outer], &within) != nil {
		return json.RawMessage("{}")
	}
	return claim(within, inner)
}

// words are those of a list, or of a text with spaces between them.
func words(v json.RawMessage) []string {
	var list []string
	if json.Unmarshal(v, &list) != nil {
		var text string
		if json.Unmarshal(v, &text) != nil {
			return nil
		}
		list = strings.Fields(text)
	}
	return list[:min(len(list), maxRoles)]
}
