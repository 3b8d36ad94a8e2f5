package redisstore_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

// lossy is a way to a server on which answers to changes that are made get lost while lose is above 0.
func lossy(t *testing.T, server string, lose *atomic.Int32) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				_ = down.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(up, down)
				_ = up.Close()
			}()
			go func() {
				defer down.Close()
				defer up.Close()
				answer := make([]byte, 64<<10)
				for {
					n, err := up.Read(answer)
					// What a script returns for a change that it made: the connection breaks in its place.
					if err != nil || strings.Contains(string(answer[:n]), "$2\r\nok\r\n") && lose.Add(-1) >= 0 {
						return
					}
					if _, err := down.Write(answer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
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
