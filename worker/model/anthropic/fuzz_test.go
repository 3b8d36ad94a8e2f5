package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
)

// FuzzStream checks that whatever a server sends ends in one reply or one typed error, whichever way it is cut into
// pieces, and in a reply only when the server said that it was complete.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		said("Hi"), begun, "\xef\xbb\xbf: wait\r\ndata:" + start + "\r\n\r\ndata: [DONE]", "<html><title>x</title>", "{}", "[]", "7",
		events(start, open(0, "thinking", `"thinking":"x"`), piece(0, "signature_delta", "signature", "S"), open(1, "redacted_thinking", `"data":"D"`), because("end_turn"), stop),
		events(start, tool(0, "x", "f"), input(0, `{"a":`), input(0, `1}`), because("tool_use"), stop),
		events(start, tool(0, "x", "f"), input(0, `{"a":`), because("max_tokens"), stop),
		events(start, open(0, "server_tool_use", `"text":[]`), input(0, `{}`), because("pause_turn"), stop),
		events(start, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`),
		`{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"f","input":{"a":1}}],"stop_reason":"tool_use"}`,
		"data: {\"type\":\ndata: \"message_stop\"}\n\n", "event: message_stop\ndata: {}\n\n", "event: error\ndata: \"x\"\n\n",
	} {
		f.Add(200, []byte(s))
	}
	f.Add(429, []byte(`{"error":"x"}`))
	f.Add(529, []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	f.Add(302, []byte(`moved`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			status = 200
		}
		whole := outcomeOf(t, status, bytes.NewReader(body))
		bytewise := outcomeOf(t, status, iotest.OneByteReader(bytes.NewReader(body)))
		if diff := cmp.Diff(whole, bytewise); diff != "" {
			t.Errorf("the pieces matter: %s", diff)
		}
		if limit := 3 * len(body); len(whole.Text)+len(whole.Reasoning) > limit { // a broken byte becomes a character of three
			t.Errorf("%d bytes of text from %d", len(whole.Text)+len(whole.Reasoning), len(body))
		}
		if whole.Reply != nil && !terminated(body) {
			t.Errorf("a reply without an end: %+v", whole.Reply)
		}
	})
}

// terminated reports whether a body may be complete: it says so, or is a reply in one piece.
func terminated(body []byte) bool {
	body = bytes.ToLower(body)
	return bytes.Contains(body, []byte("message_stop")) || bytes.Contains(body, []byte(`\u`)) || // as a part of it
		bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))), []byte("{"))
}

func outcomeOf(t *testing.T, status int, body io.Reader) outcome {
	t.Helper()
	p, err := anthropic.New(anthropic.Config{
		Endpoint: httpstream.Endpoint{BaseURL: "http://host", NoAuth: true, Transport: modeltest.Memory{Status: status, Body: body}, MaxLine: 1 << 16, MaxReply: 1 << 20}, Model: "m",
	})
	if err != nil {
		t.Fatal(err)
	}
	o := call(t.Context(), p, hello())
	if (o.Reply == nil) == (o.Err == nil) {
		t.Fatalf("reply %+v and error %v", o.Reply, o.Err)
	}
	if o.Err != nil {
		e, ok := errors.AsType[*model.Error](o.Err)
		if !ok || e.Detail == "" || e.Hint == "" {
			t.Fatalf("not a typed error that says what to do: %v", o.Err)
		}
		return o
	}
	if status >= 300 {
		t.Fatalf("a reply of status %d", status)
	}
	if got := o.Reply.Message.Text(); got != o.Text {
		t.Fatalf("streamed %q, replied %q", o.Text, got)
	}
	for i, b := range o.Reply.Message.Content {
		if b.ToolCall == nil {
			continue
		}
		if b.ToolCall.ID == "" || b.ToolCall.Name == "" || b.ToolCall.Arguments == "" {
			t.Fatalf("half a call: %+v", b.ToolCall)
		}
		if strings.HasPrefix(b.ToolCall.ID, "call_") && len(b.ToolCall.ID) == 21 {
			o.Reply.Message.Content[i].ToolCall.ID = "new"
		}
	}
	if calls := len(o.Reply.Message.Calls()); (calls > 0) != (o.Reply.Stop == messages.StopToolCalls) {
		t.Fatalf("%d calls and stop %q", calls, o.Reply.Stop)
	}
	return o
}

// FuzzCut cuts a complete stream anywhere: what is left is an error of class Truncated unless message_stop is in it.
func FuzzCut(f *testing.F) {
	stream := events(start, open(0, "text", `"text":""`), text(0, "Hello"), tool(1, "x", "f"), input(1, `{"a":1}`), because("tool_use"), stop)
	for at := range len(stream) + 1 {
		f.Add(at)
	}
	ends := strings.Index(stream, stop) + len(stop)
	f.Fuzz(func(t *testing.T, at int) {
		if at < 0 || at > len(stream) {
			return
		}
		o := outcomeOf(t, 200, strings.NewReader(stream[:at]))
		if complete := at >= ends; complete != (o.Reply != nil) {
			t.Errorf("cut at %d of %d: %+v, %v", at, ends, o.Reply, o.Err)
		}
		if e, _ := errors.AsType[*model.Error](o.Err); e != nil && e.Class != model.Truncated {
			t.Errorf("cut at %d: %v", at, e)
		}
	})
}
