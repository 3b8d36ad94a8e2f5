package openai_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
)

const key = "sk-test-0123456789abcdef"

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

// write sends a body in pieces of n bytes; 0: in one.
func write(w http.ResponseWriter, body string, n int) {
	if n == 0 {
		n = len(body)
	}
	for body != "" {
		n = min(n, len(body))
		if _, err := w.Write([]byte(body[:n])); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		body = body[n:]
	}
}

// streaming answers every request with a stream.
func streaming(body string, piece int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Request-Id", "req-7")
		write(w, body, piece)
	}
}

func hello() model.Request {
	return model.Request{Messages: []messages.Message{
		{Role: messages.RoleUser, Content: messages.TextContent("hello")},
	}}
}

// outcome is what a call came to.
type outcome struct {
	Text  string // streamed
	Aloud string // reasoning, streamed
	Reply *model.Reply
	Err   error
}

func call(ctx context.Context, p model.Provider, r model.Request) (o outcome) {
	var text, aloud strings.Builder
	for d, err := range p.Stream(ctx, r) {
		text.WriteString(d.Text)
		aloud.WriteString(d.Reasoning)
		if d.Reply != nil {
			o.Reply = d.Reply
		}
		o.Err = err
	}
	o.Text, o.Aloud = text.String(), aloud.String()
	return o
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
