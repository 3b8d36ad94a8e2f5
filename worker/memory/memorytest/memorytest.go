package memorytest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory"
)

// patience is how long the suite waits for what must happen.
const patience = 30 * time.Second

// probe is short, for the tests of outages.
const probe = 20 * time.Millisecond

// Server is a running server that the suite may empty, stop and start. It starts empty or not, as it likes.
type Server struct {
	Name        string
	URL         string
	Start, Stop func(testing.TB)
}

// Run runs the suite. Each test starts a server of its own.
func Run(t *testing.T, start func(testing.TB) Server) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Server){
		"saves and loads":                testSaveAndLoad,
		"unknown run":                    testUnknownRun,
		"greater sequence wins":          testGreaterSequenceWins,
		"huge sequences are exact":       testHugeSequences,
		"greater sequence wins a race":   testConcurrency,
		"expires":                        testExpiry,
		"the key of a run":               testKeys,
		"delete removes the run":         testDelete,
		"save after delete comes back":   testSaveAfterDelete,
		"scripts flushed":                testScriptFlush,
		"emptied":                        testFlushAll,
		"value of another type":          testWrongType,
		"damaged value":                  testDamagedValue,
		"value too large":                testHugeValue,
		"outage in the middle":           testOutage,
		"run writes the rest at its end": testFlushAtEnd,
	} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// Version asks the server for its version.
func Version(tb testing.TB, s Server) string {
	tb.Helper()
	info, err := client(tb, s).Info(tb.Context(), "server").Result()
	if err != nil {
		return "unknown version"
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(v)
		}
	}
	return "unknown version"
}

func client(tb testing.TB, s Server) redis.UniversalClient {
	tb.Helper()
	rdb, err := memory.Connect(s.URL)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// unstarted returns a memory whose Run the test calls.
func unstarted(tb testing.TB, s Server, c memory.Config) *memory.ShortTerm {
	tb.Helper()
	if c.Probe == 0 {
		c.Probe = probe
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second // a slow machine must not look like an outage
	}
	if c.Flush == 0 {
		c.Flush = patience
	}
	m, err := memory.New(client(tb, s), c)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// started returns a memory whose Run continues until the test ends.
func started(tb testing.TB, s Server, c memory.Config) *memory.ShortTerm {
	tb.Helper()
	m := unstarted(tb, s, c)
	stop := run(tb, m)
	tb.Cleanup(stop)
	return m
}

// run calls Run until the returned function is called.
func run(tb testing.TB, m *memory.ShortTerm) func() {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
}

// eventually fails the test unless ok becomes true.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-timeout.C:
			tb.Fatalf("not within %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

// ref is a run of the test's own name.
func ref(i int) messages.Ref { return messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)} }

func snapshot(seq uint64) memory.Snapshot {
	return memory.Snapshot{Seq: seq, EntryID: fmt.Sprintf("entry-%d", seq), Data: fmt.Appendf(nil, "state\x00%d", seq)}
}

// wantLoaded waits until the run's snapshot is want.
func wantLoaded(tb testing.TB, m *memory.ShortTerm, r messages.Ref, want memory.Snapshot) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%s at %d", r, want.Seq), func() bool {
		got, ok := m.Load(tb.Context(), r)
		return ok && got.Seq == want.Seq && got.EntryID == want.EntryID && bytes.Equal(got.Data, want.Data)
	})
}

// flushed waits until a snapshot of another run, saved now, is there: what was queued before has been written too.
func flushed(tb testing.TB, m *memory.ShortTerm) {
	tb.Helper()
	r := messages.Ref{Tenant: "acme", Run: "mark-" + messages.NewID(time.Now())}
	m.Save(r, snapshot(1))
	wantLoaded(tb, m, r, snapshot(1))
}

// wantSaves waits for the count: a snapshot can be loaded a moment before its save is counted.
func wantSaves(tb testing.TB, m *memory.ShortTerm, want uint64) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%d saves", want), func() bool { return m.Stats().Saves >= want })
	if got := m.Stats().Saves; got != want {
		tb.Errorf("got %d saves, want %d", got, want)
	}
}

func wantNone(tb testing.TB, m *memory.ShortTerm, r messages.Ref) {
	tb.Helper()
	if got, ok := m.Load(tb.Context(), r); ok {
		tb.Errorf("%s: got a snapshot at %d, want none", r, got.Seq)
	}
}

func testSaveAndLoad(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	m.Save(ref(1), snapshot(7))
	m.Save(ref(2), memory.Snapshot{Seq: 3, EntryID: "e", Data: []byte{}})
	wantLoaded(t, m, ref(1), snapshot(7))
	wantLoaded(t, m, ref(2), memory.Snapshot{Seq: 3, EntryID: "e", Data: []byte{}})
	wantSaves(t, m, 2)
	got := m.Stats()
	if got.Hits != 2 || got.Errors != 0 || got.Dropped != 0 || !got.Up {
		t.Errorf("got %+v, want 2 hits, no errors, nothing dropped, up", got)
	}
}

