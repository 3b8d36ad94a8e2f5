package fleet

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/dispatcher/auth/apikey"
	"github.com/longshore-run/longshore/dispatcher/auth/jwks"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/observability"
)

// gate is who may ask a dispatcher over HTTP, and what must run for that.
type gate struct {
	api  *api.Access // nil: no authentication
	jwts *jwks.Tokens
	log  *slog.Logger
}

// access makes the gate that the settings ask for.
func access(ctx context.Context, s settings.Access, keys *catalog.Catalog, denials *auth.Denials, browsers api.Cookies, log *slog.Logger) (*gate, error) {
	g := &gate{log: log}
	if !s.On() {
		return g, nil
	}
	who := auth.Any{Keys: apikey.New(keys, nil)}
	if s.JWKS != "" {
		g.jwts = jwks.New(jwks.Config{
			From: s.JWKS, Issuer: s.Issuer, Audience: s.Audience, TenantClaim: s.TenantClaim, RolesClaim: s.RolesClaim,
		})
		if err := g.jwts.Load(ctx); err != nil {
			if !strings.Contains(s.JWKS, "://") {
				return nil, settings.Errorf("LONGSHORE_JWKS_URL: %v", err)
			}
			log.WarnContext(ctx, "no JWT counts until the identity provider answers", "err", err)
		}
		who.Tokens = g.jwts
	}
	g.api = &api.Access{Authenticator: who, Denials: denials, Cookies: browsers}
	return g, nil
}

// cookies seals those of browsers: with the keyset, which all dispatchers have, or else with a key of this process. Then a browser must
// sign in again after a restart, and when another dispatcher answers.
type cookies struct {
	ring *keyring.Keyring
	own  cipher.AEAD
}

// cookieTenant is what the keyring knows the cookies by. They belong to no tenant.
const cookieTenant = "_console"

func newCookies(ring *keyring.Keyring) (*cookies, error) {
	if ring.On() {
		return &cookies{ring: ring}, nil
	}
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("make a key for cookies: %w", err)
	}
	own, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make a key for cookies: %w", err)
	}
	return &cookies{own: own}, nil
}

// Seal implements api.Cookies.
func (c *cookies) Seal(ctx context.Context, plain []byte) ([]byte, error) {
	if c.own != nil {
		nonce := make([]byte, c.own.NonceSize())
		_, _ = rand.Read(nonce)
		return c.own.Seal(nonce, nonce, plain, nil), nil
	}
	return c.ring.Seal(ctx, cookieTenant, plain, keyring.Bind("console session"))
}

// Open implements api.Cookies.
func (c *cookies) Open(ctx context.Context, sealed []byte) ([]byte, error) {
	if c.own != nil {
		n := c.own.NonceSize()
		if len(sealed) < n {
			return nil, keyring.ErrDamaged
		}
		return c.own.Open(nil, sealed[:n], sealed[n:], nil)
	}
	if !keyring.Sealed(sealed) {
		return nil, keyring.ErrDamaged
	}
	return c.ring.Open(ctx, cookieTenant, sealed, keyring.Bind("console session"))
}

// run keeps the gate until ctx ends.
func (g *gate) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if g.jwts != nil {
		group.Go(func() error {
			g.jwts.Run(ctx, func(err error) { g.log.WarnContext(ctx, "the keys of the identity provider may be old", "err", err) })
			return nil
		})
	}
	return group.Wait()
}

// certificate reads that of the HTTP server; nil without one.
func certificate(ctx context.Context, s settings.Access, addr string, log *slog.Logger) (*observability.Certificate, error) {
	if s.TLSCert == "" {
		if s.On() && settings.IsExposed(addr) {
			log.WarnContext(ctx, "keys travel in the clear, unless something before this address speaks TLS", "http", addr)
		}
		return nil, nil
	}
	c, err := observability.LoadCertificate(s.TLSCert, s.TLSKey, nil, log)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_TLS_CERT: %v", err)
	}
	return c, nil
}

// checkAddresses refuses invalid listen addresses, and exposed ones while authentication is disabled.
func (cfg *DevConfig) checkAddresses() error {
	for _, a := range []struct{ flag, addr string }{{"--addr", cfg.HTTPAddr}, {"--nats-addr", cfg.NATSAddr}, {"--redis-addr", cfg.RedisAddr}} {
		if a.addr == embedded.NoListen {
			continue
		}
		if err := settings.CheckListen(a.flag, a.addr); err != nil {
			return err
		}
	}
	if cfg.HTTPAddr != "" {
		if err := cfg.CheckAddress(cfg.HTTPAddr); err != nil {
			return err
		}
	}
	for _, a := range []struct{ flag, addr, instead string }{
		{"--nats-addr", cfg.NATSAddr, "a NATS server of your own"}, {"--redis-addr", cfg.RedisAddr, "a Redis of your own"},
	} {
		if a.addr == "" || !settings.IsExposed(a.addr) || cfg.Auth == settings.AuthBehindProxy {
			continue
		}
		return settings.Errorf("%s %s is not loopback, and what listens there knows no users: use `longshore dispatcher` and `longshore worker` with %s", a.flag, a.addr, a.instead)
	}
	return nil
}
