package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/kvtest"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

// A store that seals its values does all that one does which does not, sizes and quotas included.
func TestSealedConformance(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	keys := keyring.New(b, keyring.Config{Master: master})
	servers(t, func(t *testing.T, s memorytest.Server) {
		kvtest.Run(t, func(t *testing.T, l kv.Limits) kv.Store {
			t.Helper()
			rdb := connect(t, s.URL)
			if err := rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			return redisstore.NewSealed(rdb, l, keys)
		})
		const planted = "xylophone-7731"
		rdb := connect(t, s.URL)
		store := redisstore.NewSealed(rdb, kv.Limits{Keys: 9, Bytes: 1 << 20, TenantBytes: 1 << 20, TTL: time.Hour}, keys)
		scope := kv.Scope{Kind: messages.KVTenant, Tenant: "acme"}
		for _, key := range []string{"one", "two"} {
			if _, err := store.Set(t.Context(), scope, kv.Write{Key: key, Value: planted + key, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		const values = "longshore:kv:{tenant.acme.}:values"
		stored, err := rdb.HGet(t.Context(), values, "one").Result()
		if err != nil || strings.Contains(stored, planted) {
			t.Errorf("stored: %q, %v", stored, err)
		}
		if err := rdb.HSet(t.Context(), values, "two", stored).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(t.Context(), scope, "two"); err == nil {
			t.Errorf("the value of another key: %+v", got)
		}
		if got, err := store.Get(t.Context(), scope, "one"); err != nil || got.Value != planted+"one" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
