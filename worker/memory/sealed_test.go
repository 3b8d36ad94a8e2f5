package memory_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

func newKeys(t *testing.T, b *bus.Bus) *keyring.Keyring {
	t.Helper()
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	return keyring.New(b, keyring.Config{Master: master})
}

// What is kept of a run is sealed for its tenant, and is a miss anywhere else than where it was stored.
func TestValuesAreSealed(t *testing.T) {
	const planted = "xylophone-7731"
	servers := []memorytest.Server{miniredis(t)}
	if s, ok := memorytest.RedisServer(t); ok {
		servers = append(servers, s)
	}
	b, _ := bustest.OpenNew(t)
	keys := newKeys(t, b)
	for _, server := range servers {
		t.Run(server.Name, func(t *testing.T) {
			ctx := bustest.Context(t)
			rdb, err := memory.Connect(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rdb.Close() })
			made := func(c memory.Config) *memory.ShortTerm {
				c.Timeout = 10 * time.Second
				short, err := memory.New(rdb, c)
				if err != nil {
					t.Fatal(err)
				}
				return short
			}
			short := made(memory.Config{Sealer: keys})
			run, other := messages.Ref{Tenant: "acme", Run: "r"}, messages.Ref{Tenant: "zeta", Run: "r"}
			for _, r := range []messages.Ref{run, other} {
				short.Save(r, memory.Snapshot{Seq: 7, EntryID: "e", Data: []byte(planted)})
			}
			writing, stop := context.WithCancel(ctx)
			stop() // it writes what waits, and ends
			if err := short.Run(writing); err != nil {
				t.Fatal(err)
			}
			if got, ok := short.Load(ctx, run); !ok || string(got.Data) != planted {
				t.Fatalf("got %q, %t", got.Data, ok)
			}
			state, theirs := "longshore:{acme.r}:state", "longshore:{zeta.r}:state"
			stored, err := rdb.HGet(ctx, state, "data").Result()
			if err != nil || !keyring.Sealed([]byte(stored)) || strings.Contains(stored, planted) {
				t.Errorf("stored: %q, %v", stored, err)
			}
			miss := func(what string, s *memory.ShortTerm, r messages.Ref) {
				t.Helper()
				if got, ok := s.Load(ctx, r); ok {
					t.Errorf("%s: got %q", what, got.Data)
				}
			}
			set := func(key, field, value string) {
				t.Helper()
				if err := rdb.HSet(ctx, key, field, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			miss("another master keyset", made(memory.Config{Sealer: newKeys(t, b)}), run)
			set(theirs, "data", stored)
			miss("another tenant", short, other)
			set(state, "seq", "00000000000000000008")
			miss("another sequence", short, run)
			set(state, "seq", "00000000000000000007")
			set(state, "entry", "f")
			miss("another entry", short, run)
			set(state, "entry", "e")
			set(state, "data", stored[:len(stored)-1])
			miss("a value that was cut", short, run)
			set(state, "data", planted)
			if _, ok := short.Load(ctx, run); !ok {
				t.Error("a value of before is not read")
			}
		})
	}
}
