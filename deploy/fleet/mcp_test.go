//go:build unix

package fleet_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/record"
)

// A worker starts though its MCP server is away. A run that needs it waits parked, continues when the server comes, and no record,
// stream, log or file holds the credential, though the server says it.
func TestAnMCPServerThatComesLater(t *testing.T) {
	t.Parallel()
	value := "tok-planted-" + rand.Text()
	planted := newSecret(value)
	var there atomic.Bool
	there.Store(true)
	s := sdk.NewServer(&sdk.Implementation{Name: "harbour", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "berths", Description: "Counts the free berths."}, func(_ context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "7 berths, says " + req.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !there.Load() || r.Header.Get("Authorization") != "Bearer "+value {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "harbour_berths", Args: map[string]any{}}
		}
		return reply{Text: c.Last}
	})
	def := messages.Definition{Name: "pilot", Tools: []string{"harbour_berths"}}
	def.SetDefaults()
	if _, _, err := catalog.New(w.bus).PutAgent(t.Context(), def); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tools.yaml")
	grant := fmt.Sprintf(`apiVersion: longshore.run/v1
kind: Tools
spec:
  credentials:
    tracker: {env: TRACKER_TOKEN, hosts: [%q]}
  mcp:
    servers:
      harbour: {url: %s, credential: tracker}
`, strings.TrimPrefix(site.URL, "http://"), site.URL)
	if err := os.WriteFile(file, []byte(grant), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"LONGSHORE_TOOLS=" + file, "TRACKER_TOKEN=" + value, "LONGSHORE_LOG_LEVEL=debug"}
	pin := spawn(t, "pin", env, binary, "tools", "pin")
	if code := pin.wait(); code != 0 {
		t.Fatalf("pin ended with %d: %s", code, pin.log())
	}
	there.Store(false)
	worker := w.worker("a", env...)
	if body := probe(t, worker); !strings.Contains(body, `"ready":true`) || !strings.Contains(body, "the MCP server harbour is away") {
		t.Errorf("readyz: %s", body)
	}
	run := w.submit("how many?", func(t *messages.Task) { t.Agent = "pilot" })
	parked := false
	for end := time.Now().Add(patience); !parked && time.Now().Before(end); {
		for _, e := range w.log(run) {
			parked = parked || e.Head.Has(record.KindParked)
		}
	}
	if !parked {
		w.tell(run)
		t.Fatal("the run does not wait")
	}
	there.Store(true)
	r := w.watch(run).end()
	if r.Status != messages.StatusCompleted || len(r.Actions) != 1 || r.Actions[0].Code != "" {
		t.Fatalf("result %+v", r)
	}
	planted.absent(t, "the result", fmt.Appendf(nil, "%+v", r))
	if body := probe(t, worker); strings.Contains(body, "degraded") {
		t.Errorf("readyz: %s", body)
	}
	if n := planted.streams(t, w); n < 10 {
		t.Errorf("%d messages in all streams: nothing was looked through", n)
	}
	for _, p := range []*process{worker, w.dev} {
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("%s ended with %d", p.name, code)
		}
		planted.absent(t, "the log of "+p.name, []byte(strings.Join(p.log(), "\n")))
	}
	planted.files(t, w.dir)
	planted.files(t, filepath.Dir(file))
}

// probe is what a process answers at /readyz.
func probe(t *testing.T, p *process) string {
	t.Helper()
	resp, err := http.Get("http://" + p.address() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