func testUnknownRun(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	wantNone(t, m, ref(1))
	for _, r := range []messages.Ref{{}, {Tenant: "acme", Run: "*"}, {Tenant: "a}:{b", Run: "x"}} {
		wantNone(t, m, r)
		m.Save(r, snapshot(1))
		m.Delete(r)
	}
	flushed(t, m)
	wantSaves(t, m, 1)
	if got := m.Stats(); got.Errors != 0 || got.Dropped != 6 {
		t.Errorf("got %+v, want no errors, 6 dropped", got)
	}
}

func testGreaterSequenceWins(t *testing.T, s Server) {
	t.Helper()
	one, other := started(t, s, memory.Config{}), started(t, s, memory.Config{})
	one.Save(ref(1), snapshot(10))
	wantLoaded(t, one, ref(1), snapshot(10))
	other.Save(ref(1), memory.Snapshot{Seq: 10, EntryID: "other", Data: []byte("other")})
	flushed(t, other)
	wantLoaded(t, other, ref(1), snapshot(10))
	other.Save(ref(1), snapshot(9))
	flushed(t, other)
	wantLoaded(t, other, ref(1), snapshot(10))
	other.Save(ref(1), snapshot(11))
	wantLoaded(t, one, ref(1), snapshot(11))
	wantSaves(t, other, 3) // two marks and one snapshot
}

func testHugeSequences(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	const above2to53 = 1<<53 + 1
	m.Save(ref(1), snapshot(above2to53))
	wantLoaded(t, m, ref(1), snapshot(above2to53))
	m.Save(ref(1), snapshot(above2to53-1))
	flushed(t, m)
	wantLoaded(t, m, ref(1), snapshot(above2to53))
	m.Save(ref(1), snapshot(1<<64-1))
	wantLoaded(t, m, ref(1), snapshot(1<<64-1))
}

func testConcurrency(t *testing.T, s Server) {
	t.Helper()
	const writers, saves = 4, 300
	var all sync.WaitGroup
	var memories []*memory.ShortTerm
	for range writers {
		memories = append(memories, started(t, s, memory.Config{}))
	}
	for w, m := range memories {
		all.Go(func() {
			for i := range uint64(saves) {
				m.Save(ref(1), snapshot(1+i*writers+uint64(w)))
			}
		})
	}
	var last uint64
	eventually(t, "greatest sequence", func() bool {
		got, ok := memories[0].Load(t.Context(), ref(1))
		if ok && got.Seq < last {
			t.Fatalf("sequence went from %d back to %d", last, got.Seq)
		}
		if ok && !cmp.Equal(snapshot(got.Seq), got) {
			t.Fatalf("snapshots are mixed: %+v", got)
		}
		last = got.Seq
		return ok && last == writers*saves
	})
	all.Wait()
	for _, m := range memories {
		flushed(t, m)
	}
	wantLoaded(t, memories[0], ref(1), snapshot(writers*saves))
}

func testExpiry(t *testing.T, s Server) {
	t.Helper()
	const ttl = time.Hour
	m := started(t, s, memory.Config{TTL: ttl})
	m.Save(ref(1), snapshot(1))
	wantLoaded(t, m, ref(1), snapshot(1))
	rdb := client(t, s)
	for _, key := range keys(t, rdb) {
		got, err := rdb.PTTL(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got <= ttl-time.Minute || got > ttl {
			t.Errorf("%s: expires in %s, want %s", key, got, ttl)
		}
	}
	brief := started(t, s, memory.Config{TTL: time.Millisecond})
	brief.Save(ref(2), snapshot(1))
	eventually(t, "saved", func() bool { return brief.Stats().Saves == 1 })
	eventually(t, "expired", func() bool { _, ok := brief.Load(t.Context(), ref(2)); return !ok })
}

func keys(tb testing.TB, rdb redis.UniversalClient) (all []string) {
	tb.Helper()
	each(tb, rdb, func(ctx context.Context, one redis.Cmdable) error {
		got, err := one.Keys(ctx, "*").Result()
		all = append(all, got...)
		return err
	})
	return all
}

func testKeys(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{Prefix: "house"})
	m.Save(ref(1), snapshot(1))
	wantLoaded(t, m, ref(1), snapshot(1))
	got := map[string]bool{}
	for _, key := range keys(t, client(t, s)) {
		got[key] = true
	}
	if diff := cmp.Diff(map[string]bool{"house:{acme.run-1}:state": true}, got); diff != "" {
		t.Error(diff)
	}
}

func testDelete(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	for i := range 2 {
		m.Save(ref(i), snapshot(1))
	}
	flushed(t, m)
	m.Delete(ref(0))
	rdb := client(t, s)
	eventually(t, "deleted", func() bool {
		n, err := rdb.Exists(t.Context(), "longshore:{acme.run-0}:state").Result()
		return err == nil && n == 0
	})
	for _, key := range keys(t, rdb) {
		if strings.Contains(key, "run-0") {
			t.Errorf("%s is left", key)
		}
	}
	wantLoaded(t, m, ref(1), snapshot(1))
}

