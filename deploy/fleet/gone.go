package fleet

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/dispatcher/service/erasure"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools/kv"
	kvredis "github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/model/replycache"
)

// gone reports whether a run has no log, or a session no run that waits, works or has a log: it was deleted, or the retention of all of
// its runs is over.
func gone(log runlog.Log, sessions runlog.Sessions) func(context.Context, kv.Scope) (bool, error) {
	return func(ctx context.Context, s kv.Scope) (bool, error) {
		runs := []string{s.Name}
		if s.Kind == messages.KVSession {
			session, _, err := sessions.Session(ctx, s.Tenant, s.Name)
			if err != nil || len(session.Runs) > 0 {
				return false, err
			}
			runs = session.Ended
		}
		for _, run := range runs {
			if _, ok, err := log.Last(ctx, messages.Ref{Tenant: s.Tenant, Run: run}); err != nil || ok {
				return false, err
			}
		}
		return true, nil
	}
}

// cached is what workers keep in Redis, as a dispatcher erases it.
type cached struct{ rdb redis.UniversalClient }

// openCached connects at the first erasure; nil without a Redis.
func openCached(redisURL string) (_ *cached, shut func() error, err error) {
	if redisURL == "" || redisURL == "none" {
		return nil, func() error { return nil }, nil
	}
	rdb, err := memory.Connect(redisURL)
	if err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return &cached{rdb}, rdb.Close, nil
}

// Erase implements erasure.Cache.
func (c *cached) Erase(ctx context.Context, tenant string, what erasure.Cached) (int64, error) {
	patterns := []string{replycache.RepliesOf(tenant)}
	if what.All {
		patterns = append(patterns, memory.StatesOf("", tenant), memory.StatesOf(memory.SessionPrefix, tenant))
		patterns = append(patterns, kvredis.PatternsOf(tenant)...)
	}
	var keys []string
	for _, run := range what.Runs {
		keys = append(keys, memory.StateKey("", messages.Ref{Tenant: tenant, Run: run}))
		keys = append(keys, kvredis.KeysOf(kv.Scope{Kind: messages.KVRun, Tenant: tenant, Name: run})...)
	}
	for _, name := range what.Conversations {
		keys = append(keys, memory.StateKey(memory.SessionPrefix, messages.Ref{Tenant: tenant, Run: name}))
	}
	for _, name := range what.Sessions {
		keys = append(keys, kvredis.KeysOf(kv.Scope{Kind: messages.KVSession, Tenant: tenant, Name: name})...)
	}
	return memory.Erase(ctx, c.rdb, keys, patterns)
}

// reach is what a dispatcher reaches when it erases.
func reach(c *cached, ring *keyring.Keyring) (r erasure.Reach) {
	if c != nil {
		r.Cache = c
	}
	if ring.On() {
		r.Keys = ring
	}
	return r
}
