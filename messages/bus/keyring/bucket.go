package keyring

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxRaces bounds how often a change races with another.
const maxRaces = 10

// errNoMaster is the answer of what changes keysets to a process that has none of its own.
var errNoMaster = errors.New("there is no master keyset: set LONGSHORE_KEYSET")

func subject(tenant string) string { return bus.KeyringPrefix + tenant }

func (k *Keyring) stream() bus.Stream { return k.bus.Stream(bus.StreamKeyring) }

// read is the newest revision of a tenant, from the leader: a tombstone must not be missed.
func (k *Keyring) read(ctx context.Context, tenant string) (*tenantKeys, error) {
	m, ok, err := k.stream().Get(ctx, bus.Lookup{Last: subject(tenant)})
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return &tenantKeys{}, nil
	default:
		return k.master.unwrap(tenant, m.Seq, m.Data)
	}
}

// create makes the keyset of a tenant that never had one, or returns the one of a process that was faster.
func (k *Keyring) create(ctx context.Context, tenant string) (*tenantKeys, error) {
	ks, err := newKeys()
	if err != nil {
		return nil, err
	}
	if err := k.store(ctx, tenant, 0, &stored{Made: k.now().UTC()}, &ks); err != nil && !bus.Refused(err, bus.CodeWrongLast) {
		return nil, err
	}
	t, err := k.read(ctx, tenant) // its own, or the other one: an answer may have been lost
	if err == nil && t.seq == 0 {
		err = errors.New("it was stored and cannot be found")
	}
	return t, err
}

// store writes a revision after last, with the keyset, or a tombstone for nil.
func (k *Keyring) store(ctx context.Context, tenant string, last uint64, s *stored, ks *keys) error {
	s.Keyset, s.Master = nil, 0
	if ks != nil {
		var err error
		if s.Keyset, err = k.master.wrap(tenant, ks); err != nil {
			return err
		}
		s.Master = k.master.writes
	}
	data, err := s.encode()
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject(tenant), Header: nats.Header{}, Data: data}
	bus.Expect(m, last)
	_, err = k.bus.Store(ctx, m)
	return err
}

// change replaces the newest revision of a tenant by what edit makes of it, and then erases the older ones from the disks of the
// servers. Edit returns false when there is nothing to do. It needs the right to remove messages of the bucket, which dispatchers have.
func (k *Keyring) change(ctx context.Context, tenant string, edit func(*tenantKeys) (s *stored, ks *keys, ok bool, err error)) error {
	if !k.On() {
		return errNoMaster
	}
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return err
	}
	for range maxRaces {
		t, err := k.read(ctx, tenant)
		if err != nil {
			return fmt.Errorf("read the key of tenant %s: %w", tenant, err)
		}
		s, ks, ok, err := edit(t)
		if err == nil && ok {
			err = k.store(ctx, tenant, t.seq, s, ks)
		}
		switch {
		case bus.Refused(err, bus.CodeWrongLast):
			continue // another process was faster, or an answer was lost
		case err != nil:
			return fmt.Errorf("change the key of tenant %s: %w", tenant, err)
		}
		k.cache.forget(tenant)
		return k.erase(ctx, tenant)
	}
	return fmt.Errorf("change the key of tenant %s: other processes keep changing it; try again", tenant)
}

// erase overwrites all revisions of a tenant but the newest.
func (k *Keyring) erase(ctx context.Context, tenant string) error {
	newest, ok, err := k.stream().Get(ctx, bus.Lookup{Last: subject(tenant)})
	for from := uint64(1); err == nil && ok; {
		var m bus.Message
		if m, ok, err = k.stream().Get(ctx, bus.Lookup{Seq: from, Next: subject(tenant)}); err != nil || !ok || m.Seq >= newest.Seq {
			break
		}
		err = k.stream().Erase(ctx, m.Seq)
		from = m.Seq + 1
	}
	if err != nil {
		return fmt.Errorf("erase old keysets of tenant %s: %w", tenant, err)
	}
	return nil
}

// Rotate gives a tenant a new key, which writes from then on; what its other keys sealed is still read. Other processes write with
// the new key within a minute, and read with it at once. It does nothing for a tenant without a keyset.
func (k *Keyring) Rotate(ctx context.Context, tenant string) error {
	return k.change(ctx, tenant, func(t *tenantKeys) (*stored, *keys, bool, error) {
		if t.keys == nil {
			return nil, nil, false, nil
		}
		mgr := keyset.NewManagerFromHandle(t.keys.handle)
		id, err := mgr.Add(aead.AES256GCMKeyTemplate())
		if err == nil {
			err = mgr.SetPrimary(id)
		}
		if err != nil {
			return nil, nil, false, fmt.Errorf("add a key: %w", err)
		}
		next, err := fromManager(mgr)
		if err != nil {
			return nil, nil, false, err
		}
		return &t.stored, &next.keys, true, nil
	})
}

// Rewrap encrypts the keyset of a tenant with the key of the master keyset that writes. It does nothing if that is so already.
func (k *Keyring) Rewrap(ctx context.Context, tenant string) error {
	return k.change(ctx, tenant, func(t *tenantKeys) (*stored, *keys, bool, error) {
		return &t.stored, t.keys, t.keys != nil && t.Master != k.master.writes, nil
	})
}

// Destroy makes all that is sealed for a tenant unreadable, for good: it replaces the keyset by a tombstone and overwrites it on the
// disks of the servers. Other processes may use it for a minute more. It may be repeated. Backups of the bucket that were made before
// still hold the keyset, encrypted with the master keyset. The tenant can write nothing until Renew.
func (k *Keyring) Destroy(ctx context.Context, tenant, by string) error {
	return k.change(ctx, tenant, func(t *tenantKeys) (*stored, *keys, bool, error) {
		if t.keys == nil && t.seq != 0 {
			return nil, nil, false, nil
		}
		d := Destruction{At: k.now().UTC(), By: by, Keys: []uint32{}}
		if t.keys != nil {
			for _, key := range t.keys.Keys() {
				d.Keys = append(d.Keys, key.ID)
			}
		}
		t.Destroyed = append(t.Destroyed, d)
		return &t.stored, nil, true, nil
	})
}

// Renew gives a tenant whose keyset was destroyed a new one, for new values. It does nothing for one that has a keyset.
func (k *Keyring) Renew(ctx context.Context, tenant string) error {
	return k.change(ctx, tenant, func(t *tenantKeys) (*stored, *keys, bool, error) {
		if t.keys != nil {
			return nil, nil, false, nil
		}
		ks, err := newKeys()
		if err != nil {
			return nil, nil, false, err
		}
		t.Made = k.now().UTC()
		return &t.stored, &ks, true, nil
	})
}
