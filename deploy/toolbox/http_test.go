package toolbox_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/tools"
)

// examples are the blocks of a page in some language.
func examples(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools", page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// opened is the Set of a tools file.
func opened(t *testing.T, file string, env ...string) *tools.Set {
	t.Helper()
	return openedWith(t, toolbox.Needs{}, file, env...)
}

// openedWith is opened with what a worker has.
func openedWith(t *testing.T, needs toolbox.Needs, file string, env ...string) *tools.Set {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := new(settings.Worker)
	env = append([]string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + name}, env...)
	if err := settings.Load(s, env); err != nil {
		t.Fatal(err)
	}
	needs.Log, needs.RedisURL = slog.New(slog.DiscardHandler), s.RedisURL
	box, err := toolbox.Open(t.Context(), &s.Tools, needs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	set, err := box.Set()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The examples of docs/tools/http.md do what the page says.
func TestPageOfHTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/issues" || r.Header.Get("Idempotency-Key") != "k" || string(body) != `{"title":"It leaks"}` {
			t.Errorf("%s %s %s: %s", r.Method, r.URL, body, r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":7}`)
	}))
	defer s.Close()
	here := func(example string) string {
		return strings.ReplaceAll(example, "127.0.0.1:8080", strings.TrimPrefix(s.URL, "http://"))
	}
	files, asked, answers := examples(t, "http.md", "yaml"), examples(t, "http.md", "json"), examples(t, "http.md", "")
	if len(files) != 2 || len(asked) != 1 || len(answers) != 1 {
		t.Fatalf("the page has %d files, %d calls and %d answers", len(files), len(asked), len(answers))
	}
	set := opened(t, here(files[0]), "TRACKER_TOKEN=t0ken-t0ken")
	doc, err := document.Only([]byte(here(files[1])), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var agent struct {
		Spec messages.Definition `json:"spec"`
	}
	if err := json.Unmarshal(doc.JSON, &agent); err != nil {
		t.Fatal(err)
	}
	specs, err := set.Specs(agent.Spec.Tools)
	if err != nil {
		t.Fatal(err)
	}
	args, bad := set.Check(messages.ToolCall{Name: "http_request", Arguments: here(asked[0])}, specs)
	if bad != nil {
		t.Fatalf("the call is refused: %+v", bad)
	}
	r, err := set.Call(t.Context(), "http_request", tools.Call{Arguments: args, Key: "k", Grants: agent.Spec.GrantOf(), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m := messages.Message{Content: r.Content}
	if r.IsError || m.Text() != here(answers[0]) {
		t.Errorf("the answer is %s", m.Text())
	}
}
