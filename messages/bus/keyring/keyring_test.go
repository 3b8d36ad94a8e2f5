package keyring_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/record"
)

const secret = "the launch code is 0000"

func newMaster(tb testing.TB) *keyring.Master {
	tb.Helper()
	m, err := keyring.NewMaster()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// clock is a clock that tests move.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func newKeyring(b *bus.Bus, m *keyring.Master, c *clock) *keyring.Keyring {
	k := keyring.New(b, keyring.Config{Master: m})
	k.SetClock(c.now)
	return k
}

func mustSeal(tb testing.TB, k *keyring.Keyring, tenant string, ad []byte) []byte {
	tb.Helper()
	sealed, err := k.Seal(bustest.Context(tb), tenant, []byte(secret), ad)
	if err != nil {
		tb.Fatal(err)
	}
	if !keyring.Sealed(sealed) || bytes.Contains(sealed, []byte("launch")) {
		tb.Fatalf("not sealed: %q", sealed)
	}
	return sealed
}

func mustOpen(tb testing.TB, k *keyring.Keyring, tenant string, sealed, ad []byte) {
	tb.Helper()
	plain, err := k.Open(bustest.Context(tb), tenant, sealed, ad)
	if err != nil || string(plain) != secret {
		tb.Fatalf("got %q, %v", plain, err)
	}
}

func openErr(tb testing.TB, k *keyring.Keyring, tenant string, sealed, ad []byte) error {
	tb.Helper()
	plain, err := k.Open(bustest.Context(tb), tenant, sealed, ad)
	if err == nil {
		tb.Errorf("it opens: %q", plain)
	}
	return err
}

func TestAValueIsBound(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	k := newKeyring(b, newMaster(t), newClock())
	ad := keyring.Bind("test", "run-1", "7")
	sealed := mustSeal(t, k, "acme", ad)
	mustOpen(t, k, "acme", sealed, ad)
	mustSeal(t, k, "other", ad) // it has a keyset too
	for name, err := range map[string]error{
		"another tenant":    openErr(t, k, "other", sealed, ad),
		"another place":     openErr(t, k, "acme", sealed, keyring.Bind("test", "run-2", "7")),
		"parts cut":         openErr(t, k, "acme", sealed, keyring.Bind("test", "run-17")),
		"another purpose":   openErr(t, k, "acme", sealed, keyring.Bind("tes", "run-1", "7")),
		"without its place": openErr(t, k, "acme", sealed, nil),
	} {
		if err == nil {
			t.Errorf("%s: it opens", name)
		}
	}
	for n := len(keyring.Prefix); n < len(sealed); n++ {
		if err := openErr(t, k, "acme", sealed[:n], ad); err == nil {
			t.Errorf("cut to %d bytes: it opens", n)
		}
		changed := bytes.Clone(sealed)
		changed[n] ^= 1
		if err := openErr(t, k, "acme", changed, ad); err == nil {
			t.Errorf("byte %d changed: it opens", n)
		}
	}
	if _, err := k.Open(bustest.Context(t), "no tenant", sealed, ad); err == nil {
		t.Error("a name that is no tenant's is taken")
	}
}

