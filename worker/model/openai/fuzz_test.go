package openai_test

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
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// FuzzStream checks that whatever a server sends ends in one reply or one typed error, whichever way it is cut into
// pieces, and in a reply only when the server said that it was complete.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		data(text("Hello"), finish("stop"), usage),
		events(text("a")),
		"\xef\xbb\xbf: wait\r\ndata:" + text("a") + "\r\n\r\ndata: [DONE]",
		"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n",
		"event: error\ndata: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n",
		`{"choices":[{"message":{"content":["a"]},"finish_reason":"stop"}]}`,
		`[{"error":{"code":400,"message":["a"]}}]`, "<html><title>x</title>", `{"detail":[{"loc":["a"],"msg":"m"}]}`,
		data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}`), calls(`{"index":0,"function":{"arguments":"1}"}}`), finish("tool_calls")),
		data(calls(`{"function":{"arguments":{"a":1}}},{"id":"y","function":{"name":"g"}}`), finish("length")),
		data(calls(`{"index":"0","id":7,"function":{"name":"f","arguments":"{"}}`), finish("tool_calls"), `{"choices":[],"usage":{"completion_tokens":"64"}}`),
	} {
		f.Add(200, []byte(s))
	}
	for _, s := range shapes() {
		f.Add(200, []byte(s))
	}
	f.Add(429, []byte(`{"error":"x"}`))
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
			t.Errorf("%d bytes of text and %d of reasoning from %d", len(whole.Text), len(whole.Reasoning), len(body))
		}
		if whole.Reply != nil && !terminated(body) {
			t.Errorf("a reply without an end: %+v", whole.Reply)
		}
	})
}

// terminated reports whether a body may be complete: it says so, or is JSON in one piece.
func terminated(body []byte) bool {
	body = bytes.ToLower(body)
	return bytes.Contains(body, []byte("[done]")) || bytes.Contains(body, []byte("finish_reason")) ||
		bytes.Contains(body, []byte(`\u`)) || // as a part of a key
		bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))), []byte("{"))
}

func outcomeOf(t *testing.T, status int, body io.Reader) outcome {
	t.Helper()
	p, err := openai.New(openai.Config{
		Endpoint: httpstream.Endpoint{BaseURL: "http://host", NoAuth: true, Transport: modeltest.Memory{Status: status, Body: body}, MaxLine: 1 << 16, MaxReply: 1 << 20}, Model: "m",
	})
	if err != nil {
		t.Fatal(err)
	}
	r := hello()
	r.MaxTokens = 64
	r.Tools = []messages.ToolSpec{{Name: "f"}}
	o := call(t.Context(), p, r)
	if (o.Reply == nil) == (o.Err == nil) {
		t.Fatalf("reply %+v and error %v", o.Reply, o.Err)
	}
	if o.Err != nil {
		if _, ok := errors.AsType[*model.Error](o.Err); !ok {
			t.Fatalf("not a typed error: %v", o.Err)
		}
		return o
	}
	if status >= 300 {
		t.Fatalf("a reply of status %d", status)
	}
	if got := o.Reply.Message.Text(); got != o.Text {
		t.Fatalf("streamed %q, replied %q", o.Text, got)
	}
	sane(t, p, o.Reply.Message)
	for i, b := range o.Reply.Message.Content {
		if b.ToolCall == nil {
			continue
		}
		if b.ToolCall.ID == "" || b.ToolCall.Name == "" || b.ToolCall.Arguments == "" {
			t.Fatalf("half a call: %+v", b.ToolCall)
		}
		if generated.MatchString(b.ToolCall.ID) {
			o.Reply.Message.Content[i].ToolCall.ID = "new"
		}
	}
	if calls := len(o.Reply.Message.Calls()); (calls > 0) != (o.Reply.Stop == messages.StopToolCalls) {
		t.Fatalf("%d calls and stop %q", calls, o.Reply.Stop)
	}
	return o
}

// sane checks that a reply can go back to the provider that made it.
func sane(t *testing.T, p *openai.Provider, m messages.Message) {
	t.Helper()
	for _, b := range m.Content {
		if b.Reasoning != nil && (b.Reasoning.Family != "openai" || b.Reasoning.Opaque == "") {
			t.Fatalf("reasoning without an owner: %+v", b.Reasoning)
		}
	}
	r := hello()
	r.Messages, r.Echo = append(r.Messages, m), true
	var failed *model.Error
	if o := call(t.Context(), p, r); errors.As(o.Err, &failed) && failed.Class == model.InvalidRequest && failed.Status == 0 {
		t.Fatalf("the reply cannot be sent back: %v", failed)
	}
}

// shapes are streams as they were recorded, shortened.
func shapes() []string {
	const (
		openRouter = `"id":"gen-1","object":"chat.completion.chunk","created":1,"model":"m","provider":"P","choices":[{"index":0,"delta":{"content":"","role":"assistant"`
		usage      = `"usage":{"prompt_tokens":86,"completion_tokens":50,"total_tokens":136,"cost":0.00017,"prompt_tokens_details":{"cached_tokens":32,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":27}}`
	)
	return []string{
		": OPENROUTER PROCESSING\n\n" + data(
			`{`+openRouter+`,"reasoning":" The","reasoning_details":[{"type":"reasoning.text","text":" The","format":"unknown","index":0}]},"finish_reason":null,"native_finish_reason":null}]}`,
			`{`+openRouter+`,"reasoning":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"AA","id":"rs","index":0}],"tool_calls":[{"index":0,"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}`,
			`{`+openRouter+`},"finish_reason":"tool_calls","native_finish_reason":"tool_calls"}]}`,
			`{`+openRouter+`},"finish_reason":null,"native_finish_reason":null}],`+usage+`}`,
		),
		data(`{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`,
			`{"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]},"finish_reason":null}],"usage":null}`, finish("tool_calls"), `{"choices":[],`+usage+`}`),
		data(`{"id": "1", "choices": [{"index": 0, "delta": {"reasoning_content": "I"}}]}`, `{"choices":[{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":""}}],`+usage+`}`),
		data(`{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"x_groq":{"id":"r"}}`, text("a"), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r",`+usage+`}}`),
		data(delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), delta(`"content":[{"type":"text","text":"a"}]`), finish("stop")),
		data(text("<think>hm</think>"), text(`<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>`), finish("stop")),
		data(calls(`{"id":"x","function":{"name":"f","arguments":"{}{}"},"extra_content":{"google":{"thought_signature":"s"}}}`), finish("stop")),
		`{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_content":"hm","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],` + usage + `}`,
		data(`{"choices":[],"id":"","model":"","prompt_filter_results":[{"prompt_index":0}]}`, text("a"), `{"choices":[{"index":0,"finish_reason":"content_filter","content_filter_results":{"hate":{"filtered":true}}}]}`),
	}
}

// FuzzCut cuts a complete stream anywhere: what is left is an error unless it still tells why it ended.
func FuzzCut(f *testing.F) {
	stream := data(text("Hello"), calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}`), finish("tool_calls"), usage)
	for at := range len(stream) + 1 {
		f.Add(at)
	}
	ends := strings.Index(stream, finish("tool_calls")) + len(finish("tool_calls"))
	f.Fuzz(func(t *testing.T, at int) {
		if at < 0 || at > len(stream) {
			return
		}
		o := outcomeOf(t, 200, strings.NewReader(stream[:at]))
		if complete := at >= ends; complete != (o.Reply != nil) {
			t.Errorf("cut at %d of %d: %+v, %v", at, ends, o.Reply, o.Err)
		}
		e, _ := errors.AsType[*model.Error](o.Err)
		if e != nil && e.Class != model.Truncated {
			t.Errorf("cut at %d: %v", at, e)
		}
	})
}
