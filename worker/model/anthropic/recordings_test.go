package anthropic_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// TestRecordings replays real exchanges, and compares with what a plain reading of the bodies gives. The recordings
// are not part of the repository.
func TestRecordings(t *testing.T) {
	dir := os.Getenv("LONGSHORE_RECORDINGS")
	if dir == "" {
		t.Skip("left out: LONGSHORE_RECORDINGS names no folder of recorded provider traffic")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, file := range files {
		bodies := recorded(t, file)
		if played += len(bodies); len(bodies) == 0 {
			continue // of a provider with a protocol of its own
		}
		name, _ := filepath.Rel(dir, file)
		t.Run(name, func(t *testing.T) {
			for _, body := range bodies {
				for _, piece := range []int{0, 13} {
					o := call(t.Context(), serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, body, piece) }), hello())
					if o.Err != nil {
						t.Fatal(o.Err)
					}
					want := plainly(t, body)
					got := reading{
						Text: o.Reply.Message.Text(), Calls: o.Reply.Message.Calls(), Usage: o.Reply.Usage, Stop: o.Reply.Stop,
						Model: o.Reply.Model,
					}
					for _, b := range o.Reply.Message.Content {
						if b.Reasoning != nil {
							got.Thought += b.Reasoning.Text
							got.Signature += b.Reasoning.Signature
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Error(diff)
					}
					if o.Text != got.Text || o.Reasoning != got.Thought {
						t.Errorf("streamed %q and %q, replied %q and %q", o.Text, o.Reasoning, got.Text, got.Thought)
					}
				}
			}
		})
	}
	t.Logf("%d exchanges", played)
	if played < 10 {
		t.Errorf("only %d exchanges were found in %d files of %s", played, len(files), dir)
	}
}

// BenchmarkRecording is what the longest recorded stream costs, from the wire to the reply.
func BenchmarkRecording(b *testing.B) {
	dir := os.Getenv("LONGSHORE_RECORDINGS")
	if dir == "" {
		b.Skip("left out: LONGSHORE_RECORDINGS names no folder of recorded provider traffic")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	longest := ""
	for _, file := range files {
		for _, body := range recorded(b, file) {
			if len(body) > len(longest) && !strings.HasPrefix(body, "{") {
				longest = body
			}
		}
	}
	p, err := anthropic.New(anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: key, Transport: replay(longest)}, Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(longest)))
	b.ReportAllocs()
	for b.Loop() {
		if o := call(b.Context(), p, hello()); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
	b.ReportMetric(float64(strings.Count(longest, "data:")), "events")
}

// recorded gives the bodies of messages, streamed or in one piece.
func recorded(tb testing.TB, file string) []string {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var f struct {
		Interactions []struct {
			Request  struct{ URL string }
			Response struct {
				Body string
				Code int
			}
		}
	}
	if err := yaml.Load(raw, &f); err != nil {
		tb.Fatal(err)
	}
	var bodies []string
	for _, i := range f.Interactions {
		if strings.HasSuffix(i.Request.URL, "/v1/messages") && i.Response.Code == http.StatusOK {
			bodies = append(bodies, i.Response.Body)
		}
	}
	return bodies
}

type reading struct {
	Text, Thought, Signature string
	Calls                    []messages.ToolCall
	Usage                    messages.Usage
	Stop                     messages.StopReason
	Model                    string
}

// plainly reads a well-formed body: every field of every object in it, as text and numbers, in the order of the stream.
func plainly(t *testing.T, body string) (r reading) {
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
			r.Thought += str(b, "thinking")
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
