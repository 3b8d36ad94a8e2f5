package openai_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
	"github.com/longshore-run/longshore/worker/model/openai"
)

const key = "sk-test-0123456789abcdef"

// What the tests of providers share.
var (
	write = modeltest.Write
	hello = modeltest.Hello
	call  = modeltest.Call
)

type outcome = modeltest.Outcome

// serve starts a server with a provider on it.
func serve(t *testing.T, h http.HandlerFunc, edit ...func(*openai.Config)) *openai.Provider {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := openai.Config{Endpoint: httpstream.Endpoint{BaseURL: s.URL + "/v1", APIKey: key}, Model: "test-model"}
	for _, f := range edit {
		f(&c)
	}
	p, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// streaming answers every request with a stream.
func streaming(body string, piece int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Request-Id", "req-7")
		write(w, body, piece)
	}
}

// data makes events of chunks, with [DONE] at the end.
func data(chunks ...string) string {
	return events(append(chunks, "[DONE]")...)
}

func events(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

// delta is a chunk with a delta of the given fields.
func delta(fields string) string {
	return `{"id":"c1","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}`
}

func text(s string) string { return delta(`"content":"` + s + `"`) }

func calls(s string) string { return delta(`"tool_calls":[` + s + `]`) }

func finish(reason string) string {
	return `{"id":"c1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const usage = `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`
