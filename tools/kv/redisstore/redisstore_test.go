package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/kvtest"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := memory.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func embeddedRedis(t *testing.T) memorytest.Server {
	t.Helper()
	s := embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen})
	return memorytest.Server{Name: "miniredis", URL: s.RedisURL, Stop: func(testing.TB) { s.StopRedis() }, Start: func(tb testing.TB) {
		tb.Helper()
		if err := s.StartRedis(); err != nil {
			tb.Fatal(err)
		}
	}}
}

// servers are the embedded Redis, and the real one where it is installed.
func servers(t *testing.T, test func(t *testing.T, s memorytest.Server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { test(t, embeddedRedis(t)) })
	s, ok := memorytest.RedisServer(t)
	if !ok {
		t.Log("no redis-server on the PATH: it was left out")
		return
	}
	t.Run("redis-server", func(t *testing.T) { test(t, s) })
}

func TestConformance(t *testing.T) {
	suite := func(t *testing.T, s memorytest.Server) {
		t.Helper()
		kvtest.Run(t, func(t *testing.T, l kv.Limits) kv.Store {
			t.Helper()
			rdb := connect(t, s.URL)
			memorytest.FlushAll(t, rdb)
			return redisstore.New(rdb, l)
		})
	}
	t.Run("miniredis", func(t *testing.T) { suite(t, embeddedRedis(t)) })
	memorytest.Real(t, suite)
}

// The tools keep their promises on Redis, and so does the next worker, which has a connection of its own.
func TestToolsConformance(t *testing.T) {
	servers(t, func(t *testing.T, s memorytest.Server) {
		kvtest.RunTools(t, func(t *testing.T) kv.Store {
			t.Helper()
			return redisstore.New(connect(t, s.URL), kvtest.Limits())
		})
	})
}

