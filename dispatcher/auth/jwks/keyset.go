package jwks

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages/document"
)

const (
	fetchTimeout = 5 * time.Second
	maxDocument  = 1 << 20          // bytes
	maxKeys      = 100              // of a document
	minRSA       = 2048             // bits
	fresh        = 10 * time.Minute // a key that was taken back counts so long
	pause        = 10 * time.Second // between two fetches, whatever tokens name
	// Without an answer for so long, keys may have been revoked unnoticed.
	stale = 24 * time.Hour
)

// keySet is the provider's keys, fetched again when they are old or a token names another one.
type keySet struct {
	from     string
	now      func() time.Time
	client   *http.Client
	fetching singleflight.Group

	mu   sync.Mutex
	keys []jose.JSONWebKey
	fetch
}

func newKeySet(from string, now func() time.Time) *keySet {
	return &keySet{from: from, now: now, client: &http.Client{
		Timeout: fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("redirects are not followed: give the final address")
		},
	}}
}

// find returns the keys that a token may be signed with: that of its kid, or all when it names none. A key that is not
// known is asked for, every ten seconds at most. While the provider does not answer, keys that are known count for a day;
// one that is not known then is auth.ErrUnavailable.
func (s *keySet) find(ctx context.Context, kid string, cheap bool) ([]jose.JSONWebKey, error) {
	keys, state := s.known(kid)
	if len(keys) == 0 && !cheap {
		_ = s.refresh(ctx) // known reports the outcome
		keys, state = s.known(kid)
	}
	switch {
	case state.fetched.IsZero() || s.now().Sub(state.fetched) > stale:
		return nil, fmt.Errorf("%w: the keys of the identity provider have not been read yet", auth.ErrUnavailable)
	case len(keys) > 0:
		return keys, nil
	case state.err != nil:
		return nil, fmt.Errorf("%w: the identity provider does not answer, and the key is not cached", auth.ErrUnavailable)
	default:
		return nil, unknown("its key is not known")
	}
}

// fetch is what came of asking for the keys.
type fetch struct {
	fetched time.Time // when keys were read; zero: never
	tried   time.Time // when they were last asked for
	err     error     // of that
}

func (s *keySet) known(kid string) ([]jose.JSONWebKey, fetch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kid == "" {
		return s.keys, s.fetch
	}
	var out []jose.JSONWebKey
	for _, k := range s.keys {
		if k.KeyID == kid {
			out = append(out, k)
		}
	}
	return out, s.fetch
}

// refresh fetches the keys, unless they were fetched a moment ago.
func (s *keySet) refresh(ctx context.Context) error {
	done := s.fetching.DoChan("", func() (any, error) {
		_, state := s.known("")
		now := s.now()
		if !state.tried.IsZero() && now.Sub(state.tried) < pause {
			return nil, state.err
		}
		keys, err := s.read(context.WithoutCancel(ctx))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tried, s.err = now, err
		if err == nil {
			s.keys, s.fetched = keys, now
		}
		return nil, err
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keep asks for the keys from time to time until ctx ends.
func (s *keySet) keep(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(fresh)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// read reads the document, and of its keys those that may count.
func (s *keySet) read(ctx context.Context) ([]jose.JSONWebKey, error) {
	data, err := s.document(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the identity provider: %w", err)
	}
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, errors.New("read the keys of the identity provider: the response is not a JWKS")
	}
	var keys []jose.JSONWebKey
	for _, raw := range doc.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) == nil && counts(&k) && len(keys) < maxKeys {
			keys = append(keys, k) // one of another kind does not spoil the others
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("read the keys of the identity provider: there is no RSA key of 2048 bits or more, P-256 key or Ed25519 key")
	}
	return keys, nil
}

// counts reports whether a key is a public one of an algorithm that counts.
func counts(k *jose.JSONWebKey) bool {
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return len(key) == ed25519.PublicKeySize
	default:
		return false
	}
}

func (s *keySet) document(ctx context.Context) ([]byte, error) {
	if !strings.Contains(s.from, "://") {
		return document.Read(s.from, maxDocument)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.from, nil)
	if err != nil {
		return nil, errors.New("its address cannot be read")
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %d", resp.StatusCode)
	}
	return document.Bounded(resp.Body, maxDocument)
}
