package toolbox_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// The examples of docs/tools/search.md do what the page says, with both providers.
func TestPageOfSearch(t *testing.T) {
	files, asked, answers := examples(t, "search.md", "yaml"), examples(t, "search.md", "json"), examples(t, "search.md", "")
	if len(files) != 3 || len(asked) != 1 || len(answers) != 1 {
		t.Fatalf("the page has %d files, %d calls and %d answers", len(files), len(asked), len(answers))
	}
	for i, provider := range []string{"brave", "tavily"} {
		answer, err := os.ReadFile(filepath.Join("..", "..", "tools", "search", "testdata", provider+".json"))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
		defer s.Close()
		host := strings.TrimPrefix(s.URL, "http://")
		file := strings.NewReplacer("api.search.brave.com", `"`+host+`"`, "api.tavily.com", `"`+host+`"`).Replace(files[i]) + "\n    endpoint: " + s.URL + "/search\n"
		set := opened(t, file, "BRAVE_TOKEN=t0ken-t0ken", "TAVILY_TOKEN=t0ken-t0ken")
		specs, err := set.Specs([]string{"web_search"})
		if err != nil {
			t.Fatal(err)
		}
		args, bad := set.Check(messages.ToolCall{Name: "web_search", Arguments: asked[0]}, specs)
		if bad != nil {
			t.Fatalf("the call is refused: %+v", bad)
		}
		r, err := set.Call(t.Context(), "web_search", tools.Call{Arguments: args, Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		m := messages.Message{Content: r.Content}
		if r.IsError || m.Text() != answers[0] {
			t.Errorf("%s: the answer is %s", provider, m.Text())
		}
		if _, err := set.Specs([]string{"http_get"}); err == nil {
			t.Error("http_get is there without a grant")
		}
	}
}