// Scripts that a server forgot are sent again, and nothing of a scope stays forever.
func TestScriptsFlushedAndKeysEnd(t *testing.T) {
	servers(t, func(t *testing.T, s memorytest.Server) {
		rdb := connect(t, s.URL)
		store := redisstore.New(rdb, kv.Limits{Keys: 10, Bytes: 1000, TTL: 48 * time.Hour})
		in := kv.Scope{Kind: messages.KVSession, Tenant: "t", Name: "s"}
		for range 2 {
			if _, err := store.Set(t.Context(), in, kv.Write{Key: "k", Value: "v", TTL: time.Hour, Call: "c"}); err != nil {
				t.Fatal(err)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		keys, err := rdb.Keys(t.Context(), "*").Result()
		if err != nil || len(keys) != 7 {
			t.Fatalf("keys %v, %v", keys, err)
		}
		for _, key := range keys {
			ttl, err := rdb.PTTL(t.Context(), key).Result()
			if err != nil || ttl <= 47*time.Hour || ttl > 48*time.Hour || !strings.HasPrefix(key, "longshore:kv:{session.t.s}:") {
				t.Errorf("%s ends in %v, %v", key, ttl, err)
			}
		}
	})
}

// Redis that is full may evict a part of a scope. Then the rest is gone too: no value is shown wrong, and the quotas are right.
func TestEvicted(t *testing.T) {
	servers(t, func(t *testing.T, s memorytest.Server) {
		rdb := connect(t, s.URL)
		store := redisstore.New(rdb, kv.Limits{Keys: 2, Bytes: 10, TTL: time.Hour})
		for _, part := range []string{"values", "about", "names", "expiries", "counters", "calls", "times"} {
			in := kv.Scope{Kind: messages.KVRun, Tenant: "t", Name: part}
			last := int64(0)
			for round := range 2 {
				for _, key := range []string{"a", "b"} {
					revision, err := store.Set(t.Context(), in, kv.Write{Key: key, Value: "1234", TTL: time.Hour, Call: fmt.Sprint(key, round)})
					if err != nil {
						t.Fatalf("%s: %v", part, err)
					}
					// Else a run could take a value for the one that it has read.
					if revision <= last {
						t.Errorf("%s: revision %d after %d", part, revision, last)
					}
					last = revision
				}
				if n := rdb.Del(t.Context(), "longshore:kv:{"+in.String()+"}:"+part).Val(); n != 1 {
					t.Fatalf("%s: removed %d keys", part, n)
				}
				if item, err := store.Get(t.Context(), in, "a"); !errors.Is(err, kv.ErrNone) {
					t.Errorf("%s: %+v, %v", part, item, err)
				}
				if entries, more, err := store.List(t.Context(), in, kv.Query{Limit: 10}); err != nil || more || len(entries) != 0 {
					t.Errorf("%s: %+v, %v", part, entries, err)
				}
			}
		}
	})
}

// A scope of which Redis evicted the record of calls forgets its values too: a call that is repeated could change later ones.
func TestCallsEvicted(t *testing.T) {
	servers(t, func(t *testing.T, s memorytest.Server) {
		rdb := connect(t, s.URL)
		store := redisstore.New(rdb, kv.Limits{Keys: 9, Bytes: 100, TTL: time.Hour})
		for _, part := range []string{"calls", "times"} {
			in := kv.Scope{Kind: messages.KVTenant, Tenant: part}
			first := kv.Write{Key: "k", Value: "first", TTL: time.Hour, Call: "one"}
			for _, w := range []kv.Write{first, {Key: "k", Value: "second", TTL: time.Hour, Call: "two"}} {
				if _, err := store.Set(t.Context(), in, w); err != nil {
					t.Fatal(err)
				}
			}
			if n := rdb.Del(t.Context(), "longshore:kv:{"+in.String()+"}:"+part).Val(); n != 1 {
				t.Fatalf("%s: removed %d keys", part, n)
			}
			if item, err := store.Get(t.Context(), in, "k"); !errors.Is(err, kv.ErrNone) {
				t.Errorf("%s: %+v, %v", part, item, err)
			}
		}
		// The record outlives the values: a repeated call changes nothing.
		in := kv.Scope{Kind: messages.KVTenant, Tenant: "values"}
		w := kv.Write{Key: "k", Value: "first", TTL: time.Hour, Call: "one"}
		revision, err := store.Set(t.Context(), in, w)
		if err != nil {
			t.Fatal(err)
		}
		rdb.Del(t.Context(), "longshore:kv:{"+in.String()+"}:values")
		if _, err := store.Set(t.Context(), in, kv.Write{Key: "k", Value: "second", TTL: time.Hour, Call: "two"}); err != nil {
			t.Fatal(err)
		}
		if again, err := store.Set(t.Context(), in, w); err != nil || again != revision {
			t.Errorf("revision %d, then %d, %v", revision, again, err)
		}
		if item, err := store.Get(t.Context(), in, "k"); err != nil || item.Value != "second" {
			t.Errorf("%+v, %v", item, err)
		}
	})
}

// A Redis that is away costs a call that may be made again, for a bounded time; once it is back the calls continue.
func TestRedisAway(t *testing.T) {
	servers(t, func(t *testing.T, s memorytest.Server) {
		made, err := kv.Tools(redisstore.New(connect(t, s.URL), kv.Limits{Keys: 10, Bytes: 100_000, TTL: time.Hour}), kv.Config{})
		if err != nil {
			t.Fatal(err)
		}
		set := made[1]
		call := tools.Call{Run: messages.Ref{Tenant: "t", Run: "r"}, Key: "r.1.c", Arguments: []byte(`{"key":"k","value":"v","revision":0}`)}
		s.Stop(t)
		began := time.Now()
		r, err := set.Call(t.Context(), call)
		if err != nil || !r.IsError || !r.Transient || !strings.HasPrefix(r.Content[0].Text, "The store does not answer now.") {
			t.Errorf("%+v, %v", r, err)
		}
		all, err := tools.NewSet(made...)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = all.Call(t.Context(), "kv_set", call); err != nil || !r.IsError || fmt.Sprintf("%s", r.Meta["attempts"]) != "4" {
			t.Errorf("%+v, %v", r, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		s.Start(t)
		deadline := time.Now().Add(30 * time.Second)
		for {
			r, err = set.Call(t.Context(), call)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%+v, %v", r, err)
			}
			if !r.IsError {
				break
			}
		}
		if got := r.Content[0].Text; !strings.HasPrefix(got, `Kept 1 bytes under "k" with revision `) {
			t.Error(got)
		}
	})
}

// A server that accepts and never answers is not waited for.
func TestRedisThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	store := redisstore.New(connect(t, "redis://"+l.Addr().String()), kv.Limits{Keys: 1, Bytes: 1, TTL: time.Hour})
	began := time.Now()
	_, err = store.Get(context.Background(), kv.Scope{Kind: messages.KVTenant, Tenant: "t"}, "k")
	if took := time.Since(began); err == nil || took > 20*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// A node of a cluster refuses a script whose keys are in more than one slot.
func TestConformanceInACluster(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Log("no redis-server on the PATH: the cluster was left out")
		return
	}
	addr := clusterNode(t, program)
	kvtest.Run(t, func(t *testing.T, l kv.Limits) kv.Store {
		t.Helper()
		rdb := connect(t, fmt.Sprintf("redis://%s?addr=%s", addr, addr))
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return redisstore.New(rdb, l)
	})
}

// clusterNode starts a cluster of one node.
func clusterNode(t *testing.T, program string) (addr string) {
	t.Helper()
	addr = freeAddr(t)
	host, port, _ := net.SplitHostPort(addr)
	_, bus, _ := net.SplitHostPort(freeAddr(t)) // by default the port plus 10,000, which may be none
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--bind", host, "--port", port, "--save", "", "--dir", t.TempDir(),
		"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-config-file", "nodes.conf")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	rdb := connect(t, "redis://"+addr)
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := rdb.ClusterAddSlotsRange(t.Context(), 0, 16383).Err()
		if err != nil && strings.Contains(err.Error(), "is already busy") {
			err = nil
		}
		info := rdb.ClusterInfo(t.Context()).Val()
		if err == nil && strings.Contains(info, "cluster_state:ok") {
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("no cluster: %v %s", err, info)
		}
	}
}

// freeAddr is an address that was free a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
