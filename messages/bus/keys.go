package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// BucketKeys has the hashes of API keys.
const BucketKeys = "KEYS"

const (
	streamKeys = "KV_" + BucketKeys
	keysPrefix = "$KV." + BucketKeys + "."
	// MaxKeys bounds a list of keys.
	MaxKeys = 1000
)

var keysBucket = bucket{streamKeys, keysPrefix, true} //nolint:gochecknoglobals // a constant

// keys is the stream of the bucket, made like that of another bucket.
func keys(like jetstream.StreamConfig) jetstream.StreamConfig {
	like.Name, like.Description = streamKeys, "API keys of HTTP, by id: their hashes."
	like.Subjects = []string{keysPrefix + ">"}
	return like
}

// CreateKey stores a key, or returns messages.ErrRevision when there is one of its id.
func (b *Bus) CreateKey(ctx context.Context, k messages.StoredKey) error {
	if err := messages.CheckKeyID(k.ID); err != nil {
		return err
	}
	body, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode key %s: %w", k.ID, err)
	}
	if _, _, err := b.apply(ctx, keysBucket, edit{k.ID, body, k.By, new(uint64)}); err != nil {
		return fmt.Errorf("store key %s: %w", k.ID, err)
	}
	return nil
}

// Key reads a key from the bucket's leader; ok is false when there is none, or none any more.
func (b *Bus) Key(ctx context.Context, id string) (k messages.StoredKey, ok bool, err error) {
	if err := messages.CheckKeyID(id); err != nil {
		return k, false, err
	}
	m, ok, err := b.at(ctx, keysBucket, id, 0)
	if err != nil {
		return k, false, fmt.Errorf("read key %s: %w", id, err)
	}
	if !ok || isRemoved(m) {
		return k, false, nil
	}
	if err := strict.Decode(m.data, &k); err != nil || k.ID != id {
		return messages.StoredKey{}, false, fmt.Errorf("unreadable key %s: %v", id, err) //nolint:errorlint // not a field of who asks
	}
	return k, true, nil
}

// Keys are the keys by id, a thousand at most; more reports whether there are others. One that cannot be read is skipped
// and logged.
func (b *Bus) Keys(ctx context.Context, tenant string) (list []messages.APIKey, more bool, err error) {
	list = []messages.APIKey{}
	for subject, err := range b.subjects(ctx, streamKeys, keysPrefix+"*") {
		if err != nil {
			return nil, false, fmt.Errorf("list keys: %w", err)
		}
		k, ok, err := b.Key(ctx, strings.TrimPrefix(subject, keysPrefix))
		switch {
		case ctx.Err() != nil:
			return nil, false, err
		case err != nil:
			b.log.WarnContext(ctx, "key skipped", "err", err)
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
func (b *Bus) RevokeKey(ctx context.Context, id, by string) (change messages.Change, changed bool, err error) {
	if err := messages.CheckKeyID(id); err != nil {
		return change, false, err
	}
	change, changed, err = b.apply(ctx, keysBucket, edit{id, nil, by, nil})
	if err != nil {
		return change, false, fmt.Errorf("revoke key %s: %w", id, err)
	}
	return change, changed, nil
}
