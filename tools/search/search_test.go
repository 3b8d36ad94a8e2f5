package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/search"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "s3cret-of-the-provider"

// headers are where the providers want their keys.
func headers() map[string]string {
	return map[string]string{"brave": "X-Subscription-Token", "tavily": "Authorization"}
}

// store holds the credential of a provider for a host.
func store(t *testing.T, provider, host string) *credential.Store {
	t.Helper()
	c := credential.Config{Env: "K", Hosts: []string{host}}
	if provider == "brave" {
		c.Header = headers()[provider]
	}
	s, err := credential.New(map[string]credential.Config{"searching": c}, func(credential.Config) (string, error) { return key, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tool is web_search at a server of the test.
func tool(t *testing.T, provider string, h http.HandlerFunc) tools.Tool {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	made, err := search.Tools(search.Config{Provider: provider, Credential: "searching", Endpoint: s.URL + "/search"}, store(t, provider, strings.TrimPrefix(s.URL, "http://")))
	if err != nil {
		t.Fatal(err)
	}
	return made[0]
}

func call(t *testing.T, tl tools.Tool, c tools.Call, args string) tools.Result {
	t.Helper()
	set, err := tools.NewSet(tl)
	if err != nil {
		t.Fatal(err)
	}
	raw, bad := set.Check(messages.ToolCall{Name: "web_search", Arguments: args}, []messages.ToolSpec{tl.Spec()})
	if bad != nil {
		return *bad
	}
	c.Arguments = raw
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Second
	}
	if c.Retries == nil {
		c.Retries = new(int)
	}
	r, err := set.Call(t.Context(), "web_search", c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(r tools.Result) string {
	m := messages.Message{Content: r.Content}
	return m.Text()
}

func golden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Both providers are asked as they want it, and the model is told the same.
func TestProviders(t *testing.T) {
	for provider, want := range map[string]string{
		"brave":  "GET /search?count=3&freshness=pw&q=harbour+cranes&result_filter=web&text_decorations=false ",
		"tavily": `POST /search {"query":"harbour cranes","search_depth":"basic","max_results":3,"time_range":"week"}`,
	} {
		var mu sync.Mutex
		got, auth := "", ""
		tl := tool(t, provider, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got, auth = fmt.Sprintf("%s %s %s", r.Method, r.URL, body), r.Header.Get(headers()[provider])
			_, _ = io.WriteString(w, golden(t, provider+".json"))
		})
		r := call(t, tl, tools.Call{}, `{"query":" harbour cranes","count":3,"freshness":"week"}`)
		if got != want || strings.TrimPrefix(auth, "Bearer ") != key {
			t.Errorf("%s was asked %q with %q, want %q", provider, got, auth, want)
		}
		if r.IsError || text(r)+"\n" != golden(t, "results.txt") {
			t.Errorf("%s: %s", provider, text(r))
		}
		if meta, err := json.Marshal(r.Meta); err != nil || string(meta) != fmt.Sprintf(`{"provider":%q,"results":2,"status":200}`, provider) {
			t.Errorf("meta %s, %v", meta, err)
		}
		toolstest.Run(t, tl, toolstest.Case{Arguments: `{"query":"harbour cranes"}`})
	}
}

func TestErrorsOfProviders(t *testing.T) {
	for file, want := range map[string]string{
		"brave_429.json": "answered 429: RATE_LIMITED Request rate limit exceeded for plan.", "brave_422.json": "answered 422: SUBSCRIPTION_TOKEN_INVALID The provided subscription token is invalid..",
		"tavily_429.json": "answered 429: Your request has been blocked due to excessive requests.", "tavily_401.json": "answered 401: Unauthorized: missing or invalid API key.", "tavily_432.json": "answered 432: This request exceeds your plan's set usage limit.",
	} {
		provider, rest, _ := strings.Cut(file, "_")
		status := 0
		if _, err := fmt.Sscanf(rest, "%d.json", &status); err != nil {
			t.Fatal(err)
		}
		tl := tool(t, provider, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, golden(t, file))
		})
		if r := call(t, tl, tools.Call{}, `{"query":"a"}`); r.Code != messages.CodeToolFailed || !strings.Contains(text(r), want) {
			t.Errorf("%s: %s", file, text(r))
		}
	}
}

// A provider that says no for now is asked again when it says; one that refuses is not.
func TestRateLimits(t *testing.T) {
	for provider, header := range map[string]string{"brave": "X-RateLimit-Reset", "tavily": "Retry-After"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			tl := tool(t, provider, func(w http.ResponseWriter, _ *http.Request) {
				switch n.Add(1) {
				case 1:
					w.Header().Set(header, "2, 1419704")
					if provider == "tavily" {
						w.Header().Set(header, "2")
					}
					w.WriteHeader(http.StatusTooManyRequests)
				default:
					_, _ = io.WriteString(w, golden(t, provider+".json"))
				}
			})
			began, three := time.Now(), 3
			r := call(t, tl, tools.Call{Retries: &three}, `{"query":"a"}`)
			if took := time.Since(began); r.IsError || n.Load() != 2 || took < 2*time.Second {
				t.Errorf("%d requests in %v: %s", n.Load(), took, text(r))
			}
		})
	}
	var n atomic.Int64
	three := 3
	tl := tool(t, "tavily", func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	})
	if r := call(t, tl, tools.Call{Retries: &three}, `{"query":"a"}`); !r.IsError || n.Load() != 1 || !strings.Contains(text(r), "401: (no text)") {
		t.Errorf("%d requests: %s", n.Load(), text(r))
	}
}

