//go:build unix

package fleet_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
)

// A worker process adds the secret that an agent names to a request for the host that its operator lists. The server gets it; no
// record, event, log line, stream or file holds it, though the server says it in every way it can.
func TestSecretsOfToolsStayInside(t *testing.T) {
	t.Parallel()
	value := "tok-planted-" + rand.Text()
	planted := newSecret(value)
	type arrived struct{ method, auth, key, body string }
	got := make(chan arrived, 9)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		auth := r.Header.Get("Authorization")
		got <- arrived{r.Method, auth, r.Header.Get("Idempotency-Key"), string(body)}
		rw.Header().Set("Etag", auth)
		rw.Header().Set("Content-Type", "text/plain; x="+strings.TrimPrefix(auth, "Bearer "))
		if r.Method == http.MethodGet {
			rw.WriteHeader(http.StatusForbidden)
		}
		_, _ = fmt.Fprintf(rw, "you sent %s, or %s", auth, base64.StdEncoding.EncodeToString([]byte(auth)))
	}))
	t.Cleanup(site.Close)
	host := strings.TrimPrefix(site.URL, "http://")
	w := open(t, shortAckWait, func(c *modelCall) reply {
		args := map[string]any{"url": site.URL, "credential": "tracker"}
		switch c.Turn {
		case 0:
			return reply{Tool: "http_get", Args: args}
		case 1:
			args["method"], args["body"] = "POST", `{"title":"It leaks"}`
			return reply{Tool: "http_request", Args: args}
		case 2:
			return reply{Tool: "http_get", Args: map[string]any{"url": "http://localhost:1/", "credential": "tracker"}}
		default:
			return reply{Text: c.Last}
		}
	})
	def := messages.Definition{Name: "caller", Tools: []string{"http_get", "http_request"}, Grants: &messages.Grants{Hosts: []string{host}, Credentials: []string{"tracker"}}}
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
  http: {hosts: [%q, localhost], plainHttp: [%q], methods: [GET, POST]}
`, host, host, host)
	if err := os.WriteFile(file, []byte(grant), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := w.worker("a", "LONGSHORE_TOOLS="+file, "TRACKER_TOKEN="+value, "LONGSHORE_LOG_LEVEL=debug")

	r := w.watch(w.submit("call", func(t *messages.Task) { t.Agent = "caller" })).end()
	if r.Status != messages.StatusCompleted || len(r.Actions) != 3 || r.Actions[0].Code != messages.CodeToolFailed || r.Actions[1].Code != "" || r.Actions[2].Code != messages.CodePolicy {
		t.Fatalf("result %+v", r)
	}
	planted.absent(t, "the result", fmt.Appendf(nil, "%+v", r))
	first, second := <-got, <-got
	if first.method != "GET" || first.auth != "Bearer "+value || first.key != "" {
		t.Errorf("the server got %+v", first)
	}
	if second.method != "POST" || second.auth != "Bearer "+value || second.key == "" || second.body != `{"title":"It leaks"}` || len(got) != 0 {
		t.Errorf("the server got %+v, and %d more", second, len(got))
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
		planted.absent(t, "the output of "+p.name, p.out.Bytes())
	}
	planted.files(t, w.dir)
	if n := planted.files(t, w.data); n < 10 {
		t.Errorf("%d files in the store: nothing was looked through", n)
	}
}