func testSaveAfterDelete(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	m.Save(ref(1), snapshot(9))
	flushed(t, m)
	m.Delete(ref(1))
	m.Save(ref(1), snapshot(2)) // another life of the log
	wantLoaded(t, m, ref(1), snapshot(2))
	// One pipeline of both, by source: the removal must stay ahead.
	forgetScripts(t, client(t, s))
	m.Delete(ref(1))
	m.Save(ref(1), snapshot(1))
	wantLoaded(t, m, ref(1), snapshot(1))
}

func testScriptFlush(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	rdb := client(t, s)
	for i := range uint64(3) {
		m.Save(ref(1), snapshot(i+1))
		wantLoaded(t, m, ref(1), snapshot(i+1))
		forgetScripts(t, rdb)
	}
	wantSaves(t, m, 3)
	if got := m.Stats(); got.Errors != 0 {
		t.Errorf("got %+v, want no errors", got)
	}
}

func testFlushAll(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	m.Save(ref(1), snapshot(5))
	flushed(t, m)
	FlushAll(t, client(t, s))
	wantNone(t, m, ref(1))
	m.Save(ref(1), snapshot(4))
	wantLoaded(t, m, ref(1), snapshot(4))
}

func testWrongType(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	if err := client(t, s).Set(t.Context(), "longshore:{acme.run-1}:state", "a text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	const more = 10 // than enough failures to open the circuit
	for range more {
		wantNone(t, m, ref(1))
	}
	m.Save(ref(1), snapshot(1))
	flushed(t, m)
	if got := m.Stats(); !got.Up || got.Errors < more {
		t.Errorf("got %+v, want up with at least %d errors", got, more)
	}
	m.Delete(ref(1))
	m.Save(ref(1), snapshot(2))
	wantLoaded(t, m, ref(1), snapshot(2))
}

func testDamagedValue(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	rdb := client(t, s)
	for i, fields := range [][]any{
		{"seq", "x", "entry", "e", "data", "d"},
		{"seq", "1", "entry", "e"},
		{"data", "d"},
		{"seq", "1", "entry", "e", "data", strings.Repeat("d", memory.MaxValue+1)},
	} {
		if err := rdb.HSet(t.Context(), fmt.Sprintf("longshore:{acme.run-%d}:state", i), fields...).Err(); err != nil {
			t.Fatal(err)
		}
		wantNone(t, m, ref(i))
	}
	if got := m.Stats(); !got.Up || got.Errors != 4 {
		t.Errorf("got %+v, want up with 4 errors", got)
	}
}

func testHugeValue(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	largest := memory.Snapshot{Seq: 1, EntryID: "e", Data: bytes.Repeat([]byte{0xff}, memory.MaxValue)}
	m.Save(ref(1), largest)
	m.Save(ref(2), memory.Snapshot{Seq: 1, EntryID: "e", Data: make([]byte, memory.MaxValue+1)})
	wantLoaded(t, m, ref(1), largest)
	flushed(t, m)
	wantNone(t, m, ref(2))
	if got := m.Stats(); got.Dropped != 1 || got.Errors != 0 {
		t.Errorf("got %+v, want 1 dropped and no errors", got)
	}
}

func testOutage(t *testing.T, s Server) {
	t.Helper()
	m := started(t, s, memory.Config{})
	m.Save(ref(1), snapshot(1))
	wantLoaded(t, m, ref(1), snapshot(1))
	s.Stop(t)
	for i := range 100 {
		m.Save(ref(i), snapshot(2))
	}
	eventually(t, "down", func() bool { wantNone(t, m, ref(1)); return !m.Stats().Up })
	m.Save(ref(1), snapshot(3))
	s.Start(t)
	eventually(t, "up without any traffic", func() bool { return m.Stats().Up })
	wantLoaded(t, m, ref(1), snapshot(3))
	for i := range 100 {
		if i != 1 {
			wantLoaded(t, m, ref(i), snapshot(2))
		}
	}
	if got := m.Stats(); got.Dropped != 0 || got.Errors == 0 {
		t.Errorf("got %+v, want errors and nothing dropped", got)
	}
}

func testFlushAtEnd(t *testing.T, s Server) {
	t.Helper()
	const runs = 500 // several batches
	m := unstarted(t, s, memory.Config{})
	for i := range runs {
		m.Save(ref(i), snapshot(1))
	}
	run(t, m)() // its context ends at once
	for i := range runs {
		wantLoaded(t, m, ref(i), snapshot(1))
	}
	m.Save(ref(1), snapshot(2))
	if got := m.Stats(); got.Saves != runs || got.Dropped != 1 {
		t.Errorf("got %+v, want %d saves and 1 dropped after the end", got, runs)
	}
	if err := m.Run(t.Context()); err == nil {
		t.Error("second Run: want an error")
	}
}
