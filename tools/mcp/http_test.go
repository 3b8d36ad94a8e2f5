package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/mcp"
)

// served is a server on loopback whose connections end with the test.
func served(t *testing.T, h http.Handler) (url, host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL, strings.TrimPrefix(s.URL, "http://")
}

// overHTTP is the server of the SDK with streamable HTTP. Call it before the client is opened, for its sessions end when that has.
func overHTTP(t *testing.T) http.Handler {
	t.Helper()
	s := sdkServer(t.TempDir())
	t.Cleanup(func() {
		for session := range s.Sessions() { // those that no client ended
			_ = session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// reached is the tools of one server at an address, called "s", all pinned.
func reached(t *testing.T, s mcp.Server, secrets map[string]credential.Config) *tools.Set {
	t.Helper()
	d := deps(t, secrets)
	cfg := checked(t, map[string]mcp.Server{"s": s}, d)
	_, set := opened(t, cfg, pinned(t, cfg, d), d)
	return set
}

func echo(t *testing.T, set *tools.Set, with ...func(*tools.Call)) tools.Result {
	t.Helper()
	return call(t, set, "s_echo", map[string]any{"text": "hello"}, with...)
}

func TestStreamableHTTP(t *testing.T) {
	inner := overHTTP(t)
	var seen sync.Map
	url, host := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"), true)
		inner.ServeHTTP(w, r)
	}))
	set := reached(t, mcp.Server{URL: url, Credential: "tracker", Resources: true}, map[string]credential.Config{"tracker": {Env: "X", Hosts: []string{host}}})
	if r := echo(t, set); text(r) != "hello" {
		t.Errorf("%+v", r)
	}
	if r := call(t, set, "s_read_resource", map[string]any{"uri": "notes://today"}); text(r) != "buy rope" {
		t.Errorf("%+v", r)
	}
	n := 0
	seen.Range(func(k, _ any) bool { n++; return k == "Bearer s3cret-of-X" })
	if n != 1 {
		t.Errorf("%d kinds of Authorization", n)
	}
	for want, grants := range map[string]messages.Grants{"is not in the agent's grants": {Hosts: []string{"other.example"}}, `"tracker", is not in the agent's grants`: {Credentials: []string{}}} {
		expect(t, echo(t, set, func(c *tools.Call) { c.Grants = grants }), messages.CodePolicy, want)
	}
	expect(t, echo(t, set, func(c *tools.Call) { c.Reach = func(at string) error { return fmt.Errorf("the rules forbid %s", at) } }), messages.CodePolicy, "the rules forbid "+host)
	// A change that the server tells of over its stream.
	call(t, set, "s_redefine", map[string]any{"text": "other"})
	until(t, "the tool is disabled", func() bool { return !set.Has("s_echo") })
}

// A session that the server no longer knows is replaced, and the call that found out is made again: it had no effect.
func TestALostSession(t *testing.T) {
	var inner atomic.Value
	restarted := overHTTP(t)
	inner.Store(overHTTP(t))
	url, _ := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.Load().(http.Handler).ServeHTTP(w, r) }))
	set := reached(t, mcp.Server{URL: url}, nil)
	if r := echo(t, set); text(r) != "hello" {
		t.Fatalf("%+v", r)
	}
	inner.Store(restarted) // as after a restart
	r := echo(t, set)
	if text(r) != "hello" {
		t.Errorf("%+v", r)
	}
}

