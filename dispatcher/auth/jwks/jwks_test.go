package jwks_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/dispatcher/auth/jwks"
	"github.com/longshore-run/longshore/messages/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// provider is an identity provider.
type provider struct {
	t       *testing.T
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	ed      ed25519.PrivateKey
	fetches atomic.Int32
	body    atomic.Pointer[[]byte] // of the JWKS; nil: it fails
	url     string
	now     atomic.Int64 // seconds
}

const start = 1_700_000_000

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t}
	p.now.Store(start)
	var err error
	if p.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if _, p.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.publish(p.keys()...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		body := p.body.Load()
		if body == nil {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		if string(*body) == "redirect" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		_, _ = w.Write(*body)
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	p.url = server.URL
	return p
}

func (p *provider) keys() []jose.JSONWebKey {
	return []jose.JSONWebKey{
		{Key: []byte("a symmetric key, which never counts"), KeyID: "oct", Algorithm: "HS256"},
		{Key: p.rsa.Public(), KeyID: "rsa"},
		{Key: p.ec.Public(), KeyID: "ec", Algorithm: "ES256", Use: "sig"},
		{Key: p.ed.Public(), KeyID: "ed"},
		{Key: p.rsa.Public(), KeyID: "enc", Use: "enc"},
	}
}

func (p *provider) publish(keys ...jose.JSONWebKey) {
	p.t.Helper()
	body, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		p.t.Fatal(err)
	}
	p.body.Store(&body)
}

func (p *provider) tokens(from string) *jwks.Tokens {
	return jwks.New(jwks.Config{
		From: from, Issuer: "https://id.example.com", Audience: "longshore", TenantClaim: "org.tenant", RolesClaim: "https://example.com/roles",
		Now: func() time.Time { return time.Unix(p.now.Load(), 0) },
	})
}

// claims are those of a token that counts, changed.
func claims(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": "https://id.example.com", "aud": []string{"other", "longshore"}, "sub": "ann", "iat": start, "exp": start + 600,
		"org": map[string]any{"tenant": "acme"}, "https://example.com/roles": []string{"approver", "stranger"},
	}
	for k, v := range change {
		if v == nil {
			delete(c, k)
		} else {
			c[k] = v
		}
	}
	return c
}