// A provider that is hostile or broken gives the model nothing that it should not see.
func TestHostileProviders(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
		err          bool
	}{
		"no JSON":        {"<html>", "cannot be read", true},
		"another shape":  {`{"results":"none","web":[]}`, "cannot be read", true},
		"nothing":        {`{}`, "Nothing was found.", false},
		"echoes the key": {`{"results":[{"title":"` + key + `","url":"https://a/` + key + `","content":""}]}`, "1. [redacted]\n   https://a/[redacted]\n   (no text)", false},
		"too many":       {`{"results":[` + strings.Repeat(`{"title":"t","url":"u","content":"c"},`, 99) + `{}]}`, "20. t", false},
		"hidden text":    {`{"results":[{"title":"a\u202eb\u001b[2J","url":"https://a","content":"c\u200bd"}]}`, "1. ab[2J\n   https://a\n   cd", false},
		"too long":       {`{"results":[{"title":"` + strings.Repeat("t", 1<<20) + `","url":"u","content":"c"}]}`, "more bytes)\n   u\n", false},
		"no address":     {`{"results":[{"title":"t","url":"","content":"c"}]}`, "Nothing was found.", false},
		"a huge answer":  {`{"results":[],"x":"` + strings.Repeat("x", 3<<20) + `"}`, "cannot be read", true},
	} {
		r := call(t, tool(t, "tavily", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.answer) }), tools.Call{}, `{"query":"a"}`)
		if r.IsError != c.err || !strings.Contains(text(r), c.want) || len(text(r)) > 100_000 {
			t.Errorf("%s: %.300s", name, text(r))
		}
	}
	redirected := tool(t, "tavily", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	if r := call(t, redirected, tools.Call{}, `{"query":"a"}`); !strings.Contains(text(r), "answered 302") {
		t.Errorf("a redirect: %s", text(r))
	}
	slow := tool(t, "tavily", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then a server does not see that the client is gone
		<-r.Context().Done()
	})
	if r := call(t, slow, tools.Call{Timeout: 200 * time.Millisecond}, `{"query":"a"}`); !strings.Contains(text(r), "did not finish within 200ms") {
		t.Errorf("a slow provider: %s", text(r))
	}
}

