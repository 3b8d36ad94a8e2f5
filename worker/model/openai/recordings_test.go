package openai_test

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
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
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
					p := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, body, piece) })
					o := call(t.Context(), p, hello())
					if o.Err != nil {
						t.Fatal(o.Err)
					}
					want := plainly(t, body)
					got := reading{
						Text: o.Reply.Message.Text(), Calls: o.Reply.Message.Calls(), Usage: o.Reply.Usage, Stop: o.Reply.Stop,
						Aloud: aloud(o.Reply),
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Error(diff)
					}
					if o.Text != got.Text || o.Aloud != got.Aloud {
						t.Errorf("streamed %q and %q, replied %q and %q", o.Text, o.Aloud, got.Text, got.Aloud)
					}
				}
			}
		})
	}
	t.Logf("%d exchanges", played)
	if played < 20 {
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
	p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{NoAuth: true, BaseURL: "http://host", Transport: fresh(longest)}, Model: "m"})
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

// recorded gives the bodies of chat completions, streamed or in one piece.
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
		if strings.HasSuffix(i.Request.URL, "/chat/completions") && i.Response.Code == http.StatusOK {
			bodies = append(bodies, i.Response.Body)
		}
	}
	return bodies
}

type reading struct {
	Text  string
	Calls []messages.ToolCall
	Usage messages.Usage
	Stop  messages.StopReason
	Aloud string // reasoning
}

// plainly reads a well-formed body: with the types of the specification and calls told apart by index alone.
func plainly(t *testing.T, body string) (r reading) {
	t.Helper()
	type said struct {
		Content   string `json:"content"`
		Long      string `json:"reasoning_content"`
		Short     string `json:"reasoning"`
		ToolCalls []struct {
			Index    int    `json:"index"`
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	args := map[int]string{}
	reason := ""
	lines := strings.Split(body, "\n")
	if !strings.HasPrefix(body, "data:") && !strings.HasPrefix(body, ":") {
		lines = []string{"data: " + body}
	}
	for _, line := range lines {
		line, ok := strings.CutPrefix(line, "data: ")
		if !ok || line == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta        said   `json:"delta"`
				Message      said   `json:"message"`
				FinishReason string `json:"finish_reason"`
			} `json:"choices"`
			Usage *struct {
				PromptTokens     int64 `json:"prompt_tokens"`
				CompletionTokens int64 `json:"completion_tokens"`
				TotalTokens      int64 `json:"total_tokens"`
				PromptDetails    struct {
					Cached int64 `json:"cached_tokens"`
					Write  int64 `json:"cache_write_tokens"`
				} `json:"prompt_tokens_details"`
				CompletionDetails struct {
					Reasoning int64 `json:"reasoning_tokens"`
				} `json:"completion_tokens_details"`
			} `json:"usage"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, choice := range c.Choices {
			r.Text += choice.Delta.Content + choice.Message.Content
			r.Aloud += choice.Delta.Long + choice.Message.Long + choice.Delta.Short + choice.Message.Short
			if choice.FinishReason != "" {
				reason = choice.FinishReason
			}
			for i, call := range append(choice.Delta.ToolCalls, choice.Message.ToolCalls...) {
				if choice.Message.ToolCalls != nil {
					call.Index = i
				}
				if call.Index == len(r.Calls) {
					r.Calls = append(r.Calls, messages.ToolCall{ID: call.ID, Name: call.Function.Name})
				}
				args[call.Index] += call.Function.Arguments
			}
		}
		if u := c.Usage; u != nil {
			r.Usage = messages.Usage{
				Input: u.PromptTokens, Output: u.CompletionTokens, Total: u.TotalTokens, CacheRead: u.PromptDetails.Cached,
				CacheWrite: u.PromptDetails.Write, Reasoning: u.CompletionDetails.Reasoning,
			}
			if r.Usage.Reasoning > 0 {
				r.Usage.Output = u.TotalTokens - u.PromptTokens // whatever its completion tokens hold
			}
		}
	}
	for i := range r.Calls {
		r.Calls[i].Arguments = args[i]
	}
	r.Stop = map[string]messages.StopReason{
		"stop": messages.StopEnd, "tool_calls": messages.StopToolCalls, "length": messages.StopLength,
	}[reason]
	return r
}
