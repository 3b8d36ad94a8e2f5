package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// request is the client's form of r. Temperature is missing from it: see patch.
func request(r model.Request) (api.ChatCompletionRequest, error) {
	out := api.ChatCompletionRequest{
		Model: r.Model, Stream: true, StreamOptions: &api.StreamOptions{IncludeUsage: true},
	}
	if reasons(r.Model) {
		out.MaxCompletionTokens = r.MaxTokens
	} else {
		out.MaxTokens = r.MaxTokens //nolint:staticcheck // deprecated by OpenAI, and all that most other servers know
	}
	for i := range r.Messages {
		out.Messages = append(out.Messages, chat(&r.Messages[i])...)
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		schema := t.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(schema) {
			return out, &model.Error{
				Class: model.InvalidRequest, Detail: fmt.Sprintf("the input schema of tool %q is not JSON", t.Name),
			}
		}
		out.Tools = append(out.Tools, api.Tool{
			Type:     api.ToolTypeFunction,
			Function: &api.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema},
		})
	}
	return out, nil
}

// reasons tells whether OpenAI takes max_completion_tokens alone for a model.
func reasons(name string) bool {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// chat is one message of ours in the protocol's form: results of tools are a message each.
func chat(m *messages.Message) []api.ChatCompletionMessage {
	var out []api.ChatCompletionMessage
	for _, b := range m.Content {
		if b.ToolResult == nil {
			continue
		}
		text := messages.Message{Content: b.ToolResult.Content}
		out = append(out, api.ChatCompletionMessage{
			Role: api.ChatMessageRoleTool, ToolCallID: b.ToolResult.CallID, Content: text.Text(),
		})
	}
	if m.Role == messages.RoleTool {
		return out
	}
	msg := api.ChatCompletionMessage{Role: string(m.Role), Content: m.Text()}
	for _, c := range m.Calls() {
		msg.ToolCalls = append(msg.ToolCalls, api.ToolCall{
			ID: c.ID, Type: api.ToolTypeFunction,
			Function: api.FunctionCall{Name: c.Name, Arguments: echo(c.Arguments)},
		})
	}
	return append(out, msg)
}

// echo is what a model is shown of the arguments that it wrote. Servers parse them again and answer with an error
// when they are no JSON object, so a text that is none is wrapped in one.
func echo(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &object) == nil && object != nil {
		return args
	}
	wrapped, err := json.Marshal(map[string]string{"invalid_arguments": args})
	if err != nil {
		return "{}" // a string always encodes
	}
	return string(wrapped)
}

// patch adds to an encoded request what the client leaves out when it is zero: the content of a message, which strict
// servers want even when it is empty, and the temperature.
func patch(body []byte, temperature *float64) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(fields["messages"], &list); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	for _, m := range list {
		if _, ok := m["content"]; !ok {
			m["content"] = json.RawMessage(`""`)
		}
	}
	var err error
	if fields["messages"], err = json.Marshal(list); err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	if temperature != nil {
		if fields["temperature"], err = json.Marshal(*temperature); err != nil {
			return nil, fmt.Errorf("write temperature: %w", err)
		}
	}
	return json.Marshal(fields)
}