// A server with OAuth: the token is asked for once, again when it was withdrawn, and shown nowhere.
func TestClientCredentials(t *testing.T) {
	var asked, valid atomic.Int64
	tokens, issuer := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if err := r.ParseForm(); err != nil || id != "longshore" || secret != "s3cret-of-X" || r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("scope") != "a b" {
			t.Errorf("%s %s %v", id, secret, r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		n := asked.Add(1)
		valid.Store(n)
		_, _ = fmt.Fprintf(w, `{"access_token":"t0ken-%d","token_type":"Bearer","expires_in":3600}`, n)
	}))
	inner := overHTTP(t)
	url, _ := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer t0ken-%d", valid.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	s := mcp.Server{URL: url, OAuth: &mcp.OAuth{TokenURL: tokens + "/token", ClientID: "longshore", Credential: "client", Scopes: []string{"a", "b"}}}
	secrets := map[string]credential.Config{"client": {Env: "X", Hosts: []string{issuer}}}
	set := reached(t, s, secrets)
	before := asked.Load()
	for range 5 {
		if r := echo(t, set); text(r) != "hello" {
			t.Errorf("%+v", r)
		}
	}
	if got := asked.Load(); got != before {
		t.Errorf("asked for %d tokens more", got-before)
	}
	valid.Store(-1) // withdrawn; the next is valid again
	if r := echo(t, set); text(r) != "hello" || asked.Load() != before+1 {
		t.Errorf("%+v, %d tokens more", r, asked.Load()-before)
	}
	shown := fmt.Sprintf("t0ken-%d", valid.Load())
	if r := call(t, set, "s_echo", map[string]any{"text": "a " + shown + " s3cret-of-X"}); text(r) != "a [redacted] [redacted]" {
		t.Errorf("a token is shown: %s", text(r))
	}
	// An issuer that shows the secret in its error.
	bad, host := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, secret)
	}))
	s.OAuth = &mcp.OAuth{TokenURL: bad, ClientID: "c", Credential: "client"}
	d := deps(t, map[string]credential.Config{"client": {Env: "X", Hosts: []string{host}}})
	_, err := mcp.Inspect(t.Context(), checked(t, map[string]mcp.Server{"s": s}, d), &mcp.Lock{}, "s", d)
	if err == nil || !strings.Contains(err.Error(), "the issuer answered 403") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
}

// A server over HTTP by hand, which shakes hands and then answers calls as it likes.
func byHand(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, id json.RawMessage)) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		w.Header().Set("Mcp-Session-Id", "mine")
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		case "tools/list":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}}`, m.ID)
		case "tools/call":
			answer(w, r, m.ID)
		case "server/discover":
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

// Attacks 93, 97 to 99, 120 and others over HTTP: redirects are not followed, bodies end, and a session is the one that was begun.
func TestHostileHTTP(t *testing.T) {
	elsewhere, _ := served(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s arrived", r.Method, r.URL) }))
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, id json.RawMessage)
		want   string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}, "gave no answer"},
		"metadata": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}, "gave no answer"},
		"endless body": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}, "gave no answer"},
		"endless stream": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"); err != nil {
					return
				}
			}
		}, "gave no answer"},
		"endless event": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "data: "+strings.Repeat("a", 1<<16)); err != nil {
					return
				}
			}
		}, "gave no answer"},
		"deep": {func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s1%s}}`, id, strings.Repeat("[", 10_000), strings.Repeat("]", 10_000))
		}, "gave no answer"},
		"slow body": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "did not finish within 2s"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) { <-r.Context().Done() }, "did not finish within 2s"},
		"other session": {func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Mcp-Session-Id", "of-another")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"hijacked"}]}}`, id)
		}, "gave no answer"},
		"other id": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":4711,"result":{"content":[{"type":"text","text":"of another"}]}}`)
		}, "did not finish within 2s"},
		"html": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>sign in</h1>")
		}, "gave no answer"},
		"busy": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, "gave no answer"},
		"stream without an answer": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
		}, "gave no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := served(t, byHand(t, c.answer))
			timeout := patience // what is refused is refused before
			if strings.Contains(c.want, "2s") {
				timeout = 2 * time.Second
			}
			set := reached(t, mcp.Server{URL: url, Bytes: 256 << 10, Timeout: messages.Duration(timeout)}, nil)
			began := time.Now()
			r := echo(t, set)
			if took := time.Since(began); took > patience {
				t.Errorf("took %v", took)
			}
			expect(t, r, messages.CodeToolUnknownOutcome, c.want)
		})
	}
}

// A server that goes away while a worker runs is back without a restart.
func TestAServerThatRestarts(t *testing.T) {
	var gone atomic.Bool
	inner := overHTTP(t)
	url, _ := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	set := reached(t, mcp.Server{URL: url, Effects: map[string]messages.Effect{"echo": messages.EffectRead}}, nil)
	gone.Store(true)
	zero := 0
	r := echo(t, set, func(c *tools.Call) { c.Retries = &zero })
	expect(t, r, messages.CodeToolFailed, "gave no answer")
	gone.Store(false)
	if r := echo(t, set); text(r) != "hello" {
		t.Errorf("%+v", r)
	}
}
