package anthropic_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
)

// recordings are those of this protocol.
var recordings = modeltest.Recordings{
	Dir: os.Getenv("LONGSHORE_RECORDINGS"), Path: "/v1/messages", AtLeast: 10, Plainly: plainly,
	Open: func(tb testing.TB, e httpstream.Endpoint) model.Provider {
		tb.Helper()
		p, err := anthropic.New(anthropic.Config{Endpoint: e, Model: "m"})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(p.Close)
		return p
	},
	Read: func(reply *model.Reply, into *modeltest.Reading) {
		into.Model = reply.Model
		for _, b := range reply.Message.Content {
			if b.Reasoning != nil {
				into.Signature += b.Reasoning.Signature
			}
		}
	},
}

func TestRecordings(t *testing.T) { recordings.Replay(t) }

func BenchmarkRecording(b *testing.B) { recordings.Bench(b) }

// plainly reads a well-formed body: every field of every object in it, as text and numbers, in the order of the stream.
func plainly(t *testing.T, body string) (r modeltest.Reading) {
	t.Helper()
	if strings.HasPrefix(body, "{") {
		body = "data: " + body
	}
	type object = map[string]any
	str := func(o object, key string) string { s, _ := o[key].(string); return s }
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e object
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		head, ok := e["message"].(object)
		if !ok && e["type"] == "message" {
			head, ok = e, true
		}
		delta, _ := e["delta"].(object)
		if ok {
			r.Model = str(head, "model")
		}
		for _, o := range []object{head, e} {
			if u, ok := o["usage"].(object); ok {
				n := func(key string) int64 { f, _ := u[key].(float64); return int64(f) }
				r.Usage.CacheRead, r.Usage.CacheWrite = n("cache_read_input_tokens"), n("cache_creation_input_tokens")
				r.Usage.Input = n("input_tokens") + r.Usage.CacheRead + r.Usage.CacheWrite
				r.Usage.Output = n("output_tokens")
				r.Usage.Total = r.Usage.Input + r.Usage.Output
			}
			r.Stop += map[string]messages.StopReason{
				"end_turn": messages.StopEnd, "tool_use": messages.StopToolCalls, "max_tokens": messages.StopLength,
			}[str(o, "stop_reason")]
			if e["type"] == "message" {
				break
			}
		}
		r.Stop += map[string]messages.StopReason{
			"end_turn": messages.StopEnd, "tool_use": messages.StopToolCalls, "max_tokens": messages.StopLength,
		}[str(delta, "stop_reason")]
		blocks, _ := head["content"].([]any)
		if b, ok := e["content_block"]; ok {
			blocks = append(blocks, b)
		}
		for _, b := range append(blocks, delta) {
			b, _ := b.(object)
			r.Text += str(b, "text")
			r.Reasoning += str(b, "thinking")
			r.Signature += str(b, "signature")
			if str(b, "type") == "tool_use" {
				raw, _ := json.Marshal(b["input"])
				args := string(raw)
				if e["type"] != "message" {
					args = ""
				}
				r.Calls = append(r.Calls, messages.ToolCall{ID: str(b, "id"), Name: str(b, "name"), Arguments: args})
			}
			if n := len(r.Calls); n > 0 {
				r.Calls[n-1].Arguments += str(b, "partial_json")
			}
		}
	}
	return r
}
