package memory_test

import (
	"fmt"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

// Keys that are named, and those of a tenant, are removed on every server of a cluster, and those of another tenant are not.
func TestErase(t *testing.T) {
	test := func(t *testing.T, s memorytest.Server) {
		t.Helper()
		rdb, err := memory.Connect(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		memorytest.FlushAll(t, rdb)
		key := func(tenant string, i int) string {
			return memory.StateKey("", messages.Ref{Tenant: tenant, Run: fmt.Sprint("r", i)})
		}
		const runs = 40 // in slots of all masters
		for i := range runs {
			for _, tenant := range []string{"acme", "acme2", "bell"} {
				if err := rdb.Set(t.Context(), key(tenant, i), "x", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		left := func(tenant string) (n int) {
			for i := range runs {
				is, err := rdb.Exists(t.Context(), key(tenant, i)).Result()
				if err != nil {
					t.Fatal(err)
				}
				n += int(is)
			}
			return n
		}
		if n, err := memory.Erase(t.Context(), rdb, []string{key("bell", 0), key("bell", 1), "longshore:no such key"}, nil); err != nil || n != 2 || left("bell") != runs-2 {
			t.Errorf("named keys: %d, %v, left %d", n, err, left("bell"))
		}
		if n, err := memory.Erase(t.Context(), rdb, nil, []string{memory.StatesOf("", "acme"), memory.StatesOf(memory.SessionPrefix, "acme")}); err != nil || n != runs {
			t.Errorf("a tenant: %d, %v", n, err)
		}
		if left("acme") != 0 || left("acme2") != runs || left("bell") != runs-2 {
			t.Errorf("left %d, %d, %d", left("acme"), left("acme2"), left("bell"))
		}
	}
	t.Run("miniredis", func(t *testing.T) { test(t, miniredis(t)) })
	memorytest.Real(t, test)
}
