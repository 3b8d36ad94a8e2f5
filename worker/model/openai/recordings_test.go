package openai_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// recordings are those of this protocol.
var recordings = modeltest.Recordings{
	Dir: os.Getenv("LONGSHORE_RECORDINGS"), Path: "/chat/completions", AtLeast: 20, Plainly: plainly,
	Open: func(tb testing.TB, e httpstream.Endpoint) model.Provider {
		tb.Helper()
		p, err := openai.New(openai.Config{Endpoint: e, Model: "m"})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(p.Close)
		return p
	},
}

func TestRecordings(t *testing.T) { recordings.Replay(t) }

func BenchmarkRecording(b *testing.B) { recordings.Bench(b) }

// plainly reads a well-formed body: with the types of the specification and calls told apart by index alone.
func plainly(t *testing.T, body string) (r modeltest.Reading) {
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
			r.Reasoning += choice.Delta.Long + choice.Message.Long + choice.Delta.Short + choice.Message.Short
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