// sign makes a token.
func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, c map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		options.WithHeader("kid", kid)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	out, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTokensThatCount(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(p.url)
	want := &auth.Principal{Kind: auth.KindJWT, ID: "ann", Tenant: "acme", Roles: []control.AccessRole{control.RoleApprover}}
	for name, token := range map[string]string{
		"RS256":            sign(t, jose.RS256, p.rsa, "rsa", claims(nil)),
		"ES256":            sign(t, jose.ES256, p.ec, "ec", claims(nil)),
		"EdDSA":            sign(t, jose.EdDSA, p.ed, "ed", claims(nil)),
		"without a kid":    sign(t, jose.RS256, p.rsa, "", claims(nil)),
		"one audience":     sign(t, jose.RS256, p.rsa, "rsa", claims(map[string]any{"aud": "longshore"})),
		"within a minute":  sign(t, jose.RS256, p.rsa, "rsa", claims(map[string]any{"exp": start - 59})),
		"roles in a text":  sign(t, jose.RS256, p.rsa, "rsa", claims(map[string]any{"https://example.com/roles": "approver stranger"})),
		"a clock that ran": sign(t, jose.RS256, p.rsa, "rsa", claims(map[string]any{"nbf": start + 59, "iat": start + 59})),
	} {
		got, err := tokens.Authenticate(t.Context(), token, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestTokensThatDoNotCount(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(p.url)
	if err := tokens.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(p.rsa.Public())
	if err != nil {
		t.Fatal(err)
	}
	none := func(header string, c map[string]any) string {
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(body) + "."
	}
	good := sign(t, jose.EdDSA, p.ed, "ed", claims(nil))
	parts := strings.Split(good, ".")
	with := func(name string, value any) string {
		return sign(t, jose.EdDSA, p.ed, "ed", claims(map[string]any{name: value}))
	}
	own := jose.JSONWebKey{Key: stranger.Public(), KeyID: "ed"}
	embedding, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: stranger}, (&jose.SignerOptions{}).WithHeader("jwk", own).WithHeader("kid", "ed"))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := embedding.Sign([]byte(`{"iss":"https://id.example.com","aud":"longshore","sub":"ann","exp":1700000600,"org":{"tenant":"acme"},"https://example.com/roles":["admin"]}`))
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := forged.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"nothing":                  "",
		"no token":                 "a.b.c",
		"alg none":                 none(`{"alg":"none","typ":"JWT","kid":"rsa"}`, claims(nil)),
		"alg None":                 none(`{"alg":"None","kid":"rsa"}`, claims(nil)),
		"no alg":                   none(`{"kid":"rsa"}`, claims(nil)),
		"HS256 by a public key":    sign(t, jose.HS256, der, "rsa", claims(nil)),
		"HS256 by a modulus":       sign(t, jose.HS256, p.rsa.N.Bytes(), "rsa", claims(nil)),
		"HS256 by the JWKS's":      sign(t, jose.HS256, []byte("a symmetric key, which never counts"), "oct", claims(nil)),
		"RS512":                    sign(t, jose.RS512, p.rsa, "rsa", claims(nil)),
		"PS256":                    sign(t, jose.PS256, p.rsa, "rsa", claims(nil)),
		"a stranger's key":         sign(t, jose.EdDSA, stranger, "ed", claims(nil)),
		"a stranger's, no kid":     sign(t, jose.EdDSA, stranger, "", claims(nil)),
		"the key that it brings":   embedded,
		"a key for encryption":     sign(t, jose.RS256, p.rsa, "enc", claims(nil)),
		"an algorithm of another":  sign(t, jose.RS256, p.rsa, "ec", claims(nil)),
		"an unknown kid":           sign(t, jose.EdDSA, p.ed, "new", claims(nil)),
		"a long kid":               sign(t, jose.EdDSA, p.ed, strings.Repeat("k", 300), claims(nil)),
		"another body":             parts[0] + "." + strings.Split(with("sub", "bob"), ".")[1] + "." + parts[2],
		"no signature":             parts[0] + "." + parts[1] + ".",
		"four parts":               good + ".x",
		"JSON":                     `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"expired":                  with("exp", start-61),
		"no exp":                   with("exp", nil),
		"exp 0":                    with("exp", 0),
		"exp as a text":            with("exp", "never"),
		"not yet":                  with("nbf", start+61),
		"of the future":            with("iat", start+61),
		"another issuer":           with("iss", "https://id.example.com.evil.com"),
		"no issuer":                with("iss", nil),
		"another audience":         with("aud", "elsewhere"),
		"no audience":              with("aud", nil),
		"no subject":               with("sub", nil),
		"no tenant":                with("org", nil),
		"a tenant of another kind": with("org", map[string]any{"tenant": 7}),
		"a hostile tenant":         with("org", map[string]any{"tenant": "a.>"}),
		"no tenant in it":          with("org", map[string]any{}),
		"no role":                  with("https://example.com/roles", nil),
		"no role of ours":          with("https://example.com/roles", []string{"root"}),
		"an approver of all":       with("org", map[string]any{"tenant": "*"}),
	} {
		if got, err := tokens.Authenticate(t.Context(), token, false); got != nil || !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%s: %+v, %v", name, got, err)
		} else if token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the error shows the token", name)
		}
	}
}

// New keys are fetched when a token names one, but not for each token that does.
func TestKeysAreFetchedAgain(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(p.url)
	token := sign(t, jose.EdDSA, p.ed, "new", claims(nil))
	ask := func(cheap bool) error {
		_, err := tokens.Authenticate(t.Context(), token, cheap)
		return err
	}
	for range 100 {
		if err := ask(false); !errors.Is(err, auth.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("%d fetches for a kid that does not exist", n)
	}
	p.publish(jose.JSONWebKey{Key: p.ed.Public(), KeyID: "new"})
	p.now.Add(10)
	if err := ask(true); !errors.Is(err, auth.ErrUnknown) || p.fetches.Load() != 1 {
		t.Errorf("cheap: %v, %d fetches", err, p.fetches.Load())
	}
	if err := ask(false); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if _, err := tokens.Authenticate(t.Context(), sign(t, jose.RS256, p.rsa, "rsa", claims(nil)), false); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("a key that was taken back: %v", err)
	}
}

// While the provider is down, known keys stay valid for a day; tokens of other keys cannot be checked, which is not a refusal.
func TestProviderAway(t *testing.T) {
	p := newProvider(t)
	down := p.body.Swap(nil)
	tokens := p.tokens(p.url)
	token := func(kid string) string {
		return sign(t, jose.EdDSA, p.ed, kid, claims(map[string]any{"exp": start + 200_000}))
	}
	if err := tokens.Load(t.Context()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("load: %v", err)
	}
	ask := func(kid string) error {
		_, err := tokens.Authenticate(t.Context(), token(kid), false)
		return err
	}
	if err := ask("ed"); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("before it ever answered: %v", err)
	}
	p.body.Store(down)
	p.now.Add(10)
	if err := ask("ed"); err != nil {
		t.Errorf("then: %v", err)
	}
	p.body.Store(nil)
	p.now.Add(3600)
	if err := ask("ed"); err != nil {
		t.Errorf("known: %v", err)
	}
	if err := ask("new"); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("new: %v", err)
	}
	p.now.Add(86_400)
	if err := ask("ed"); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("after a day: %v", err)
	}
}

func TestDocumentsThatAreNone(t *testing.T) {
	p := newProvider(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	short, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: weak.Public(), KeyID: "rsa"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"not JSON": "<html>", "no keys": "{}", "a redirect": "redirect", "too large": strings.Repeat(" ", 1<<20+1) + "{}",
		"symmetric": `{"keys":[{"kty":"oct","k":"AAAA"}]}`, "a short RSA key": string(short), "nonsense": `{"keys":[1,"x",{"kty":"RSA"}]}`,
	} {
		data := []byte(body)
		p.body.Store(&data)
		if err := p.tokens(p.url).Load(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestKeysInAFile(t *testing.T) {
	p := newProvider(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := p.tokens(file).Load(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, *p.body.Load(), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := p.tokens(file)
	if err := tokens.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Authenticate(t.Context(), sign(t, jose.ES256, p.ec, "ec", claims(nil)), false); err != nil {
		t.Error(err)
	}
}
