package redisstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

// lossy is a way to a server on which answers to changes that are made get lost while lose is above 0.
func lossy(t *testing.T, server string, lose *atomic.Int32) (addr string) {
	t.Helper()
	return embeddedtest.Relay(t, server, func(context.Context) func([]byte) bool {
		return func(answer []byte) bool { // what a script returns for a change that it made
			return !strings.Contains(string(answer), "$2\r\nok\r\n") || lose.Add(-1) < 0
		}
	})
}

// The server made the change and the answer is lost: the call is made again with its key, and the change is made once.
func TestAnswerLost(t *testing.T) {
	servers(t, func(t *testing.T, s memorytest.Server) {
		var lose atomic.Int32
		addr := lossy(t, strings.TrimSuffix(strings.TrimPrefix(s.URL, "redis://"), "/0"), &lose)
		made, err := kv.Tools(redisstore.New(connect(t, "redis://"+addr), kv.Limits{Keys: 10, Bytes: 100_000, TTL: time.Hour}), kv.Config{})
		if err != nil {
			t.Fatal(err)
		}
		set, err := tools.NewSet(made...)
		if err != nil {
			t.Fatal(err)
		}
		call := func(key, tool, args string) tools.Result {
			r, err := set.Call(t.Context(), tool, tools.Call{Run: messages.Ref{Tenant: "t", Run: "r"}, Key: key, Arguments: []byte(args)})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		lose.Store(2)
		r := call("r.1.c", "kv_set", `{"key":"k","value":"v","revision":0}`)
		if got := r.Content[0].Text; r.IsError || !strings.HasPrefix(got, `Kept 1 bytes under "k" with revision `) || string(jsonOf(t, r.Meta["attempts"])) != "3" {
			t.Errorf("%+v", r)
		}
		lose.Store(1)
		if r := call("r.2.c", "kv_delete", fmt.Sprintf(`{"key":"k","revision":%s}`, jsonOf(t, r.Meta["revision"]))); r.IsError || r.Content[0].Text != `Deleted "k"` {
			t.Errorf("%+v", r)
		}
		if n := lose.Load(); n != -1 {
			t.Errorf("%d answers were left to lose, want none and one that came", n)
		}
	})
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