func TestClearValues(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	m := newMaster(t)
	plain := []byte("[]")
	for _, k := range []*keyring.Keyring{newKeyring(b, m, newClock()), keyring.New(b, keyring.Config{})} {
		if got, err := k.Open(bustest.Context(t), "acme", plain, nil); err != nil || string(got) != "[]" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	strict := keyring.New(b, keyring.Config{Master: m, Required: true})
	if _, err := strict.Open(bustest.Context(t), "acme", plain, nil); !errors.Is(err, keyring.ErrClear) {
		t.Errorf("got %v, want ErrClear", err)
	}
	sealed := mustSeal(t, strict, "acme", nil)
	mustOpen(t, strict, "acme", sealed, nil)
	off := keyring.New(b, keyring.Config{})
	if got, err := off.Seal(bustest.Context(t), "acme", plain, nil); err != nil || string(got) != "[]" {
		t.Errorf("off: got %q, %v", got, err)
	}
	if _, err := off.Open(bustest.Context(t), "acme", sealed, nil); !errors.Is(err, record.ErrNoKey) || !strings.Contains(err.Error(), "set LONGSHORE_KEYSET") {
		t.Errorf("off: got %v", err)
	}
}

// Sixteen processes that meet a tenant for the first time agree on one keyset.
func TestKeysetOfATenantIsMadeOnce(t *testing.T) {
	const processes, tenants = 16, 5
	s := bustest.Start(t)
	m := newMaster(t)
	var all []*keyring.Keyring
	for range processes {
		b, _ := bustest.Open(t, s, bus.Config{})
		all = append(all, keyring.New(b, keyring.Config{Master: m}))
	}
	for tenant := range tenants {
		name := fmt.Sprint("t", tenant)
		sealed := make([][]byte, processes)
		var wg sync.WaitGroup
		for i, k := range all {
			wg.Go(func() {
				var err error
				if sealed[i], err = k.Seal(bustest.Context(t), name, []byte(secret), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i := range sealed {
			mustOpen(t, all[(i+1)%processes], name, sealed[i], nil)
		}
	}
}

func TestKeysOfATenantRotate(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	m, now := newMaster(t), newClock()
	here, there := newKeyring(b, m, now), newKeyring(b, m, now)
	old := mustSeal(t, here, "acme", nil)
	mustOpen(t, there, "acme", old, nil) // cached
	now.advance(2 * time.Second)
	if err := here.Rotate(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	newer := mustSeal(t, here, "acme", nil)
	if bytes.Equal(old[:9], newer[:9]) {
		t.Error("the old key still writes")
	}
	mustOpen(t, there, "acme", newer, nil) // it has not seen the key yet
	mustOpen(t, here, "acme", old, nil)
	now.advance(keyring.MaxAge)
	mustOpen(t, there, "acme", old, nil)
}

// A keyset that was read just before a key came into it is read again for a value of that key, by all that need it.
func TestANewKeyIsReadAtOnce(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	m, now := newMaster(t), newClock()
	here, there := newKeyring(b, m, now), newKeyring(b, m, now)
	mustOpen(t, there, "acme", mustSeal(t, here, "acme", nil), nil) // cached
	if err := here.Rotate(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	sealed := mustSeal(t, here, "acme", nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := there.Open(bustest.Context(t), "acme", sealed, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAFullCacheKeepsTheOthers(t *testing.T) {
	t.Parallel()
	if got := keyring.CachedOf(keyring.MaxCached); got != keyring.MaxCached {
		t.Errorf("%d tenants are cached, want all %d", got, keyring.MaxCached)
	}
	if got := keyring.CachedOf(keyring.MaxCached + 10); got != keyring.MaxCached {
		t.Errorf("%d tenants are cached, want %d", got, keyring.MaxCached)
	}
}

// A master key is replaced in steps, each of which is rolled out to one process after the other.
func TestMasterKeysRotate(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	now := newClock()
	first := newMaster(t)
	value := mustSeal(t, newKeyring(b, first, now), "acme", nil)
	both, id, err := first.Add()
	if err != nil {
		t.Fatal(err)
	}
	next, err := both.Promote(id)
	if err != nil {
		t.Fatal(err)
	}
	// Made by one that is ahead by a step, read by one that is behind by one.
	ahead := mustSeal(t, newKeyring(b, next, now), "zeta", nil)
	mustOpen(t, newKeyring(b, both, now), "zeta", ahead, nil)
	err = openErr(t, newKeyring(b, first, now), "zeta", ahead, nil)
	if !errors.Is(err, record.ErrNoKey) || !strings.Contains(err.Error(), keyring.KeyID(id)) {
		t.Errorf("a key that is missing: got %v, want its id %s", err, keyring.KeyID(id))
	}
	k := newKeyring(b, next, now)
	if err := k.Rewrap(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	alone, err := next.Retire(first.Writer())
	if err != nil {
		t.Fatal(err)
	}
	last := newKeyring(b, alone, now)
	mustOpen(t, last, "acme", value, nil)
	mustOpen(t, last, "zeta", ahead, nil)
	if _, err := next.Retire(next.Writer()); err == nil {
		t.Error("the key that writes was removed")
	}
}

func TestDestroy(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	m, now := newMaster(t), newClock()
	k, other := newKeyring(b, m, now), newKeyring(b, m, now)
	old := mustSeal(t, k, "acme", nil)
	kept := mustSeal(t, k, "zeta", nil)
	mustOpen(t, other, "acme", old, nil)
	if err := k.Rotate(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	newer := mustSeal(t, k, "acme", nil)
	for range 2 { // it may be repeated
		if err := k.Destroy(bustest.Context(t), "acme", "jo"); err != nil {
			t.Fatal(err)
		}
	}
	now.advance(keyring.MaxAge)
	for _, k := range []*keyring.Keyring{k, other, newKeyring(b, m, now)} {
		for _, value := range [][]byte{old, newer} {
			err := openErr(t, k, "acme", value, nil)
			if _, ok := errors.AsType[*keyring.DestroyedError](err); !ok || !strings.Contains(err.Error(), "the key of tenant acme was destroyed on 2026-05-04") {
				t.Errorf("got %v", err)
			}
		}
		_, err := k.Seal(bustest.Context(t), "acme", []byte(secret), nil)
		if _, ok := errors.AsType[*keyring.DestroyedError](err); !ok {
			t.Errorf("a key was made anew: %v", err)
		}
		mustOpen(t, k, "zeta", kept, nil)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamKeyring); n != 2 {
		t.Errorf("%d revisions are stored, want those of two tenants", n)
	}
	if err := k.Renew(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	mustOpen(t, other, "acme", mustSeal(t, k, "acme", nil), nil)
	if err := openErr(t, k, "acme", old, nil); !strings.Contains(err.Error(), "was destroyed on") {
		t.Errorf("after a new key: got %v", err)
	}
	var names []string
	for tenant := range bustest.Values(t, k.Tenants(bustest.Context(t))) {
		names = append(names, fmt.Sprintf("%s %d", tenant.Name, len(tenant.Destroyed)))
	}
	if got := strings.Join(names, ", "); got != "acme 1, zeta 0" {
		t.Errorf("tenants: %s", got)
	}
}

func TestKeysetIsOfItsTenant(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	m := newMaster(t)
	mustSeal(t, newKeyring(b, m, newClock()), "acme", nil)
	raw, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamKeyring)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := raw.GetLastMsgForSubject(bustest.Context(t), bus.KeyringPrefix+"acme")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), bus.KeyringPrefix+"other", stored.Data); err != nil {
		t.Fatal(err)
	}
	if _, err := newKeyring(b, m, newClock()).Seal(bustest.Context(t), "other", nil, nil); err == nil || !strings.Contains(err.Error(), "is of another tenant") {
		t.Errorf("the keyset of another tenant was taken: %v", err)
	}
	if _, err := newKeyring(b, newMaster(t), newClock()).Seal(bustest.Context(t), "acme", nil, nil); !errors.Is(err, record.ErrNoKey) {
		t.Errorf("another master keyset: got %v", err)
	}
}

// What was read before stays in use while the server is away, and no read waits for it.
func TestKeysetsAreCached(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	k := newKeyring(b, newMaster(t), newClock())
	sealed := mustSeal(t, k, "acme", nil)
	nc.Close()
	mustOpen(t, k, "acme", sealed, nil)
	mustOpen(t, k, "acme", mustSeal(t, k, "acme", nil), nil)
}

// A tenant whose key was destroyed writes in all processes soon after it has a new one, and not only when their caches are old.
func TestARenewedKeyWritesSoon(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	m, now := newMaster(t), newClock()
	here, there := newKeyring(b, m, now), newKeyring(b, m, now)
	mustSeal(t, here, "acme", nil)
	if err := here.Destroy(bustest.Context(t), "acme", "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Seal(bustest.Context(t), "acme", nil, nil); !record.IsGone(err) {
		t.Fatalf("after it was destroyed: %v", err)
	}
	if err := here.Renew(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	mustOpen(t, here, "acme", mustSeal(t, there, "acme", nil), nil)
}

// What all processes lack is told from what others may have.
func TestWhoLacksAKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err           *keyring.NoKeyError
		missingForAll bool
	}{
		{&keyring.NoKeyError{Tenant: "acme"}, false},
		{&keyring.NoKeyError{Tenant: "acme", Key: 7, Master: true}, false},
		{&keyring.NoKeyError{Tenant: "acme", Key: 7}, true},
	} {
		if !errors.Is(tc.err, record.ErrNoKey) || errors.Is(tc.err, record.ErrKeyMissing) != tc.missingForAll {
			t.Errorf("%v: is missing for all: %t", tc.err, !tc.missingForAll)
		}
	}
}
