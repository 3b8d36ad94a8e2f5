package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// JSONProtocol is the planner of models without tool calling: each reply is one JSON object that makes one call or
// ends the run. Nothing of a reply that is not strictly of that form is ever run.
type JSONProtocol struct{}

var _ Interpreter = JSONProtocol{}

const (
	invalidFormat = "Invalid model output format"
	tooManySteps  = "Exceeded max iterations"
)

// protocolPrompt is the built-in text of messages.PromptProtocol.
const protocolPrompt = `You work in steps. Each of your replies is exactly one JSON object and nothing else: no text around it, no code fence.

To use a tool, reply
{"type": "tool", "name": "NAME OF THE TOOL", "args": {ITS ARGUMENTS}}
The result comes as the next message, and you reply again. One tool at a time.

When you are done, reply
{"type": "final", "content": "YOUR ANSWER"}

The tools, each with the JSON Schema of its args:
` + messages.PlaceTools

// Plan implements Planner.
func (JSONProtocol) Plan(s *State) Action {
	step, end := next(s, func() string { return tooManySteps })
	if end != nil {
		return end
	}
	a := &CallModel{Step: step, Messages: protocolChat(s)}
	if s.Continued == 0 { // the rest of a reply is no object
		a.Format = &Format{Name: "step"}
	}
	return a
}

// Interpret implements Interpreter.
func (JSONProtocol) Interpret(s *State, text string, m messages.Message) Reading {
	if len(m.Calls()) > 0 {
		return broken("a tool is called in the text of the reply, not natively")
	}
	r, err := parseProtocol(text)
	if err != nil {
		return broken(strict.Clip(err.Error(), maxWrong))
	}
	if r.Type == "tool" {
		args := string(r.Args)
		if args == "" {
			args = "{}"
		}
		return Reading{Calls: []messages.ToolCall{{ID: fmt.Sprintf("json-%d", s.Step), Name: *r.Name, Arguments: args}}}
	}
	var answer string
	if err := strict.Decode(r.Content, &answer); err == nil {
		return Reading{Answer: answer}
	}
	if len(s.OutputSchema()) == 0 {
		return broken(`"content" must be a string`)
	}
	return Reading{Answer: string(r.Content)}
}

func broken(why string) Reading {
	return Reading{Broken: invalidFormat, Remedy: ": " + why + ". Reply with exactly one JSON object, " +
		`{"type": "tool", "name": …, "args": {…}} or {"type": "final", "content": "…"}, and nothing else.`}
}

// protocolReply is a reply of the protocol.
type protocolReply struct {
	Type    string          `json:"type"`
	Name    *string         `json:"name,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
}

// parseProtocol reads a reply, strictly: unknown or doubled fields and fields of the other type are errors.
func parseProtocol(text string) (*protocolReply, error) {
	var r protocolReply
	if err := strict.Decode([]byte(strings.TrimSpace(text)), &r); err != nil {
		return nil, fmt.Errorf("not the JSON that is expected: %w", err)
	}
	switch r.Type {
	case "tool":
		if r.Name == nil || *r.Name == "" || r.Content != nil {
			return nil, &messages.FieldError{Field: "name", Reason: `a reply of type "tool" has a name, args and nothing else`}
		}
	case "final":
		if r.Content == nil || r.Name != nil || r.Args != nil {
			return nil, &messages.FieldError{Field: "content", Reason: `a reply of type "final" has a content and nothing else`}
		}
	default:
		return nil, &messages.FieldError{Field: "type", Reason: "must be tool or final"}
	}
	return &r, nil
}

// protocolChat is the conversation as the model sees it: calls are the text that it wrote, and results are messages
// of the user.
func protocolChat(s *State) []messages.Message {
	system, rest := "", s.Transcript
	if rest[0].Role == messages.RoleSystem {
		system, rest = rest[0].Text(), rest[1:]
	}
	out := make([]messages.Message, 1, len(rest)+1)
	out[0] = messages.Message{
		Role: messages.RoleSystem, Content: messages.TextContent(paragraphs(system, protocolText(s), contentPrompt(s))),
	}
	var calls []messages.ToolCall
	for _, m := range rest {
		switch m.Role {
		case messages.RoleAssistant:
			calls = m.Calls()
			m = withCalls(m, nil)
		case messages.RoleTool:
			m = observation(calls, m.Content)
		case messages.RoleSystem, messages.RoleUser:
		}
		out = append(out, m)
	}
	return out
}

func observation(calls []messages.ToolCall, results []messages.Block) messages.Message {
	m := messages.Message{Role: messages.RoleUser}
	for i, b := range results {
		head := "Result of " + calls[i].Name + ":\n"
		if b.ToolResult.IsError {
			head = "Error of " + calls[i].Name + ":\n"
		}
		m.Content = append(append(m.Content, messages.Block{Text: head}), b.ToolResult.Content...)
	}
	return m
}

func protocolText(s *State) string {
	text := protocolPrompt
	if own := s.Agent.Prompts[messages.PromptProtocol]; own != "" {
		text = own
	}
	var list strings.Builder
	for i, t := range s.Tools {
		if i > 0 {
			list.WriteByte('\n')
		}
		fmt.Fprintf(&list, "- %s: %s\n  %s", t.Name, t.Description, t.InputSchema)
	}
	if len(s.Tools) == 0 {
		list.WriteString("(none)")
	}
	return strings.ReplaceAll(text, messages.PlaceTools, list.String())
}

func contentPrompt(s *State) string {
	schema := s.OutputSchema()
	if len(schema) == 0 {
		return ""
	}
	return "In the final reply, the content is not a string but a JSON object that fits this JSON Schema:\n" + string(schema)
}
