package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// Whatever a server sends as the stream of events that answers a call, reading it ends soon, with an error or with messages of bounded
// size, and what they say can be told.
func FuzzEventStream(f *testing.F) {
	for _, s := range []string{
		"event: message\ndata: " + `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}` + "\n\n",
		"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n", ": a comment\n\nid: 7\nretry: 1\n\n", "data:\n\n", "event: other\ndata: x\n\n", "data: [[[[\n\n", "\ufeffdata: {}\r\r",
		"data: " + `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"\u001b[2J"}}` + "\n\n", "data: " + `{"jsonrpc":"2.0","method":"ping","id":"x"}` + "\n\n", "id: \x00\ndata\n\n",
		"data: " + `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"result":{"content":[null]}}]` + "\n\n",
	} {
		f.Add([]byte(s))
	}
	var stream atomic.Pointer[[]byte]
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed) // it keeps no stream open, and resumes none
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(*stream.Load())
	}))
	f.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	const most, soon = 4 << 10, 20 * time.Second
	cfg := Server{URL: site.URL, Bytes: most, Timeout: messages.Duration(soon)}
	auth, err := newAuthorizer(&cfg, nil)
	if err != nil {
		f.Fatal(err)
	}
	s := &server{name: "s", cfg: cfg, auth: auth}
	call, err := jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`))
	if err != nil {
		f.Fatal(err)
	}
	// The last event, so that it is known when all before it were read.
	end := "\n\nevent: message\ndata: " + `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"end":true},"content":[]}}` + "\n\n"
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := append(append([]byte{}, data...), end...)
		stream.Store(&whole)
		ctx, stop := context.WithTimeout(t.Context(), soon)
		defer stop()
		transport := s.dialHTTP(ctx)
		defer transport.done()
		defer transport.conn()
		conn, err := transport.Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(ctx, call); err != nil {
			return
		}
		for range len(whole) + 1 {
			msg, err := conn.Read(ctx)
			if err != nil {
				if ctx.Err() != nil {
					t.Errorf("%q is still read after %v", data, soon)
				}
				return
			}
			m, ok := msg.(*jsonrpc.Response)
			if !ok {
				continue
			}
			if len(m.Result) > most {
				t.Errorf("a message of %d bytes", len(m.Result))
			}
			if m.Error != nil {
				r, err := s.failed(m.Error, messages.EffectOnce)
				if err != nil || tools.Plain(r.Content[0].Text) != r.Content[0].Text {
					t.Errorf("a model is told %+v, %v", r.Content, err)
				}
				return
			}
			var res sdk.CallToolResult
			if json.Unmarshal(m.Result, &res) == nil {
				for _, b := range s.result(&res).Content {
					if b.Image == nil && tools.Plain(b.Text) != b.Text {
						t.Errorf("a model is told %q", b.Text)
					}
				}
			}
			return // it is the answer of the call
		}
		t.Error("there is no end")
	})
}
