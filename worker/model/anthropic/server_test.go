package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
)

const key = "sk-ant-api03-0123456789abcdef"

// What the tests of providers share.
var (
	write = modeltest.Write
	hello = modeltest.Hello
	call  = modeltest.Call
)

type outcome = modeltest.Outcome

// serve starts a server with a provider on it.
func serve(t *testing.T, h http.HandlerFunc, edit ...func(*anthropic.Config)) *anthropic.Provider {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := anthropic.Config{Endpoint: httpstream.Endpoint{BaseURL: s.URL, APIKey: key}, Model: "test-model"}
	for _, f := range edit {
		f(&c)
	}
	p, err := anthropic.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// streaming answers every request with a stream.
func streaming(body string, piece int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Request-Id", "req-7")
		write(w, body, piece)
	}
}

// events makes a stream of the data of events, named by their types.
func events(list ...string) string {
	var b strings.Builder
	for _, data := range list {
		var e struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(data), &e)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, data)
	}
	return b.String()
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
)

// open starts a block; fields come after its type.
func open(index int, kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"%s"%s}}`, index, kind, fields)
}

func tool(index int, id, name string) string {
	return open(index, "tool_use", fmt.Sprintf(`"id":"%s","name":"%s","input":{}`, id, name))
}

func piece(index int, kind, field, value string) string {
	raw, _ := json.Marshal(value)
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":%s}}`, index, kind, field, raw)
}

func text(index int, s string) string { return piece(index, "text_delta", "text", s) }

func input(index int, s string) string { return piece(index, "input_json_delta", "partial_json", s) }

func shut(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func because(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"%s","stop_sequence":null},"usage":{"output_tokens":5}}`, reason)
}

// said is a whole stream that says s.
func said(s string) string {
	return events(start, open(0, "text", `"text":""`), text(0, s), shut(0), because("end_turn"), stop)
}

// want is what a call must come to: a reply, or an error of class.
type want struct {
	text      string
	reasoning []messages.Reasoning
	calls     []messages.ToolCall
	stop      messages.StopReason // default: end
	usage     *messages.Usage

	class  model.Class
	detail string // a part
}

func check(t *testing.T, o outcome, w want) {
	t.Helper()
	if w.class != "" {
		e, ok := errors.AsType[*model.Error](o.Err)
		if !ok || o.Reply != nil || e.Class != w.class || !strings.Contains(e.Detail, w.detail) {
			t.Fatalf("reply %+v and error %v; want %s: …%s…", o.Reply, o.Err, w.class, w.detail)
		}
		if e.Hint == "" {
			t.Errorf("%v has no hint", e)
		}
		if o.Text != w.text && w.text != "" {
			t.Errorf("streamed %q, want %q", o.Text, w.text)
		}
		return
	}
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	if o.Text != w.text || o.Reply.Message.Text() != w.text {
		t.Errorf("streamed %q and replied %q, want %q", o.Text, o.Reply.Message.Text(), w.text)
	}
	var thoughts []messages.Reasoning
	var all strings.Builder
	for _, b := range o.Reply.Message.Content {
		if b.Reasoning != nil {
			thoughts = append(thoughts, *b.Reasoning)
			all.WriteString(b.Reasoning.Text)
		}
	}
	if diff := cmp.Diff(w.reasoning, thoughts); diff != "" || all.String() != o.Reasoning {
		t.Errorf("reasoning streamed as %q: %s", o.Reasoning, diff)
	}
	if diff := cmp.Diff(w.calls, o.Reply.Message.Calls()); diff != "" {
		t.Error(diff)
	}
	if w.stop == "" {
		w.stop = messages.StopEnd
	}
	if o.Reply.Stop != w.stop || o.Reply.Provider != "anthropic" || o.Reply.Message.Role != messages.RoleAssistant {
		t.Errorf("stop %q, provider %q, role %q; want stop %q", o.Reply.Stop, o.Reply.Provider, o.Reply.Message.Role, w.stop)
	}
	if w.usage != nil {
		if diff := cmp.Diff(*w.usage, o.Reply.Usage); diff != "" {
			t.Error(diff)
		}
	}
}
