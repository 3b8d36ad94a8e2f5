package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// MaxKeys bounds a list of keys.
const MaxKeys = 1000

// CreateKey stores a key, or returns messages.ErrRevision when there is one of its id.
func (cat *Catalog) CreateKey(ctx context.Context, k control.StoredKey) error {
	if err := control.CheckKeyID(k.ID); err != nil {
		return err
	}
	body, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode key %s: %w", k.ID, err)
	}
	if _, _, err := bus.KeysBucket.Apply(ctx, cat.bus, bus.Edit{Name: k.ID, Body: body, By: k.By, IfRevision: new(uint64)}); err != nil {
		return fmt.Errorf("store key %s: %w", k.ID, err)
	}
	return nil
}

// Key reads a key from the bucket's leader; ok is false when there is none, or no longer one.
func (cat *Catalog) Key(ctx context.Context, id string) (k control.StoredKey, ok bool, err error) {
	if err := control.CheckKeyID(id); err != nil {
		return k, false, err
	}
	m, ok, err := bus.KeysBucket.At(ctx, cat.bus, id, 0)
	if err != nil {
		return k, false, fmt.Errorf("read key %s: %w", id, err)
	}
	if !ok || bus.IsRemoved(m) {
		return k, false, nil
	}
	err = strict.Decode(m.Data, &k)
	if err == nil && k.ID != id {
		err = fmt.Errorf("its id is %q", strict.Clip(k.ID, 64))
	}
	if err != nil {
		return control.StoredKey{}, false, fmt.Errorf("unreadable key %s: %s", id, err.Error()) // not wrapped: it is no field of the request
	}
	return k, true, nil
}

// Keys are the keys by id, a thousand at most; more reports whether there are others. One that cannot be read is skipped
// and logged.
func (cat *Catalog) Keys(ctx context.Context, tenant string) (list []control.APIKey, more bool, err error) {
	list = []control.APIKey{}
	for subject, err := range cat.bus.Stream(bus.StreamKeys).Subjects(ctx, bus.KeysBucket.Prefix+"*") {
		if err != nil {
			return nil, false, fmt.Errorf("list keys: %w", err)
		}
		k, ok, err := cat.Key(ctx, strings.TrimPrefix(subject, bus.KeysBucket.Prefix))
		switch {
		case ctx.Err() != nil:
			return nil, false, err
		case err != nil:
			cat.bus.Log().WarnContext(ctx, "key skipped", "err", err)
		case !ok || tenant != "" && k.Tenant != tenant:
		case len(list) == MaxKeys:
			return list, true, nil
		default:
			list = append(list, k.APIKey)
		}
	}
	return list, false, nil
}

// RevokeKey removes a key; its history stays. There was none when changed is false.
func (cat *Catalog) RevokeKey(ctx context.Context, id, by string) (change control.Change, changed bool, err error) {
	if err := control.CheckKeyID(id); err != nil {
		return change, false, err
	}
	change, changed, err = bus.KeysBucket.Apply(ctx, cat.bus, bus.Edit{Name: id, By: by})
	if err != nil {
		return change, false, fmt.Errorf("revoke key %s: %w", id, err)
	}
	return change, changed, nil
}
