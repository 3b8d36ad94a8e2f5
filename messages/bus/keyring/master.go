package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Master is the keyset that wraps those of tenants: the one secret of a fleet's encryption. It never shows itself. Immutable, and
// safe for concurrent use.
type Master struct{ keys }

// maxMasterKeys bounds a keyset that is read.
const maxMasterKeys = 64

// Key is one key of a keyset.
type Key struct {
	ID     uint32
	Writes bool // the one that encrypts; the others only decrypt
}

// KeyID is the form in which keys are named to people.
func KeyID(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// NewMaster makes a keyset of one AES-256-GCM key.
func NewMaster() (*Master, error) {
	ks, err := newKeys()
	if err != nil {
		return nil, err
	}
	return &Master{ks}, nil
}

// ParseMaster reads what Encode wrote: a keyset of tink in JSON, with keys for authenticated encryption alone. Its error does not
// show the text.
func ParseMaster(text []byte) (*Master, error) {
	h, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, errors.New("not a keyset: want a tink keyset in JSON, as `longshore keys generate` writes it")
	}
	if h.Len() > maxMasterKeys {
		return nil, fmt.Errorf("more than %d keys", maxMasterKeys)
	}
	ks, err := keysOf(h)
	if err != nil {
		return nil, err
	}
	return &Master{ks}, nil
}

// Encode writes the secret in JSON.
func (m *Master) Encode() ([]byte, error) {
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(m.handle, keyset.NewJSONWriter(&out)); err != nil {
		return nil, fmt.Errorf("encode keyset: %w", err)
	}
	return append(bytes.TrimSpace(out.Bytes()), '\n'), nil
}

// Add returns the keyset with one key more, which reads and does not write yet: processes that have the old keyset would not
// understand what it wrote.
func (m *Master) Add() (*Master, uint32, error) {
	mgr := keyset.NewManagerFromHandle(m.handle)
	id, err := mgr.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, 0, fmt.Errorf("add a key: %w", err)
	}
	next, err := fromManager(mgr)
	return next, id, err
}

// Promote returns the keyset with the key writing.
func (m *Master) Promote(id uint32) (*Master, error) {
	mgr := keyset.NewManagerFromHandle(m.handle)
	if err := mgr.SetPrimary(id); err != nil {
		return nil, fmt.Errorf("let key %s write: %w", KeyID(id), err)
	}
	return fromManager(mgr)
}

// Retire returns the keyset without a key that does not write. What it wraps can no longer be read.
func (m *Master) Retire(id uint32) (*Master, error) {
	mgr := keyset.NewManagerFromHandle(m.handle)
	if err := mgr.Delete(id); err != nil {
		return nil, fmt.Errorf("remove key %s: %w", KeyID(id), err)
	}
	return fromManager(mgr)
}

func fromManager(mgr *keyset.Manager) (*Master, error) {
	h, err := mgr.Handle()
	if err != nil {
		return nil, fmt.Errorf("make keyset: %w", err)
	}
	ks, err := keysOf(h)
	if err != nil {
		return nil, err
	}
	return &Master{ks}, nil
}

// Wrap encrypts a small secret that belongs to no tenant, for a purpose.
func (m *Master) Wrap(secret []byte, purpose string) ([]byte, error) {
	out, err := m.aead.Encrypt(secret, Bind(purpose))
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return out, nil
}

// Current reports whether a secret was wrapped with the key that writes. One that was not needs an older key, which must not be retired yet.
func (m *Master) Current(wrapped []byte) bool {
	id, ok := keyOf(wrapped)
	return ok && id == m.writes
}

// Unwrap undoes Wrap.
func (m *Master) Unwrap(wrapped []byte, purpose string) ([]byte, error) {
	id, ok := keyOf(wrapped)
	switch {
	case !ok:
		return nil, errors.New("it was not encrypted with a keyset")
	case !m.Has(id):
		return nil, fmt.Errorf("it needs key %s, which the keyset lacks", KeyID(id))
	}
	out, err := m.aead.Decrypt(wrapped, Bind(purpose))
	if err != nil {
		return nil, errors.New("it was changed")
	}
	return out, nil
}

// String hides the secret.
func (m *Master) String() string { return "master keyset that writes with key " + KeyID(m.writes) }

// GoString hides the secret.
func (m *Master) GoString() string { return m.String() }

// keys is a keyset that is ready for use.
type keys struct {
	handle *keyset.Handle
	aead   tink.AEAD
	ids    map[uint32]bool
	writes uint32
}

func newKeys() (keys, error) {
	h, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return keys{}, fmt.Errorf("make a key: %w", err)
	}
	return keysOf(h)
}

// keysOf checks that all enabled keys put their id before what they encrypt: a value is known to lack its key by that.
func keysOf(h *keyset.Handle) (keys, error) {
	out := keys{handle: h, ids: map[uint32]bool{}}
	info := h.KeysetInfo()
	for _, k := range info.GetKeyInfo() {
		switch {
		case k.GetOutputPrefixType() != tinkpb.OutputPrefixType_TINK:
			return keys{}, fmt.Errorf("key %s has no tink prefix", KeyID(k.GetKeyId()))
		case k.GetStatus() == tinkpb.KeyStatusType_ENABLED:
			out.ids[k.GetKeyId()] = true
		}
	}
	out.writes = info.GetPrimaryKeyId()
	var err error
	if out.aead, err = aead.New(h); err != nil {
		return keys{}, fmt.Errorf("use keyset for encryption: %w", err)
	}
	return out, nil
}

// Keys lists the keys, oldest first.
func (k *keys) Keys() []Key {
	var out []Key
	for _, info := range k.handle.KeysetInfo().GetKeyInfo() {
		if id := info.GetKeyId(); k.ids[id] {
			out = append(out, Key{ID: id, Writes: id == k.writes})
		}
	}
	return out
}

// Has reports whether a key of this id reads.
func (k *keys) Has(id uint32) bool { return k.ids[id] }

// Writer is the id of the key that writes.
func (k *keys) Writer() uint32 { return k.writes }
