package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/tools/credential"
)

// tokenTimeout is how long a token may take.
const tokenTimeout = 10 * time.Second

// early is how long before its end a token is no longer used.
const early = 10 * time.Second

// authorizer adds what a request to a server needs, and knows the secrets in it. Safe for concurrent use.
type authorizer struct {
	endpoint    string // of the server
	chosen      hosts.List
	credential  string // empty: none
	credentials *credential.Store
	oauth       *clientcredentials.Config // nil: none
	client      *http.Client              // for tokens
	secret      string                    // name of the credential of oauth

	mu      sync.Mutex // not held while a token is asked for
	token   *oauth2.Token
	old     string        // the token before it, which a server may still show
	request *tokenRequest // under way; nil: none
}

// tokenRequest is one request for a token. The call that began it sets the fields before it closes done.
type tokenRequest struct {
	done  chan struct{}
	token string
	err   error
	ended bool // with the call that made it: the next call asks again
}

func newAuthorizer(cfg *Server, credentials *credential.Store) (*authorizer, error) {
	u, err := parseURL(cfg.URL)
	if err != nil {
		return nil, wrong("url", "%s", err.Error())
	}
	a := &authorizer{endpoint: hosts.Endpoint(u), credential: cfg.Credential, credentials: credentials}
	if a.chosen, err = hosts.Parse([]string{a.endpoint}); err != nil {
		return nil, wrong("url", "%s", err.Error())
	}
	if cfg.OAuth == nil {
		return a, nil
	}
	token, err := parseURL(cfg.OAuth.TokenURL)
	if err != nil {
		return nil, wrong("oauth.tokenUrl", "%s", err.Error())
	}
	issuer, err := hosts.Parse([]string{hosts.Endpoint(token)})
	if err != nil {
		return nil, wrong("oauth.tokenUrl", "%s", err.Error())
	}
	secret, err := credentials.Secret(cfg.OAuth.Credential)
	if err != nil {
		return nil, wrong("oauth.credential", "%s", err.Error())
	}
	a.secret = cfg.OAuth.Credential
	a.oauth = &clientcredentials.Config{ClientID: cfg.OAuth.ClientID, ClientSecret: secret, TokenURL: cfg.OAuth.TokenURL, Scopes: cfg.OAuth.Scopes}
	transport := guarded(issuer)
	transport.DisableKeepAlives = true // one request an hour
	a.client = &http.Client{
		Transport: transport, Timeout: tokenTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a, nil
}

// authorize adds the credential or the token. A fresh one is asked for when the server refused the one before.
func (a *authorizer) authorize(req *http.Request, fresh bool) error {
	if a.credential != "" {
		return a.credentials.Add(a.credential, req)
	}
	if a.oauth == nil {
		return nil
	}
	token, err := a.current(req.Context(), fresh)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// current is the token in use. It is asked for once, however many calls want it; each waits no longer than its own ctx.
func (a *authorizer) current(ctx context.Context, fresh bool) (string, error) {
	for {
		a.mu.Lock()
		if !fresh && a.token != nil && (a.token.Expiry.IsZero() || time.Until(a.token.Expiry) > early) {
			defer a.mu.Unlock()
			return a.token.AccessToken, nil
		}
		r := a.request
		if r == nil {
			r = &tokenRequest{done: make(chan struct{})}
			a.request = r
			a.mu.Unlock()
			a.ask(ctx, r)
			return r.token, r.err
		}
		a.mu.Unlock()
		select {
		case <-r.done:
			if !r.ended {
				return r.token, r.err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// ask makes a request for a token and ends it.
func (a *authorizer) ask(ctx context.Context, r *tokenRequest) {
	got, err := a.oauth.Token(context.WithValue(ctx, oauth2.HTTPClient, a.client))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.request = nil
	defer close(r.done)
	if err != nil {
		r.ended = ctx.Err() != nil
		r.err = fmt.Errorf("ask for a token: %w", err)
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil { // whose text holds the answer
			r.err = fmt.Errorf("ask for a token: the issuer answered %d %s", e.Response.StatusCode, line(e.ErrorCode, 64))
		}
		return
	}
	if a.token != nil {
		a.old = a.token.AccessToken
	}
	a.token, r.token = got, got.AccessToken
}

// redact takes the secrets out of a text.
func (a *authorizer) redact(text []byte) []byte {
	for _, name := range []string{a.credential, a.secret} {
		text = a.credentials.Redact(name, text)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, token := range []string{a.old, a.tokenText()} {
		if token != "" {
			text = bytes.ReplaceAll(text, []byte(token), []byte("[redacted]"))
		}
	}
	return text
}

func (a *authorizer) tokenText() string {
	if a.token == nil {
		return ""
	}
	return a.token.AccessToken
}

// loopback reports whether a host is an address of this machine. A name never is: it may lead elsewhere.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
