package replycache_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
	"github.com/longshore-run/longshore/worker/model/replycache"
)

// A sealed reply answers its question, and no other one.
func TestRepliesAreSealed(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	keys := keyring.New(b, keyring.Config{Master: master})
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		const planted = "xylophone-7731"
		cache := newCache(t, s, replycache.Config{Sealer: keys})
		e := &endpoint{reply: said(planted, messages.StopEnd)}
		p := cache.Wrap("e", e)
		first, second := request(), request()
		second.MaxTokens++
		for range 2 {
			mustAsk(t, p, first)
		}
		mustAsk(t, p, second)
		if e.calls != 2 {
			t.Fatalf("the endpoint was asked %d times, want once for each question", e.calls)
		}
		rdb := connect(t, s)
		names, err := rdb.Keys(t.Context(), "longshore:reply:*").Result()
		if err != nil || len(names) != 2 {
			t.Fatalf("keys %v, %v", names, err)
		}
		for _, name := range names {
			value, err := rdb.Get(t.Context(), name).Result()
			if err != nil || !keyring.Sealed([]byte(value)) || strings.Contains(value, planted) {
				t.Errorf("stored: %q, %v", value, err)
			}
		}
		if err := rdb.Copy(t.Context(), names[0], names[1], 0, true).Err(); err != nil {
			t.Fatal(err)
		}
		mustAsk(t, p, first)
		mustAsk(t, p, second)
		if e.calls != 3 {
			t.Errorf("the endpoint was asked %d times, want once more for the value that was moved", e.calls)
		}
	})
}
