// Package apikey knows the API keys of the fleet by their hashes.
package apikey

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages/control"
)

const (
	ttl       = 5 * time.Second // what was read counts as current: a key that was revoked counts no longer than this
	maxCached = 10_000          // keys, and as many ids that are none; each cache then begins anew
	maxSecret = 128             // bytes
)

// Store keeps the hashes of keys.
type Store interface {
	// Key returns the key of an id; ok is false when there is none.
	Key(ctx context.Context, id string) (k control.StoredKey, ok bool, err error)
}

// Keys authenticates API keys. Safe for concurrent use.
type Keys struct {
	store   Store
	now     func() time.Time
	reading singleflight.Group

	mu    sync.Mutex
	known map[string]cached
	none  map[string]time.Time // ids that are none, and until when that counts
}

type cached struct {
	key   control.StoredKey
	until time.Time
}

var _ auth.Authenticator = (*Keys)(nil)

// New returns Keys of a store. A nil now is time.Now.
func New(store Store, now func() time.Time) *Keys {
	if now == nil {
		now = time.Now
	}
	return &Keys{store: store, now: now, known: map[string]cached{}, none: map[string]time.Time{}}
}

// Authenticate implements auth.Authenticator. A key that was revoked counts for five seconds more at most.
func (k *Keys) Authenticate(ctx context.Context, token string, cheap bool) (*auth.Principal, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(token, auth.KeyPrefix), "_")
	if !ok || control.CheckKeyID(id) != nil || len(secret) > maxSecret {
		return nil, auth.ErrUnknown
	}
	key, ok, err := k.key(ctx, id, cheap)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(token))
	stored, err := hex.DecodeString(key.Hash) // of no key: nothing, which equals no sum
	if !ok || err != nil || subtle.ConstantTimeCompare(sum[:], stored) != 1 {
		return nil, auth.ErrUnknown
	}
	if key.Expires != nil && !k.now().Before(*key.Expires) {
		return nil, fmt.Errorf("%w: the key has expired", auth.ErrUnknown)
	}
	if control.CheckAccess(key.Tenant, key.Roles) != nil { // not written by a dispatcher
		return nil, auth.ErrUnknown
	}
	return &auth.Principal{Kind: auth.KindKey, ID: key.ID, Name: key.Name, Tenant: key.Tenant, Roles: key.Roles}, nil
}

// key is the stored key of an id.
func (k *Keys) key(ctx context.Context, id string, cheap bool) (control.StoredKey, bool, error) {
	if key, found, sure := k.lookUp(id, cheap); sure {
		return key, found, nil
	}
	read := k.reading.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
		defer cancel()
		began := k.now()
		key, ok, err := k.store.Key(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", auth.ErrUnavailable, err.Error()) // for the log
		}
		k.keep(id, key, ok, began.Add(ttl))
		return cached{key: key}, nil
	})
	select {
	case r := <-read:
		c, _ := r.Val.(cached)
		return c.key, c.key.ID != "", r.Err
	case <-ctx.Done():
		return control.StoredKey{}, false, fmt.Errorf("%w: %s", auth.ErrUnavailable, context.Cause(ctx).Error()) // for the log
	}
}

// lookUp uses only the cache; sure is false if the cached entry is missing or expired.
func (k *Keys) lookUp(id string, cheap bool) (key control.StoredKey, found, sure bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	c, ok := k.known[id]
	switch {
	case ok && now.Before(c.until):
		return c.key, true, true
	case ok: // it was a valid key, so its holder may cause another read
		return key, false, false
	default:
		return key, false, cheap || now.Before(k.none[id])
	}
}

func (k *Keys) keep(id string, key control.StoredKey, ok bool, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ok {
		if len(k.known) >= maxCached {
			clear(k.known)
		}
		k.known[id] = cached{key, until}
		return
	}
	delete(k.known, id)
	if len(k.none) >= maxCached {
		clear(k.none)
	}
	k.none[id] = until
}
