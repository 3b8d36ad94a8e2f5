package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/redisstore"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

// patience is how long tests wait for a Redis that is not slow on purpose, but may be beside other tests.
const patience = time.Minute

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

// patiently connects to a Redis, and waits for it as long as patience.
func patiently(t *testing.T, at string) redis.UniversalClient {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("read_timeout", patience.String())
	u.RawQuery = q.Encode()
	return connect(t, u.String())
}

func suite(t *testing.T, url string) {
	t.Helper()
	longtermtest.Run(t, func(t *testing.T, o longtermtest.Options) longterm.Store {
		t.Helper()
		rdb := patiently(t, url)
		memorytest.FlushAll(t, rdb)
		return redisstore.New(rdb, redisstore.Config{Timeout: patience, Limits: o.Limits, Now: o.Now})
	})
}

func TestConformance(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		suite(t, embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen}).RedisURL)
	})
	memorytest.Real(t, func(t *testing.T, s memorytest.Server) { suite(t, s.URL) })
}

// start starts a server with some more of its options.
func start(t *testing.T, program string, options ...string) (addr string) {
	t.Helper()
	addr = freeAddr(t)
	host, port, _ := net.SplitHostPort(addr)
	args := append([]string{"--bind", host, "--port", port, "--save", "", "--dir", t.TempDir()}, options...)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	rdb := connect(t, "redis://"+addr)
	for deadline := time.Now().Add(30 * time.Second); rdb.Ping(t.Context()).Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not start")
		}
	}
	return addr
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

// A Redis that is full refuses writes and can still be read and deleted from.
func TestFull(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Log("no redis-server on the PATH: it was left out")
		return
	}
	s := redisstore.New(patiently(t, "redis://"+start(t, program, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")), redisstore.Config{Timeout: patience})
	at := longtermtest.Place("c")
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = s.Write(t.Context(), at, []longterm.Item{{ID: fmt.Sprint("i", n), Text: strings.Repeat("anchor ", 9000)}})
	}
	if !errors.Is(err, longterm.ErrStorageFull) || n < 10 {
		t.Fatalf("%v after %d writes", err, n)
	}
	found, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"})
	if err != nil || len(found.Hits) == 0 {
		t.Errorf("%d hits, %v", len(found.Hits), err)
	}
	stats, err := s.Stats(t.Context(), at.Tenant)
	if err != nil || stats.Items != int64(n-1) {
		t.Errorf("%+v, %v after %d writes", stats, err, n-1)
	}
	if removed, err := s.Delete(t.Context(), at, longterm.Deletion{All: true}); err != nil || removed != n-1 {
		t.Errorf("deleted %d of %d, %v", removed, n-1, err)
	}
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "later", Text: "anchor"}}); err != nil {
		t.Error(err)
	}
}

// A Redis that is away, or does not answer, costs the timeout and no more.
func TestAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for name, addr := range map[string]string{"silent": l.Addr().String(), "gone": freeAddr(t)} {
		s, at := redisstore.New(connect(t, "redis://"+addr), redisstore.Config{Timeout: 200 * time.Millisecond}), longtermtest.Place("c")
		began := time.Now()
		_, readErr := s.Read(t.Context(), at, []string{"a"})
		_, searchErr := s.Search(t.Context(), at, longterm.Search{Text: "a"})
		_, deleteErr := s.Delete(t.Context(), at, longterm.Deletion{All: true})
		_, sweepErr := s.Sweep(t.Context(), 1)
		for call, err := range map[string]error{"write": s.Write(t.Context(), at, []longterm.Item{{ID: "a"}}), "read": readErr, "search": searchErr, "delete": deleteErr, "sweep": sweepErr} {
			if !errors.Is(err, longterm.ErrUnavailable) {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: five calls took %v", name, took)
		}
	}
}
