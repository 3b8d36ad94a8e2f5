package keyring

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config of a Keyring.
type Config struct {
	Master   *Master // nil: nothing is sealed, and what is sealed does not open
	Required bool    // refuse what is in the clear
}

// Keyring seals and opens values of tenants. Safe for concurrent use. It has nothing to close: it ends with the connection of its Bus.
type Keyring struct {
	bus    *bus.Bus
	master *Master
	cfg    Config
	now    func() time.Time
	cache  cache
}

// New returns the keyring of a process. It asks the server nothing.
func New(b *bus.Bus, cfg Config) *Keyring {
	return &Keyring{bus: b, master: cfg.Master, cfg: cfg, now: time.Now}
}

// On reports whether the keyring seals.
func (k *Keyring) On() bool { return k.master != nil }

// Seal encrypts a value of a tenant and binds it to ad; see [Bind]. It keeps and changes neither. Without a master keyset it returns
// plain as it is. The keyset of the tenant is looked up when it was not for a minute, and made at the first value. A *DestroyedError
// says that the tenant no longer has one and must get none by itself.
func (k *Keyring) Seal(ctx context.Context, tenant string, plain, ad []byte) ([]byte, error) {
	if !k.On() {
		return plain, nil
	}
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return nil, err
	}
	t, err := k.writing(ctx, tenant)
	if err != nil {
		return nil, err
	}
	text, err := t.keys.aead.Encrypt(plain, ad)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return append([]byte(Prefix), text...), nil
}

// Open undoes Seal. A value that is not sealed is returned as it is, or is ErrClear if the configuration says so. A *NoKeyError says
// that the value may be fine and this process lacks its key, a *DestroyedError that its key is gone for good, ErrDamaged that anything,
// ad included, is not as it was.
func (k *Keyring) Open(ctx context.Context, tenant string, value, ad []byte) ([]byte, error) {
	if !Sealed(value) {
		if k.cfg.Required {
			return nil, ErrClear
		}
		return value, nil
	}
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return nil, err
	}
	text := value[len(Prefix):]
	id, ok := keyOf(text)
	if !ok {
		return nil, ErrDamaged
	}
	if !k.On() {
		return nil, &NoKeyError{Tenant: tenant}
	}
	t, err := k.holding(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	plain, err := t.keys.aead.Decrypt(text, ad)
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// writing is the keyset of a tenant that seals. One that was cached as destroyed is read again: the tenant may have got another since.
func (k *Keyring) writing(ctx context.Context, tenant string) (*tenantKeys, error) {
	t, err := k.tenant(ctx, tenant, true)
	if err == nil && t.keys == nil && !k.cache.lacked(tenant, k.now()) {
		if t, err = k.fresh(ctx, tenant, true); err == nil && t.keys == nil {
			k.cache.lacks(tenant, k.now())
		}
	}
	if err == nil && t.keys == nil {
		err = t.gone(tenant)
	}
	return t, err
}

// holding is the keyset of a tenant that has the key. One that was cached is read again for it: another process may have added the
// key since.
func (k *Keyring) holding(ctx context.Context, tenant string, id uint32) (*tenantKeys, error) {
	t, err := k.tenant(ctx, tenant, false)
	if err != nil {
		return nil, err
	}
	if !t.has(id) && !k.cache.lacked(tenant, k.now()) {
		if t, err = k.fresh(ctx, tenant, false); err != nil {
			return nil, err
		}
		if !t.has(id) {
			k.cache.lacks(tenant, k.now())
		}
	}
	switch {
	case t.has(id):
		return t, nil
	case t.destroyed(id) != nil:
		return nil, &DestroyedError{Tenant: tenant, At: t.destroyed(id).At}
	default:
		return nil, &NoKeyError{Tenant: tenant, Key: id}
	}
}

// tenant is the keyset of a tenant, from the cache or the bucket. With makes it is made if the tenant never had one.
func (k *Keyring) tenant(ctx context.Context, tenant string, makes bool) (*tenantKeys, error) {
	if t := k.cache.get(tenant, k.now()); t != nil && (t.seq != 0 || !makes) {
		return t, nil
	}
	return k.fresh(ctx, tenant, makes)
}

// fresh is the keyset of a tenant as the bucket has it now.
func (k *Keyring) fresh(ctx context.Context, tenant string, makes bool) (*tenantKeys, error) {
	began := k.now()
	t, err := k.read(ctx, tenant)
	if err == nil && t.seq == 0 && makes {
		t, err = k.create(ctx, tenant)
	}
	if err != nil {
		k.cache.forget(tenant)
		return nil, fmt.Errorf("get the key of tenant %s: %w", tenant, err)
	}
	k.cache.put(tenant, t, began)
	return t, nil
}
