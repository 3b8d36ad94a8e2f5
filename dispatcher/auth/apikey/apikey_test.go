package apikey_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/dispatcher/auth/apikey"
	"github.com/longshore-run/longshore/messages/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a store in memory.
type shelf struct {
	mu    sync.Mutex
	keys  map[string]control.StoredKey
	err   error
	reads int
}

func (s *shelf) Key(_ context.Context, id string) (control.StoredKey, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	k, ok := s.keys[id]
	return k, ok, s.err
}

const (
	id    = "abcdefghijkl"
	token = "lsk_" + id + "_0123456789ABCDEFGHIJ0123456789AB"
)

// newShelf has the key of token.
func newShelf(change func(*control.StoredKey)) *shelf {
	sum := sha256.Sum256([]byte(token))
	k := control.StoredKey{APIKey: control.APIKey{
		ID: id, Tenant: "acme", Roles: []control.AccessRole{control.RoleViewer}, Name: "ci",
	}, Hash: hex.EncodeToString(sum[:])}
	if change != nil {
		change(&k)
	}
	return &shelf{keys: map[string]control.StoredKey{id: k}}
}

var start = time.Unix(1_700_000_000, 0)

func TestKeysThatDoNotCount(t *testing.T) {
	past := start
	for name, tc := range map[string]struct {
		token  string
		change func(*control.StoredKey)
	}{
		"another secret":   {token[:len(token)-1] + "x", nil},
		"a longer one":     {token + "x", nil},
		"a cut one":        {token[:len(token)-1], nil},
		"no secret":        {"lsk_" + id + "_", nil},
		"no end":           {"lsk_" + id, nil},
		"another id":       {"lsk_bbbbbbbbbbbb" + token[16:], nil},
		"a hostile id":     {"lsk_abc.>.defghi" + token[16:], nil},
		"a short id":       {"lsk_abc" + token[16:], nil},
		"a huge secret":    {token + string(make([]byte, 1000)), nil},
		"expired":          {token, func(k *control.StoredKey) { k.Expires = &past }},
		"no hash":          {token, func(k *control.StoredKey) { k.Hash = "" }},
		"a hash of none":   {token, func(k *control.StoredKey) { k.Hash = "not hex" }},
		"the hash as key":  {"lsk_" + id + "_" + newShelf(nil).keys[id].Hash, nil},
		"a strange role":   {token, func(k *control.StoredKey) { k.Roles = []control.AccessRole{"root"} }},
		"a strange tenant": {token, func(k *control.StoredKey) { k.Tenant = "a.b" }},
		"too much":         {token, func(k *control.StoredKey) { k.Tenant, k.Roles = "*", []control.AccessRole{control.RoleApprover} }},
	} {
		t.Run(name, func(t *testing.T) {
			keys := apikey.New(newShelf(tc.change), func() time.Time { return start })
			if p, err := keys.Authenticate(t.Context(), tc.token, false); p != nil || !errors.Is(err, auth.ErrUnknown) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// A key is read again every five seconds, so that a revoked one stops working; an unknown key is not read each time.
func TestKeysAreReadAgain(t *testing.T) {
	s, now := newShelf(nil), start
	keys := apikey.New(s, func() time.Time { return now })
	ask := func(token string) error {
		_, err := keys.Authenticate(t.Context(), token, false)
		return err
	}
	for range 10 {
		p, err := keys.Authenticate(t.Context(), token, false)
		if err != nil || p.String() != "key:"+id+" (ci)" || p.Tenant != "acme" {
			t.Fatalf("%v, %v", p, err)
		}
	}
	if s.reads != 1 {
		t.Errorf("%d reads", s.reads)
	}
	delete(s.keys, id)
	if err := ask(token); err != nil {
		t.Errorf("at once: %v", err)
	}
	now = now.Add(5 * time.Second)
	if err := ask(token); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("revoked: %v", err)
	}
	s.reads = 0
	for range 10 {
		if err := ask(token); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("revoked: %v", err)
		}
	}
	if s.reads != 0 {
		t.Errorf("%d reads of a key that does not exist", s.reads)
	}
}

// While the store is down, recently read keys stay valid, and other keys cannot be checked.
func TestStoreAway(t *testing.T) {
	s, now := newShelf(nil), start
	keys := apikey.New(s, func() time.Time { return now })
	if _, err := keys.Authenticate(t.Context(), token, false); err != nil {
		t.Fatal(err)
	}
	s.err = errors.New("no answer")
	if _, err := keys.Authenticate(t.Context(), token, false); err != nil {
		t.Errorf("at once: %v", err)
	}
	now = now.Add(5 * time.Second)
	if _, err := keys.Authenticate(t.Context(), token, false); !errors.Is(err, auth.ErrUnavailable) || errors.Is(err, auth.ErrUnknown) {
		t.Errorf("then: %v", err)
	}
}

// For an address that guesses, nothing is read.
func TestCheap(t *testing.T) {
	s := newShelf(nil)
	keys := apikey.New(s, func() time.Time { return start })
	if _, err := keys.Authenticate(t.Context(), token, true); !errors.Is(err, auth.ErrUnknown) || s.reads != 0 {
		t.Errorf("not read yet: %v, %d reads", err, s.reads)
	}
	if _, err := keys.Authenticate(t.Context(), token, false); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(t.Context(), token, true); err != nil || s.reads != 1 {
		t.Errorf("read: %v, %d reads", err, s.reads)
	}
}

// Guessing does not fill the memory, nor drop the keys that are known from it.
func TestGuessesAreBounded(t *testing.T) {
	s := newShelf(nil)
	keys := apikey.New(s, func() time.Time { return start })
	if _, err := keys.Authenticate(t.Context(), token, false); err != nil {
		t.Fatal(err)
	}
	for i := range 25_000 {
		if _, err := keys.Authenticate(t.Context(), fmt.Sprintf("lsk_guess%08d_x", i), false); !errors.Is(err, auth.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if known, none := keys.Cached(); known != 1 || none > 10_000 {
		t.Errorf("%d keys and %d others are kept", known, none)
	}
}
