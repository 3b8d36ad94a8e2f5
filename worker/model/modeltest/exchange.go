package modeltest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Hello returns a request of one word.
func Hello() model.Request {
	return model.Request{Messages: []messages.Message{
		{Role: messages.RoleUser, Content: messages.TextContent("hello")},
	}}
}

// Outcome is what a call came to.
type Outcome struct {
	Text, Reasoning string // streamed
	Reply           *model.Reply
	Err             error
}

// Call makes a call and reads its stream to the end.
func Call(ctx context.Context, p model.Provider, r model.Request) (o Outcome) {
	var text, reasoning strings.Builder
	for d, err := range p.Stream(ctx, r) {
		text.WriteString(d.Text)
		reasoning.WriteString(d.Reasoning)
		if d.Reply != nil {
			o.Reply = d.Reply
		}
		o.Err = err
	}
	o.Text, o.Reasoning = text.String(), reasoning.String()
	return o
}

// Write sends a body in pieces of n bytes; 0: in one.
func Write(w http.ResponseWriter, body string, n int) {
	if n == 0 {
		n = len(body)
	}
	for body != "" {
		n = min(n, len(body))
		if _, err := w.Write([]byte(body[:n])); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // without it the pieces come together
		body = body[n:]
	}
}

// Memory is a transport that answers one request with a body, without a network.
type Memory struct {
	Status int
	Body   io.Reader
}

// RoundTrip implements http.RoundTripper.
func (m Memory) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: m.Status, Header: http.Header{}, Body: io.NopCloser(m.Body), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// Fresh is a transport that answers every request with the same body, without a network.
type Fresh []byte

// RoundTrip implements http.RoundTripper.
func (f Fresh) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return Memory{http.StatusOK, bytes.NewReader(f)}.RoundTrip(r)
}
