package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func miniredis(tb testing.TB) memorytest.Server {
	tb.Helper()
	s := embeddedtest.Start(tb, embedded.Config{NATSAddr: embedded.NoListen})
	return memorytest.Server{
		Name: "miniredis",
		URL:  s.RedisURL,
		Stop: func(testing.TB) { s.StopRedis() },
		Start: func(tb testing.TB) {
			tb.Helper()
			if err := s.StartRedis(); err != nil {
				tb.Fatal(err)
			}
		},
	}
}

func TestConformanceOfMiniredis(t *testing.T) {
	s := miniredis(t)
	t.Logf("server: %s, which says redis %s", s.Name, memorytest.Version(t, s))
	memorytest.Run(t, miniredis)
}

func TestConformanceOfRedis(t *testing.T) {
	s, ok := memorytest.RedisServer(t)
	if !ok {
		t.Log("no redis-server on the PATH: its conformance run was left out")
		return
	}
	t.Logf("server: %s %s", s.Name, memorytest.Version(t, s))
	memorytest.Run(t, func(tb testing.TB) memorytest.Server {
		tb.Helper()
		s, _ := memorytest.RedisServer(tb)
		return s
	})
}

// Servers that take seconds to find one another are shared by the tests of the suite.
func TestConformanceOfRedisTogether(t *testing.T) {
	for name, start := range map[string]func(testing.TB) (memorytest.Server, bool){
		"cluster": memorytest.Cluster,
		"sentinel": func(tb testing.TB) (memorytest.Server, bool) {
			tb.Helper()
			w, ok := memorytest.Sentinel(tb)
			if !ok {
				return memorytest.Server{}, false
			}
			return w.Server, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ok := start(t)
			if !ok {
				t.Log("no redis-server on the PATH: its conformance run was left out")
				return
			}
			memorytest.Run(t, func(tb testing.TB) memorytest.Server {
				tb.Helper()
				memorytest.FlushAll(tb, connect(tb, s.URL))
				return s
			})
		})
	}
}

func TestFailover(t *testing.T) {
	w, ok := memorytest.Sentinel(t)
	if !ok {
		t.Log("no redis-server on the PATH: the failover was left out")
		return
	}
	memorytest.Failover(t, w)
}

func connect(tb testing.TB, url string) redis.UniversalClient {
	tb.Helper()
	rdb, err := memory.Connect(url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func newMemory(tb testing.TB, url string, c memory.Config) *memory.ShortTerm {
	tb.Helper()
	m, err := memory.New(connect(tb, url), c)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func ref(i int) messages.Ref { return messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)} }

// mute listens and never answers.
func mute(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				io.Copy(io.Discard, conn) // until the client closes
				conn.Close()
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "redis://" + l.Addr().String()
}

func TestMuteServerCostsThreeTimeoutsThenNothing(t *testing.T) {
	m := newMemory(t, mute(t), memory.Config{Timeout: 20 * time.Millisecond, Probe: time.Hour})
	for range 1000 {
		if _, ok := m.Load(t.Context(), ref(1)); ok {
			t.Fatal("loaded from a server that never answers")
		}
	}
	want := memory.Stats{Misses: 1000, Errors: 3, Up: false}
	if diff := cmp.Diff(want, m.Stats()); diff != "" {
		t.Error(diff)
	}
	if err := m.Reach(t.Context()); !errors.Is(err, memory.ErrDown) {
		t.Errorf("Reach: got %v, want ErrDown", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.Save(ref(1), memory.Snapshot{Seq: 1})
	cancel()
	if err := m.Run(ctx); err != nil {
		t.Error(err)
	}
	if got := m.Stats(); got.Dropped != 1 || got.Errors != 3 {
		t.Errorf("got %+v, want the flush to drop 1 and not to ask a dead server", got)
	}
}

func TestCallerThatGivesUpSaysNothingAboutRedis(t *testing.T) {
	m := newMemory(t, mute(t), memory.Config{Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		m.Load(ctx, ref(1))
	}
	if got := m.Stats(); !got.Up || got.Misses != 10 {
		t.Errorf("got %+v, want up and 10 misses", got)
	}
}

func TestPendingIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		config memory.Config
		kept   uint64
	}{
		"count": {memory.Config{MaxPending: 10}, 10},
		"bytes": {memory.Config{MaxPendingBytes: 1000}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t, miniredis(t).URL, tc.config)
			for round := range uint64(3) {
				for i := range 50 {
					m.Save(ref(i), memory.Snapshot{Seq: round + 1, Data: make([]byte, 100)})
				}
			}
			if got, want := m.Stats().Dropped, 3*(50-tc.kept); got != want {
				t.Errorf("got %d dropped, want %d", got, want)
			}
			for i := range 50 {
				m.Delete(ref(i)) // makes room for bytes
			}
			ctx, cancel := context.WithCancel(t.Context())
			for i := range int(tc.kept) {
				m.Save(ref(i), memory.Snapshot{Seq: 1, Data: make([]byte, 100)})
			}
			cancel()
			if err := m.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if got := m.Stats().Saves; got != tc.kept {
				t.Errorf("got %d saves, want %d", got, tc.kept)
			}
		})
	}
}

func TestOnlyTheNewestWaits(t *testing.T) {
	m := newMemory(t, miniredis(t).URL, memory.Config{})
	for _, seq := range []uint64{1, 5, 3} {
		m.Save(ref(1), memory.Snapshot{Seq: seq, EntryID: "e", Data: []byte{byte(seq)}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	got, _ := m.Load(t.Context(), ref(1))
	if diff := cmp.Diff(memory.Snapshot{Seq: 5, EntryID: "e", Data: []byte{5}}, got); diff != "" {
		t.Error(diff)
	}
	if got := m.Stats().Saves; got != 1 {
		t.Errorf("got %d saves, want 1", got)
	}
}

func TestNewRefusesABadConfig(t *testing.T) {
	rdb := connect(t, "redis://127.0.0.1:1")
	for name, c := range map[string]memory.Config{
		"Prefix": {Prefix: "a{b}"},
		"TTL":    {TTL: time.Microsecond},
		"Probe":  {Probe: -1},
	} {
		if _, err := memory.New(rdb, c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}

// BenchmarkSave saves without a pause on 256 runs. Newer snapshots replace older ones that still wait, so what Redis
// takes is the metric writes/s.
func BenchmarkSave(b *testing.B) {
	servers := map[string]memorytest.Server{"miniredis": miniredis(b)}
	if s, ok := memorytest.RedisServer(b); ok {
		servers["redis-server"] = s
	}
	for name, s := range servers {
		b.Run(name, func(b *testing.B) {
			m := newMemory(b, s.URL, memory.Config{Timeout: 5 * time.Second})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- m.Run(ctx) }()
			data := make([]byte, 4<<10)
			first := uint64(time.Now().UnixNano()) // greater than what an earlier round has left
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m.Save(ref(i%256), memory.Snapshot{Seq: first + uint64(i), EntryID: "e", Data: data})
			}
			cancel()
			if err := <-done; err != nil { // Run has written what waited
				b.Fatal(err)
			}
			b.ReportMetric(float64(m.Stats().Saves)/b.Elapsed().Seconds(), "writes/s")
			if got := m.Stats(); got.Dropped != 0 || got.Errors != 0 {
				b.Fatalf("%+v", got)
			}
		})
	}
}
