//go:build unix

package fleet_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
)

// endpointServer is a model behind an address: it refuses every key but its own.
func endpointServer(t *testing.T, key string, calls *atomic.Int32) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, `{"error":{"message":"bad key `+r.Header.Get("Authorization")+`"}}`, http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"role": "assistant", "content": "It works."}, "stop")
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

// An agent's second model takes over from one whose key is refused and from one that cannot do what is needed.
func TestProvidersFileRoutes(t *testing.T) {
	t.Parallel()
	var refusing, limited, good atomic.Int32
	dir := t.TempDir()
	for name, text := range map[string]string{
		"p.yaml": fmt.Sprintf(`
default: good
providers:
  - {name: refusing, kind: openai, baseURL: %q, keyEnv: WRONG_KEY, model: m}
  - {name: limited, kind: openai, baseURL: %q, key: sk-good-123456, model: m, capabilities: {tools: false}}
  - {name: good, kind: openai, baseURL: %q, keyFile: good.key, model: m}
`, endpointServer(t, "sk-good-123456", &refusing), endpointServer(t, "sk-good-123456", &limited), endpointServer(t, "sk-good-123456", &good)),
		"good.key": "sk-good-123456\n",
		"agents/several.yaml": `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: several}
spec: {models: [limited, refusing, good/other], tools: [read_file]}
`,
		"agents/refused.yaml": `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: refused}
spec: {model: refusing}
`,
		"agents/dear.yaml": `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: dear}
spec: {models: [good], maxPrice: 1}
`,
		"agents/lost.yaml": `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: lost}
spec: {model: good, models: []}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s settings.Dev
	if err := settings.Load(&s, []string{"LONGSHORE_PROVIDERS=" + filepath.Join(dir, "p.yaml"), "WRONG_KEY=sk-wrong-123456"}); err != nil {
		t.Fatal(err)
	}
	var logs lockedText
	d, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: filepath.Join(dir, "data"), Agents: filepath.Join(dir, "agents"), Dev: s,
		Sweep: time.Minute, Version: "test", Log: slog.New(slog.NewTextHandler(&logs, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	}()
	client, err := d.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	work := func(agent string) *messages.AgentResult {
		t.Helper()
		id, err := client.Submit(t.Context(), messages.Task{Agent: agent, Input: messages.TextInput("hello")})
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Wait(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: id})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := work("several"); !r.Success || r.Result != "It works." || limited.Load() != 0 || refusing.Load() != 1 || good.Load() != 1 {
		t.Errorf("several: %+v, %v after %d, %d and %d calls", r.Result, r.Error, limited.Load(), refusing.Load(), good.Load())
	}
	if r := work("lost"); !r.Success {
		t.Errorf("one model: %v", r.Error)
	}
	if r := work("refused"); r.Error == nil || r.Error.Code != messages.CodeModelAuth || strings.Contains(r.Error.Message, "sk-wrong") ||
		!strings.Contains(r.Error.Message, "check WRONG_KEY") {
		t.Errorf("refused: %+v", r.Error)
	}
	if r := work("dear"); r.Error == nil || r.Error.Code != messages.CodeNoProvider || !strings.Contains(r.Error.Message, "its price is unknown") {
		t.Errorf("dear: %+v", r.Error)
	}
	if text := logs.String(); !strings.Contains(text, "a key stands in the providers file") || strings.Contains(text, "sk-") {
		t.Errorf("log:\n%s", text)
	}
}

// lockedText is a log that several goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
