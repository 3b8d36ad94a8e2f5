package anthropic

import "encoding/json"

// body is a request of the Messages API: https://docs.anthropic.com/en/api/messages.
type body struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	System       []block       `json:"system,omitempty"`
	Tools        []tool        `json:"tools,omitempty"`
	Messages     []turn        `json:"messages"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	Temperature  *float64      `json:"temperature,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	Stream       bool          `json:"stream"`
}

// Roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// turn is a message of the conversation.
type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// Kinds of blocks that a request alone has.
const (
	imageBlock    = "image"
	documentBlock = "document"
	resultBlock   = "tool_result"
)

// block is a part of a message. Which fields it has depends on its type.
type block struct {
	Type         string        `json:"type"`
	Text         string        `json:"text,omitempty"`     // of a text, never empty
	Source       *source       `json:"source,omitempty"`   // of an image or a document
	Title        string        `json:"title,omitempty"`    // of a document
	Thinking     *string       `json:"thinking,omitempty"` // of thinking, with Signature; may be empty
	Signature    string        `json:"signature,omitempty"`
	Data         string        `json:"data,omitempty"` // of redacted thinking
	ID           string        `json:"id,omitempty"`   // of a tool's use, with Name and Input
	Name         string        `json:"name,omitempty"`
	Input        any           `json:"input,omitempty"`
	ToolUseID    string        `json:"tool_use_id,omitempty"` // of a tool's result, with Content and IsError
	Content      []block       `json:"content,omitempty"`
	IsError      bool          `json:"is_error,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

// source is what an image or a document is: an address, or bytes in base64.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// cacheControl marks the end of what is to be cached.
type cacheControl struct {
	Type string `json:"type"`
}

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens"`
}

type outputConfig struct {
	Format outputFormat `json:"format"`
}

type outputFormat struct {
	Type   string         `json:"type"`
	Schema map[string]any `json:"schema"`
}

func said(s string) block { return block{Type: textBlock, Text: s} }
