package embed_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// A reply without end, in whichever of its parts, ends the run at the bound of a reply: it is asked for once, and never more
// of it than that is held in memory.
func TestReplyWithoutEnd(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	openAI := func(delta string) string { return `data: {"choices":[{"index":0,"delta":{` + delta + "}}]}\n\n" }
	block := func(i int, start, delta string) string {
		return fmt.Sprintf("data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{%s}}\n\n"+
			"data: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{%s}}\n\n", i, start, i, delta)
	}
	const begun = `data: {"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1}}}` + "\n\n"
	both := "its text, reasoning and tool calls are together larger than 4194304 bytes"
	for name, c := range map[string]struct {
		of    func(url string) (model.Provider, error)
		first string
		part  func(i int) string // of 64 KiB
		want  string
	}{
		"text": {overOpenAI, "", func(int) string { return openAI(`"content":"` + long + `"`) }, both},
		"reasoning that is not kept": {overOpenAI, "", func(int) string {
			return openAI(`"reasoning_content":"` + long + `"`)
		}, both},
		"arguments": {overOpenAI, "", func(i int) string {
			return openAI(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"%s"}}]`, i/8, i/8, long))
		}, both},
		"a bit of each": {overOpenAI, "", func(i int) string {
			return openAI([]string{
				`"content":"` + long + `"`, `"reasoning_content":"` + long + `"`,
				fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"%s"}}]`, i/8, i/8, long),
			}[i%3])
		}, both},
		"one call": {overOpenAI, "", func(int) string {
			return openAI(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"` + long + `"}}]`)
		}, "the arguments of a tool call are larger than 1048576 bytes"},
		"nothing at all": {overOpenAI, "", func(int) string { return ": " + long + "\n" }, "the reply is larger than 16777216 bytes"},
		"Anthropic's text": {overAnthropic, begun, func(i int) string {
			return block(i, `"type":"text","text":""`, `"type":"text_delta","text":"`+long+`"`)
		}, both},
		"Anthropic's thinking": {overAnthropic, begun, func(i int) string {
			return block(i, `"type":"thinking","thinking":""`, `"type":"thinking_delta","thinking":"`+long+`"`)
		}, both},
		"Anthropic's arguments": {overAnthropic, begun, func(i int) string {
			return block(i, fmt.Sprintf(`"type":"tool_use","id":"c%d","name":"f","input":{}`, i), `"type":"input_json_delta","partial_json":"`+long+`"`)
		}, both},
		"Anthropic's signature, which no piece shows": {overAnthropic, begun, func(i int) string {
			if i == 80 {
				return "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
			}
			return block(i, `"type":"thinking","thinking":""`, `"type":"signature_delta","signature":"`+long+`"`)
		}, both},
		"Anthropic's nothing": {overAnthropic, begun, func(int) string { return ": " + long + "\n" }, "the reply is larger than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			var most atomic.Uint64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.first)
				for i := 0; r.Context().Err() == nil; i++ {
					if _, err := io.WriteString(w, c.part(i)); err != nil {
						return
					}
					var now runtime.MemStats
					runtime.ReadMemStats(&now)
					most.Store(max(most.Load(), now.HeapAlloc))
				}
			}))
			defer server.Close()
			p, err := c.of(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			service, err := embed.New(embed.Config{Model: model.NewRetry(p, model.RetryConfig{Random: func() float64 { return 0 }})})
			if err != nil {
				t.Fatal(err)
			}
			session, err := service.Session(messages.Task{Input: messages.TextInput("go")})
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			result, err := session.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if result.Error == nil || result.Error.Code != messages.CodeModelContextLength || !strings.Contains(result.Error.Message, c.want) {
				t.Errorf("it ended with %+v", result.Error)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
			grown := (most.Load() - min(most.Load(), before.HeapAlloc)) >> 20
			if grown > 32 {
				t.Errorf("the heap grew by %d MiB", grown)
			}
			t.Logf("the heap grew by %d MiB", grown)
		})
	}
}

func overOpenAI(url string) (model.Provider, error) {
	return openai.New(openai.Config{Endpoint: httpstream.Endpoint{NoAuth: true, BaseURL: url}, Model: "m"})
}

func overAnthropic(url string) (model.Provider, error) {
	return anthropic.New(anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "k", BaseURL: url}, Model: "m"})
}
