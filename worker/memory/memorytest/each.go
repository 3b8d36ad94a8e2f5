package memorytest

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// FlushAll empties a server, or every node of a cluster: the command of a cluster's client may reach one of them alone.
func FlushAll(tb testing.TB, rdb redis.UniversalClient) {
	tb.Helper()
	each(tb, rdb, func(ctx context.Context, one redis.Cmdable) error { return one.FlushAll(ctx).Err() })
}

func forgetScripts(tb testing.TB, rdb redis.UniversalClient) {
	tb.Helper()
	each(tb, rdb, func(ctx context.Context, one redis.Cmdable) error { return one.ScriptFlush(ctx).Err() })
}

// each calls do with each server that takes writes, one at a time.
func each(tb testing.TB, rdb redis.UniversalClient, do func(context.Context, redis.Cmdable) error) {
	tb.Helper()
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		if err := do(tb.Context(), rdb); err != nil {
			tb.Fatal(err)
		}
		return
	}
	var mu sync.Mutex
	err := cluster.ForEachMaster(tb.Context(), func(ctx context.Context, one *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return do(ctx, one)
	})
	if err != nil {
		tb.Fatal(err)
	}
}