// The agent's grants hold for the provider too, and bad arguments reach none.
func TestRefusals(t *testing.T) {
	tl := tool(t, "tavily", func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	for _, c := range []struct {
		grants     messages.Grants
		args, want string
		code       messages.Code
	}{
		{messages.Grants{Hosts: []string{"a.example"}}, `{"query":"a"}`, "is not in the agent's grants", messages.CodePolicy},
		{messages.Grants{Credentials: []string{}}, `{"query":"a"}`, `"searching", is not in the agent's grants`, messages.CodePolicy},
		{messages.Grants{}, `{"query":"  "}`, "must have 1 to 400 characters", messages.CodeInvalidInput},
		{messages.Grants{}, `{"query":"` + strings.Repeat("ü", 401) + `"}`, "must have 1 to 400 characters", messages.CodeInvalidInput},
		{messages.Grants{}, `{"query":"` + strings.Repeat("a ", 51) + `"}`, "at most 50 words", messages.CodeInvalidInput},
		{messages.Grants{}, `{"query":"a","count":21}`, `"count" must fit`, messages.CodeInvalidInput},
		{messages.Grants{}, `{"query":"a","freshness":"hour"}`, `"freshness" must be one of`, messages.CodeInvalidInput},
	} {
		if r := call(t, tl, tools.Call{Grants: c.grants}, c.args); r.Code != c.code || !strings.Contains(text(r), c.want) {
			t.Errorf("%s: %s %s", c.args, r.Code, text(r))
		}
	}
	asked := ""
	ruled := tools.Call{Reach: func(at string) error { asked = at; return errors.New("the rules forbid that host") }}
	if r := call(t, tl, ruled, `{"query":"a"}`); r.Code != messages.CodePolicy || !strings.Contains(text(r), "the rules forbid that host") || asked == "" {
		t.Errorf("by the rules of the run: %s %s, asked about %q", r.Code, text(r), asked)
	}
}

func TestConfigIsChecked(t *testing.T) {
	brave := store(t, "brave", "api.search.brave.com")
	for part, field := range map[string]string{
		`{}`: "provider", `{"provider":"ask"}`: "provider", `{"provider":"brave"}`: "credential", `{"provider":"brave","credential":"gone"}`: "credential",
		`{"provider":"tavily","credential":"searching"}`:                                             "credential", // which is for another host
		`{"provider":"tavily","credential":"searching","endpoint":"https://api.search.brave.com/x"}`: "credential", // and in another header
		`{"provider":"brave","credential":"searching","endpoint":"ftp://x"}`:                         "endpoint", `{"provider":"brave","credential":"searching","timeout":"1h"}`: "timeout",
		`{"provider":"brave","credential":"searching","userAgent":"a\nb"}`: "userAgent", `{"colour":"red"}`: "colour", `{"provider":"brave","credential":"searching"}`: "",
	} {
		c, err := search.ParseConfig([]byte(part))
		if err == nil {
			_, err = search.Tools(c, brave)
		}
		fe, ok := errors.AsType[*messages.FieldError](err)
		if field == "" && err != nil || field != "" && (!ok || fe.Field != field) {
			t.Errorf("%s: %v, want field %q", part, err, field)
		}
	}
	if _, err := search.Tools(search.Config{Provider: "brave", Credential: "searching"}, nil); err == nil {
		t.Error("a search was made without a credential")
	}
}

// FuzzAnswers gives providers' answers that are none: no panic, and a bounded text.
func FuzzAnswers(f *testing.F) {
	for _, file := range []string{"brave.json", "tavily.json", "brave_429.json", "tavily_401.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, body []byte, ok bool) {
		for _, provider := range []string{"brave", "tavily"} {
			if out := search.Answered(provider, ok, body); len(out) > 200_000 {
				t.Errorf("%d bytes", len(out))
			}
		}
	})
}
