package messages

import (
	"encoding/json"
	"strings"
)

// Role of a message.
type Role string

// Roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role    Role    `json:"role"`
	Content []Block `json:"content"`
}

// Text joins the text blocks of a message.
func (m *Message) Text() string {
	texts, last := 0, ""
	for i := range m.Content {
		if text := m.Content[i].Text; text != "" {
			texts, last = texts+1, text
		}
	}
	if texts < 2 { // nothing to copy
		return last
	}
	var s strings.Builder
	for _, b := range m.Content {
		s.WriteString(b.Text)
	}
	return s.String()
}

// ReasoningText joins what the model thought, as far as it can be read.
func (m *Message) ReasoningText() string {
	var s strings.Builder
	for _, b := range m.Content {
		if b.Reasoning != nil {
			s.WriteString(b.Reasoning.Text)
		}
	}
	return s.String()
}

// Calls are the tool calls of a message, in the model's order.
func (m *Message) Calls() []ToolCall {
	var calls []ToolCall
	for _, b := range m.Content {
		if b.ToolCall != nil {
			calls = append(calls, *b.ToolCall)
		}
	}
	return calls
}

// Block is one part of a message; exactly one field is set.
type Block struct {
	Text       string      `json:"text,omitempty"`
	Image      *Image      `json:"image,omitempty"`
	File       *File       `json:"file,omitempty"` // in the input of a task only
	Reasoning  *Reasoning  `json:"reasoning,omitempty"`
	ToolCall   *ToolCall   `json:"toolCall,omitempty"`
	ToolResult *ToolResult `json:"toolResult,omitempty"`
}

// Reasoning is what a model thought before it answered. It means something to the family of providers that wrote it
// and is never sent to another.
type Reasoning struct {
	Family    string `json:"family"` // Reply.Provider of the reply that holds it
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"` // proves to the provider that Text is its own
	Opaque    string `json:"opaque,omitempty"`    // what only the provider can read, as it wrote it
}

// TextContent is content of one text block.
func TextContent(s string) []Block { return []Block{{Text: s}} }

// ToolCall is a model's wish. Arguments are what the model wrote, which may not be JSON: a consumer that needs
// JSON must check.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolResult answers a ToolCall.
type ToolResult struct {
	CallID  string  `json:"callId"`
	Content []Block `json:"content"` // text and image blocks only
	IsError bool    `json:"isError,omitempty"`
}

// Shown is the text of a result, with a word for each image.
func (r *ToolResult) Shown() string { return shown(r.Content) }

// ToolSpec is what a model is told about a tool, and what a worker needs to know to call it safely.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema 2020-12 of an object
	Effect      Effect          `json:"effect"`
	Destructive bool            `json:"destructive,omitempty"` // a call waits for an approval, unless the agent says otherwise
	// SafeByDefault is of a tool that reaches nothing but the run itself and what people tell it. A worker offers others
	// only where its operator grants them.
	SafeByDefault bool `json:"safeByDefault,omitempty"`
}

// Effect says what running a call twice does.
type Effect string

// Effects. After a crash a call of Read or Idempotent is made again with the same key; a call of Once that had
// begun is reported as unknown and never made again.
const (
	EffectRead       Effect = "read"
	EffectIdempotent Effect = "idempotent"
	EffectOnce       Effect = "once"
)

// StopReason says why a model stopped; derived by us, not taken from the provider.
type StopReason string

// Stop reasons.
const (
	StopEnd           StopReason = "end"
	StopToolCalls     StopReason = "tool_calls"
	StopLength        StopReason = "length"
	StopContentFilter StopReason = "content_filter"
	StopRefusal       StopReason = "refusal"
	StopError         StopReason = "error"
)

// Usage counts tokens. Total is what the provider says, or Input plus Output. Input includes CacheRead and CacheWrite;
// Output includes Reasoning.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"` // of Output
	Total      int64 `json:"total"`
}

// Add returns the sum.
func (u *Usage) Add(v Usage) Usage {
	return Usage{
		u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead,
		u.CacheWrite + v.CacheWrite, u.Reasoning + v.Reasoning, u.Total + v.Total,
	}
}
