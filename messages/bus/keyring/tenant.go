package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/longshore-run/longshore/messages/strict"
)

// stored is what the bucket holds of a tenant.
type stored struct {
	Keyset    []byte        `json:"keyset,omitempty"` // a tink keyset, encrypted with Master and bound to the tenant; none: it was destroyed
	Master    uint32        `json:"master,omitempty"` // the key that Keyset is encrypted with
	Made      time.Time     `json:"made,omitzero"`
	Destroyed []Destruction `json:"destroyed,omitempty"`
}

// Destruction says when which keys of a tenant were destroyed, and who asked for it.
type Destruction struct {
	At   time.Time `json:"at"`
	By   string    `json:"by,omitempty"`
	Keys []uint32  `json:"keys"`
}

// tenantKeys is the keyset of a tenant, ready for use.
type tenantKeys struct {
	stored

	seq  uint64 // of the revision; 0: the tenant has none and never had
	keys *keys  // nil: none, or destroyed
}

func (t *tenantKeys) has(id uint32) bool { return t.keys != nil && t.keys.ids[id] }

// destroyed is the destruction of a key; nil: it was not destroyed.
func (t *tenantKeys) destroyed(id uint32) *Destruction {
	for i := range t.Destroyed {
		if slices.Contains(t.Destroyed[i].Keys, id) {
			return &t.Destroyed[i]
		}
	}
	return nil
}

// gone is why a tenant that had a keyset has none.
func (t *tenantKeys) gone(tenant string) error {
	if n := len(t.Destroyed); n > 0 {
		return &DestroyedError{Tenant: tenant, At: t.Destroyed[n-1].At}
	}
	return errors.New("the keyset of tenant " + tenant + " is missing")
}

// wrapping is what the keyset of a tenant is bound to.
func wrapping(tenant string) []byte { return Bind("longshore keyset 1", tenant) }

// wrap encrypts a keyset for the bucket.
func (m *Master) wrap(tenant string, ks *keys) ([]byte, error) {
	var out bytes.Buffer
	if err := ks.handle.WriteWithAssociatedData(keyset.NewBinaryWriter(&out), m.aead, wrapping(tenant)); err != nil {
		return nil, fmt.Errorf("encrypt keyset: %w", err)
	}
	return out.Bytes(), nil
}

// unwrap reads a revision of the bucket.
func (m *Master) unwrap(tenant string, seq uint64, data []byte) (*tenantKeys, error) {
	t := &tenantKeys{seq: seq}
	if err := strict.Decode(data, &t.stored); err != nil {
		return nil, fmt.Errorf("read keyset: %w", err)
	}
	if len(t.Keyset) == 0 {
		return t, nil
	}
	if !m.Has(t.Master) {
		return nil, &NoKeyError{Tenant: tenant, Key: t.Master, Master: true}
	}
	h, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(t.Keyset)), m.aead, wrapping(tenant))
	if err != nil {
		return nil, errors.New("read keyset: it does not open with LONGSHORE_KEYSET: it was changed, or is of another tenant")
	}
	ks, err := keysOf(h)
	if err != nil {
		return nil, fmt.Errorf("read keyset: %w", err)
	}
	t.keys = &ks
	return t, nil
}

func (s *stored) encode() ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode keyset: %w", err)
	}
	return data, nil
}
