package doctor_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/messages"
)

func cut(address string) (host, port string, err error) { return net.SplitHostPort(address) }

func textTask(id, text string) messages.Task {
	return messages.Task{ID: id, Input: messages.TextInput(text)}
}

// provider is a server that answers every request alike, and remembers the last.
type provider struct {
	*httptest.Server

	mu   sync.Mutex
	last string
}

func newProvider(t *testing.T, status int, body string) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.last = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("Api-Key")
		p.mu.Unlock()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func TestProviders(t *testing.T) {
	const list = `{"data":[{"id":"models/gpt-4o"}]}`
	echo := `{"error":{"message":"Incorrect API key provided: ` + planted + `"}}`
	for name, tt := range map[string]struct {
		code   int
		body   string
		status doctor.Status
		text   string
	}{
		"well":            {200, list, doctor.OK, "lists its models"},
		"another model":   {200, `{"data":[{"id":"gpt-3"}]}`, doctor.Warn, "does not list the model gpt-4o"},
		"lists none":      {200, `{"data":[]}`, doctor.OK, "lists"},
		"no list":         {200, `<html>` + planted, doctor.Warn, "not with a list of models"},
		"a bad key":       {401, echo, doctor.Fail, "refuses the key (status 401)"},
		"forbidden":       {403, echo, doctor.Fail, "refuses the key (status 403)"},
		"no money":        {402, echo, doctor.Fail, "has no credit"},
		"no such path":    {404, "404", doctor.Warn, "the key was not tried"},
		"too much":        {429, "", doctor.Warn, "limits the rate"},
		"down":            {500, echo, doctor.Fail, "has a problem (status 500)"},
		"leads elsewhere": {302, "", doctor.Warn, "status 302"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, tt.code, tt.body)
			r, _ := examine(t, []string{"REDIS_URL=none", "OPENAI_API_KEY=" + planted, "OPENAI_MODEL=gpt-4o", "OPENAI_BASE_URL=" + p.URL + "/v1/"})
			r.expect(t, "model openai", tt.status, tt.text)
		})
	}
}

func TestProvidersThatDoNotAnswer(t *testing.T) {
	silent := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(silent)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the client that hangs up
	secure.StartTLS()
	defer secure.Close()
	for name, tt := range map[string]struct{ url, text, timeout string }{
		"slow":              {slow.URL, "no answer in time", "300ms"},
		"closed port":       {"http://" + closedPort(t), "nothing listens there", "10s"},
		"no such host":      {"http://unknown.invalid", "http://unknown.invalid: ", "10s"},
		"an untrusted name": {secure.URL, "certificate is not trusted", "10s"},
		"no TLS":            {strings.Replace(slow.URL, "http:", "https:", 1), "HTTP response to HTTPS client", "10s"},
		"nonsense":          {"http://" + listen(t, "220 mail\r\n"), "http://127.0.0.1", "10s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_PROXY", "*")
			r, _ := examine(t, []string{"REDIS_URL=none", "ANTHROPIC_API_KEY=" + planted, "ANTHROPIC_MODEL=m", "ANTHROPIC_BASE_URL=" + tt.url}, "--timeout", tt.timeout)
			r.expect(t, "model anthropic", doctor.Fail, tt.text)
		})
	}
}

func TestEachKindOfProvider(t *testing.T) {
	p := newProvider(t, 200, `{"data":[]}`)
	for name, tt := range map[string]struct{ yaml, want string }{
		"openai":    {"kind: openai, key: " + planted, "GET /models Bearer " + planted},
		"anthropic": {"kind: anthropic, key: " + planted, "GET /v1/models?limit=1000 " + planted},
		"azure":     {"kind: openai, flavour: azure, key: " + planted, "GET /openai/models?api-version=2024-10-21 " + planted},
		"no key":    {"kind: openai, auth: none", "GET /models "},
	} {
		t.Run(name, func(t *testing.T) {
			list := file(t, fmt.Sprintf("providers: [{name: it, %s, baseURL: %q, model: m}]\n", tt.yaml, p.URL))
			r, _ := examine(t, []string{"REDIS_URL=none", "LONGSHORE_PROVIDERS=" + list})
			r.expect(t, "model it", doctor.OK, "lists")
			if got := p.seen(); got != tt.want {
				t.Errorf("asked %q, want %q", got, tt.want)
			}
			r.expect(t, "prices", doctor.Warn, "m (it)")
		})
	}
}

func TestCall(t *testing.T) {
	const (
		chunk = "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[%s]%s}\n\n"
		text  = `{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":"stop"}`
		usage = `,"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}`
	)
	calls, answersAs, used := 0, "gpt-4o", usage
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			http.NotFound(w, r)
			return
		}
		calls++
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, chunk+chunk+"data: [DONE]\n\n", answersAs, text, "", answersAs, "", used)
	}))
	defer good.Close()
	environ := []string{"REDIS_URL=none", "OPENAI_API_KEY=" + planted, "OPENAI_MODEL=gpt-4o", "OPENAI_BASE_URL=" + good.URL}
	if _, err := examine(t, environ); err == nil || calls != 0 {
		t.Errorf("%d unexpected calls, %v", calls, err)
	}
	own := file(t, "version: 1\ncurrency: USD\ndate: 2026-01-02\nsource: a test\nprices: [{provider: openai, models: [mine], input: 1000, output: 2000}]\n")
	for name, tt := range map[string]struct {
		answersAs, used string
		more            []string
		want            string
	}{
		"a built-in price":  {"gpt-4o", usage, nil, ", 4 tokens, $0.0000175"},
		"a version of it":   {"gpt-4o-2099-01-02", usage, nil, ", 4 tokens, $0.0000175"},
		"an own price":      {"mine", usage, []string{"LONGSHORE_PRICES=" + own}, ", 4 tokens, $0.005"},
		"no price":          {"mine", usage, nil, ", 4 tokens, no price known"},
		"a price, no usage": {"gpt-4o", "", nil, ", 0 tokens, cost unknown: the reply does not say"},
	} {
		answersAs, used = tt.answersAs, tt.used
		r, _ := examine(t, append(tt.more, environ...), "--call")
		r.expect(t, "call of openai", doctor.OK, tt.answersAs+" replied")
		r.expect(t, "call of openai", doctor.OK, tt.want)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") { // some list them without a key
			_, _ = io.WriteString(w, `{"data":[]}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: `+planted+`"}}`)
	}))
	defer bad.Close()
	r, _ := examine(t, []string{"REDIS_URL=none", "OPENAI_API_KEY=" + planted, "OPENAI_MODEL=gpt-4o", "OPENAI_BASE_URL=" + bad.URL}, "--call")
	r.expect(t, "model openai", doctor.OK, "lists")
	r.expect(t, "call of openai", doctor.Fail, "")
}
