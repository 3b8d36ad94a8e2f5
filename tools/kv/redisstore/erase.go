package redisstore

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/kv"
)

var _ kv.Eraser = (*Store)(nil)

// scanned is how many keys a server looks at for one answer.
const scanned = 1000

// Scopes implements kv.Eraser. It looks at all keys of each server, some at a time.
func (st *Store) Scopes(ctx context.Context) iter.Seq2[kv.Scope, error] {
	return func(yield func(kv.Scope, error) bool) {
		cluster, ok := st.rdb.(*redis.ClusterClient)
		if !ok {
			scan(ctx, st.rdb, yield)
			return
		}
		var mu sync.Mutex
		var masters []*redis.Client
		err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			masters = append(masters, c)
			return nil
		})
		if err != nil {
			yield(kv.Scope{}, fmt.Errorf("redis: %w", err))
			return
		}
		for _, c := range masters {
			if !scan(ctx, c, yield) {
				return
			}
		}
	}
}

// scan yields the scopes of one server; false ends it.
func scan(ctx context.Context, rdb redis.Cmdable, yield func(kv.Scope, error) bool) bool {
	for cursor := uint64(0); ; {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		found, next, err := rdb.Scan(one, cursor, prefix+"{*}:*", scanned).Result()
		cancel()
		if err != nil {
			return yield(kv.Scope{}, fmt.Errorf("redis: %w", err))
		}
		for _, key := range found {
			if s, ok := scopeOf(key); ok && !yield(s, nil) {
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

// scopeOf is the scope of a run or a session that a key belongs to.
func scopeOf(key string) (s kv.Scope, ok bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, prefix+"{"), "}")
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return s, false
	}
	s = kv.Scope{Kind: parts[0], Tenant: parts[1], Name: parts[2]}
	return s, (s.Kind == messages.KVRun || s.Kind == messages.KVSession) && s.Check() == nil
}

// KeysOf are the keys of a scope that has passed its Check.
func KeysOf(s kv.Scope) []string { return keys(s) }

// PatternsOf are those of the keys of all scopes of a tenant, and of what is known of their sizes.
func PatternsOf(tenant string) []string {
	return []string{prefix + "{*." + tenant + ".*}:*", prefix + "{quota." + tenant + "}:*"}
}

// Erase implements kv.Eraser.
func (st *Store) Erase(ctx context.Context, s kv.Scope) error {
	if err := s.Check(); err != nil {
		return err
	}
	one, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := st.rdb.Del(one, keys(s)...).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return st.settle(ctx, s, "0", 0)
}
