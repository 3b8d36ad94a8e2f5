package dispatcher

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNoKey means that there never was an API key of that id.
var ErrNoKey = control.ErrNoKey

// KeySpec says what an API key is to be.
type KeySpec struct {
	Tenant  string // or control.AllTenants
	Roles   []control.AccessRole
	Name    string    // for people
	By      string    // who makes it
	Expires time.Time // zero: never
}

// Lengths of the parts of a key. A secret has 190 bits.
const (
	keyIDLength     = 12
	keySecretLength = 32
)

// Create makes an API key for requests over HTTP. The key is returned and kept nowhere: the fleet only gets its hash.
func (of Keys) Create(ctx context.Context, spec KeySpec) (key string, about control.APIKey, err error) {
	if of.client.remote != nil {
		order := control.KeyOrder{Tenant: spec.Tenant, Roles: spec.Roles, Name: spec.Name, Expires: unlessZero(spec.Expires)}
		var made control.NewKey
		err := of.client.Call(ctx, control.ByID("createKey"), order, &made)
		return made.Key, made.APIKey, err
	}
	id := letters(keyIDLength)
	key = "lsk_" + id + "_" + letters(keySecretLength)
	sum := sha256.Sum256([]byte(key))
	req := control.KeyCreate{
		ID: id, Hash: hex.EncodeToString(sum[:]), Tenant: spec.Tenant, Roles: spec.Roles, Name: spec.Name, By: spec.By,
		Expires: unlessZero(spec.Expires),
	}
	if err := of.client.request(ctx, control.SubjectKeyCreate, req, &about); err != nil {
		return "", about, err
	}
	return key, about, nil
}

// List lists API keys of a tenant, or of all for an empty one: a thousand at most.
func (of Keys) List(ctx context.Context, tenant string) (*control.KeyList, error) {
	return ask[control.KeyList](ctx, of.client, control.SubjectKeyList, control.KeyListRequest{Tenant: tenant})
}

// Revoke makes an API key invalid, on every dispatcher within ten seconds. ErrNoKey: there never was one.
func (of Keys) Revoke(ctx context.Context, id, by string) (control.Change, error) {
	return of.client.Keys().RevokeOf(ctx, "", id, by)
}

// RevokeOf is RevokeKey for a key of a tenant; an empty one is any. ErrNoKey: it is another tenant's, or was revoked.
func (of Keys) RevokeOf(ctx context.Context, tenant, id, by string) (control.Change, error) {
	var change control.Change
	err := of.client.request(ctx, control.SubjectKeyRevoke, control.KeyRevoke{ID: id, Tenant: tenant, By: by}, &change)
	return change, err
}

// CancelAs is Cancel that records by whom.
func (of Runs) CancelAs(ctx context.Context, run messages.Ref, by, reason string) (*control.RunStatus, error) {
	var s control.RunStatus
	req := control.CancelRequest{Tenant: run.Tenant, ID: run.Run, By: by, Reason: reason}
	if err := of.client.request(ctx, control.SubjectCancel, req, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// letters are n random letters and digits, each as likely as another.
func letters(n int) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := make([]byte, 0, n)
	var random [64]byte
	for {
		_, _ = rand.Read(random[:]) // it never fails
		for _, b := range random {
			if b >= 4*byte(len(alphabet)) {
				continue // or the first letters would be likelier
			}
			if out = append(out, alphabet[b%byte(len(alphabet))]); len(out) == n {
				return string(out)
			}
		}
	}
}
