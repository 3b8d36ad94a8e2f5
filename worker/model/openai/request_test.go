package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// sent makes a call and returns the request as the server saw it.
func sent(t *testing.T, r model.Request, edit ...func(*openai.Config)) (http.Header, map[string]any) {
	t.Helper()
	var header http.Header
	var body map[string]any
	p := serve(t, func(w http.ResponseWriter, req *http.Request) {
		header = req.Header
		raw, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		if err != nil || req.URL.Path != "/v1/chat/completions" || int64(len(raw)) != req.ContentLength {
			t.Errorf("%s of %d bytes, %d announced: %v", req.URL.Path, len(raw), req.ContentLength, err)
		}
		write(w, data(text("a"), finish("stop")), 0)
	}, edit...)
	if o := call(t.Context(), p, r); o.Err != nil {
		t.Fatal(o.Err)
	}
	return header, body
}

func TestRequest(t *testing.T) {
	zero := 0.0
	_, body := sent(t, model.Request{
		Temperature: &zero, MaxTokens: 99,
		Messages: []messages.Message{
			{Role: messages.RoleSystem, Content: messages.TextContent("Be brief.")},
			{Role: messages.RoleUser, Content: []messages.Block{{Text: "a"}, {Text: "b <&>"}}},
			{Role: messages.RoleAssistant, Content: []messages.Block{
				{ToolCall: &messages.ToolCall{ID: "x", Name: "f", Arguments: `{"a":1}`}},
				{ToolCall: &messages.ToolCall{ID: "y", Name: "g"}},
				{ToolCall: &messages.ToolCall{ID: "z", Name: "g", Arguments: `{"a":`}},
			}},
			{Role: messages.RoleTool, Content: []messages.Block{
				{ToolResult: &messages.ToolResult{CallID: "x", Content: messages.TextContent("done")}},
				{ToolResult: &messages.ToolResult{CallID: "y"}},
				{ToolResult: &messages.ToolResult{CallID: "z", Content: messages.TextContent("not JSON"), IsError: true}},
			}},
			{Role: messages.RoleAssistant},
			{Role: messages.RoleUser, Content: messages.TextContent("")},
		},
		Tools: []messages.ToolSpec{
			{Name: "f", Description: "does f", InputSchema: []byte(`{"type":"object","anyOf":[{"required":["a"]}],"x-own":1}`), Effect: messages.EffectOnce},
			{Name: "g"},
		},
	})
	function := func(name, args string) map[string]any {
		return map[string]any{"name": name, "arguments": args}
	}
	want := map[string]any{
		"model": "test-model", "stream": true, "stream_options": map[string]any{"include_usage": true},
		"temperature": 0.0, "max_tokens": 99.0,
		"messages": []any{
			map[string]any{"role": "system", "content": "Be brief."},
			map[string]any{"role": "user", "content": "ab <&>"},
			map[string]any{"role": "assistant", "content": "", "tool_calls": []any{
				map[string]any{"id": "x", "type": "function", "function": function("f", `{"a":1}`)},
				map[string]any{"id": "y", "type": "function", "function": function("g", `{}`)},
				map[string]any{"id": "z", "type": "function", "function": function("g", `{"invalid_arguments":"{\"a\":"}`)},
			}},
			map[string]any{"role": "tool", "tool_call_id": "x", "content": "done"},
			map[string]any{"role": "tool", "tool_call_id": "y", "content": ""},
			map[string]any{"role": "tool", "tool_call_id": "z", "content": "not JSON"},
			map[string]any{"role": "assistant", "content": ""},
			map[string]any{"role": "user", "content": ""},
		},
		"tools": []any{
			map[string]any{"type": "function", "function": map[string]any{
				"name": "f", "description": "does f",
				"parameters": map[string]any{"type": "object", "anyOf": []any{map[string]any{"required": []any{"a"}}}, "x-own": 1.0},
			}},
			map[string]any{"type": "function", "function": map[string]any{
				"name": "g", "parameters": map[string]any{"type": "object", "properties": map[string]any{}},
			}},
		},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

func TestRequestFields(t *testing.T) {
	half := 0.5
	for _, tt := range []struct {
		name    string
		request model.Request
		want    map[string]any // of model, temperature, max_tokens, max_completion_tokens
	}{
		{"nothing set", model.Request{}, map[string]any{"model": "test-model"}},
		{"temperature", model.Request{Model: "m", Temperature: &half}, map[string]any{"model": "m", "temperature": 0.5}},
		{"a reasoning model", model.Request{Model: "gpt-5-mini", MaxTokens: 9, Temperature: &half}, map[string]any{"model": "gpt-5-mini", "max_completion_tokens": 9.0, "temperature": 0.5}},
		{"o3", model.Request{Model: "o3", MaxTokens: 9}, map[string]any{"model": "o3", "max_completion_tokens": 9.0}},
		{"a name with slashes", model.Request{Model: "openai/o3", MaxTokens: 9}, map[string]any{"model": "openai/o3", "max_tokens": 9.0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.Messages = hello().Messages
			_, body := sent(t, tt.request)
			got := map[string]any{}
			for _, k := range []string{"model", "temperature", "max_tokens", "max_completion_tokens"} {
				if v, ok := body[k]; ok {
					got[k] = v
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	h, _ := sent(t, hello(), func(c *openai.Config) { c.Organization = "org-1" })
	if h.Get("Authorization") != "Bearer "+key || h.Get("OpenAI-Organization") != "org-1" || h.Get("Accept") != "text/event-stream" {
		t.Errorf("headers %v", h)
	}
	h, _ = sent(t, hello(), func(c *openai.Config) { c.APIKey, c.NoAuth = "", true })
	if v, ok := h["Authorization"]; ok {
		t.Errorf("authorization %q without a key", v)
	}
}

func TestRequestThatCannotBeSent(t *testing.T) {
	p := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	bad := hello()
	bad.Tools = []messages.ToolSpec{{Name: "f", InputSchema: []byte(`{`)}}
	o := call(t.Context(), p, bad)
	check(t, o, want{class: model.InvalidRequest, detail: `tool "f"`})

	gpt6 := hello()
	gpt6.Model = "gpt-6-sol"
	gpt6.Tools = []messages.ToolSpec{{Name: "f"}}
	o = call(t.Context(), p, gpt6)
	check(t, o, want{class: model.InvalidRequest, detail: "Responses API"})
}
