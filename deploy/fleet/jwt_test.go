//go:build unix

package fleet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// identity is an identity provider with one key.
type identity struct {
	t   *testing.T
	key *ecdsa.PrivateKey
	url string
}

func newIdentity(t *testing.T) *identity {
	t.Helper()
	p := &identity{t: t, key: newECKey(t)}
	body, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// claimsOf are those of a token that counts, with changes; nil takes one away.
func claimsOf(sub, role string, change map[string]any) map[string]any {
	c := map[string]any{
		"iss": "https://id.example.com", "aud": "longshore", "sub": sub, "exp": time.Now().Add(time.Hour).Unix(),
		"tenant": messages.DefaultTenant, "roles": []string{role},
	}
	maps.Copy(c, change)
	for k, v := range c {
		if v == nil {
			delete(c, k)
		}
	}
	return c
}

// token signs claims with a key, which need not be the provider's.
func (p *identity) token(key *ecdsa.PrivateKey, claims map[string]any) string {
	p.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return token
}

// unsigned is a token that says that it needs no signature.
func (p *identity) unsigned(claims map[string]any) string {
	p.t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(body) + "."
}

// certified writes the files of a server of this machine, and returns what trusts it.
func certified(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key := newECKey(t)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "longshore"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	for name, data := range map[string][]byte{certFile: chain, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(chain)
	return certFile, keyFile, roots
}

// Tokens of an identity provider through a whole dispatcher that speaks HTTPS alone.
func TestTokensOverHTTPS(t *testing.T) {
	t.Parallel()
	h, provider := newControlHall(t), newIdentity(t)
	cert, key, roots := certified(t)
	h.env = append(h.env, "LONGSHORE_AUTH=on", "LONGSHORE_JWKS_URL="+provider.url, "LONGSHORE_JWT_ISSUER=https://id.example.com",
		"LONGSHORE_JWT_AUDIENCE=longshore", "LONGSHORE_TLS_CERT="+cert, "LONGSHORE_TLS_KEY="+key)
	guarded := h.dispatcher("guarded", h.nats)
	h.worker("worker")
	var ready struct {
		Data struct {
			HTTP string `json:"http"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(guarded.line(`"message":"ready"`)), &ready); err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	ask := func(method, path, token, tenant, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+ready.Data.HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if tenant != "" {
			req.Header.Set("Longshore-Tenant", tenant)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(data)
	}
	of := func(role string) string {
		return provider.token(provider.key, claimsOf(role+"@example.com", role, nil))
	}

	t.Run("who counts", func(t *testing.T) {
		count := func(change map[string]any) map[string]any { return claimsOf("ann@example.com", "viewer", change) }
		for name, tc := range map[string]struct {
			token  string
			tenant string
			want   int
		}{
			"a viewer":                {provider.token(provider.key, count(nil)), "", http.StatusOK},
			"no token":                {"", "", http.StatusUnauthorized},
			"expired":                 {provider.token(provider.key, count(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})), "", http.StatusUnauthorized},
			"that never expires":      {provider.token(provider.key, count(map[string]any{"exp": nil})), "", http.StatusUnauthorized},
			"for another audience":    {provider.token(provider.key, count(map[string]any{"aud": "elsewhere"})), "", http.StatusUnauthorized},
			"of another issuer":       {provider.token(provider.key, count(map[string]any{"iss": "https://evil.example.com"})), "", http.StatusUnauthorized},
			"signed with another key": {provider.token(newECKey(t), count(nil)), "", http.StatusUnauthorized},
			"without a signature":     {provider.unsigned(count(nil)), "", http.StatusUnauthorized},
			"for another tenant":      {provider.token(provider.key, count(nil)), "other", http.StatusForbidden},
			"of another tenant":       {provider.token(provider.key, count(map[string]any{"tenant": "other"})), messages.DefaultTenant, http.StatusForbidden},
			"of all tenants":          {provider.token(provider.key, count(map[string]any{"tenant": "*"})), "other", http.StatusOK},
		} {
			if got, body := ask(http.MethodGet, "/v1/tasks", tc.token, tc.tenant, ""); got != tc.want {
				t.Errorf("%s: %d, want %d: %s", name, got, tc.want, body)
			}
		}
	})
	t.Run("who may do what", func(t *testing.T) {
		const task = `{"id":"r1","agent":"careful","input":"write"}`
		if got, body := ask(http.MethodPost, "/v1/tasks", of("viewer"), "", task); got != http.StatusForbidden {
			t.Errorf("a viewer submits: %d %s", got, body)
		}
		if got, body := ask(http.MethodPost, "/v1/tasks", of("submitter"), "", task); got != http.StatusAccepted {
			t.Fatalf("a submitter submits: %d %s", got, body)
		}
		eventually(t, "the run waits for an approval", func() bool {
			got, body := ask(http.MethodGet, "/v1/approvals", of("viewer"), "", "")
			return got == http.StatusOK && strings.Contains(body, `"r1"`)
		})
		const denial = `{"call":"call_0","decision":"deny","reason":"not today","by":"another"}`
		if got, body := ask(http.MethodPost, "/v1/tasks/r1/approvals", of("submitter"), "", denial); got != http.StatusForbidden {
			t.Errorf("a submitter decides: %d %s", got, body)
		}
		if got, body := ask(http.MethodPost, "/v1/tasks/r1/approvals", of("approver"), "", denial); got != http.StatusOK {
			t.Errorf("an approver decides: %d %s", got, body)
		}
		eventually(t, "a viewer sees the result", func() bool {
			got, body := ask(http.MethodGet, "/v1/tasks/r1/result", of("viewer"), "", "")
			return got == http.StatusOK && strings.Contains(body, "not today")
		})
		by := ""
		for _, e := range h.log(messages.Ref{Tenant: messages.DefaultTenant, Run: "r1"}) {
			for _, r := range e.Records {
				if d, ok := r.(*record.Decided); ok {
					by = d.By
				}
			}
		}
		if by != "jwt:approver@example.com" {
			t.Errorf("%q is recorded as who decided", by)
		}
	})
	t.Run("it speaks no HTTP", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ready.Data.HTTP+"/v1/tasks", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%d", resp.StatusCode)
		}
	})
	if log := strings.Join(guarded.log(), "\n"); strings.Contains(log, "eyJ") {
		t.Errorf("a token is in the log: %s", log)
	}
}
