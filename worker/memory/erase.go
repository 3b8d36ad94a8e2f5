package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
)

const (
	eraseTimeout = 3 * time.Second // of one request
	scanned      = 1000            // keys that a server looks at for one answer
)

// SessionPrefix is the Prefix of the conversations of sessions, which stand under the name of the session in place of a run's id.
const SessionPrefix = "longshore:session"

// StateKey is the key of a run's state under a prefix; an empty prefix is the default. The Ref must have passed its Check.
func StateKey(prefix string, run messages.Ref) string {
	return orDefault(prefix, defaultPrefix) + ":{" + run.Tenant + "." + run.Run + "}:state"
}

// StatesOf is the pattern of the keys of all states of a tenant under a prefix.
func StatesOf(prefix, tenant string) string {
	return StateKey(prefix, messages.Ref{Tenant: tenant, Run: "*"})
}

// Erase removes keys, and those that match patterns, on all masters, and returns how many there were. It looks at every key of a server for
// patterns. It may have removed some when it fails; call it again.
func Erase(ctx context.Context, rdb redis.UniversalClient, keys, patterns []string) (n int64, err error) {
	for _, key := range keys { // one by one: they are in different slots of a cluster
		one, cancel := context.WithTimeout(ctx, eraseTimeout)
		removed, err := rdb.Del(one, key).Result()
		cancel()
		if n += removed; err != nil {
			return n, fmt.Errorf("redis: %w", err)
		}
	}
	for _, pattern := range patterns {
		removed, err := eraseMatching(ctx, rdb, pattern)
		if n += removed; err != nil {
			return n, fmt.Errorf("redis: %w", err)
		}
	}
	return n, nil
}

func eraseMatching(ctx context.Context, rdb redis.UniversalClient, pattern string) (n int64, err error) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return eraseOn(ctx, rdb, pattern)
	}
	var mu sync.Mutex // masters are asked at once
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		removed, err := eraseOn(ctx, master, pattern)
		mu.Lock()
		defer mu.Unlock()
		n += removed
		return err
	})
	return n, err
}

// eraseOn removes what matches on one server.
func eraseOn(ctx context.Context, rdb redis.Cmdable, pattern string) (n int64, err error) {
	for cursor := uint64(0); ; {
		one, cancel := context.WithTimeout(ctx, eraseTimeout)
		found, next, err := rdb.Scan(one, cursor, pattern, scanned).Result()
		for _, key := range found {
			if err == nil {
				var removed int64
				removed, err = rdb.Del(one, key).Result()
				n += removed
			}
		}
		cancel()
		if cursor = next; err != nil || cursor == 0 {
			return n, err
		}
	}
}
