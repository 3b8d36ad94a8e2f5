package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// event is one event of a stream, as far as it is read. The SDK's union takes 8 KiB and four times as long for each,
// and holds its tongue about types that are wrong.
type event struct {
	Type    string          `json:"type"`
	Index   wireIndex       `json:"index"`
	Message message         `json:"message"`       // message_start
	Block   wireBlock       `json:"content_block"` // content_block_start
	Delta   wireDelta       `json:"delta"`         // content_block_delta, message_delta
	Usage   wireUsage       `json:"usage"`         // message_delta
	Error   json.RawMessage `json:"error"`         // error
}

// wireIndex is -1 when it is no index.
type wireIndex int

// UnmarshalJSON implements json.Unmarshaler.
func (i *wireIndex) UnmarshalJSON(data []byte) error {
	n, err := strconv.Atoi(string(data))
	if *i = wireIndex(n); err != nil {
		*i = -1
	}
	return nil
}

// message is the head of a streamed reply, or a whole reply that is not streamed.
type message struct {
	Model      string            `json:"model"`
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
	Usage      wireUsage         `json:"usage"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`      // text
	Thinking  string          `json:"thinking"`  // thinking
	Signature string          `json:"signature"` // thinking
	Data      string          `json:"data"`      // redacted_thinking
	ID        string          `json:"id"`        // tool_use
	Name      string          `json:"name"`      // tool_use
	Input     json.RawMessage `json:"input"`     // tool_use
}

type wireDelta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`         // text_delta
	PartialJSON string `json:"partial_json"` // input_json_delta
	Thinking    string `json:"thinking"`     // thinking_delta
	Signature   string `json:"signature"`    // signature_delta
	StopReason  string `json:"stop_reason"`  // of message_delta
}

type wireUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// Kinds of events.
const (
	messageStart = "message_start"
	blockStart   = "content_block_start"
	blockDelta   = "content_block_delta"
	messageDelta = "message_delta"
	messageStop  = "message_stop"
	errorEvent   = "error"
)

// Kinds of blocks and deltas.
const (
	textBlock      = "text"
	thinkingBlock  = "thinking"
	redactedBlock  = "redacted_thinking"
	toolBlock      = "tool_use"
	textDelta      = "text_delta"
	inputDelta     = "input_json_delta"
	thinkingDelta  = "thinking_delta"
	signatureDelta = "signature_delta"
)

// parseEvent reads the data of an event. In what has a type that is not known, fields may be of any type.
func parseEvent(name string, data []byte) (*event, error) {
	var e event
	err := json.Unmarshal(data, &e)
	if e.Type == "" {
		e.Type = name
		if e.Error != nil {
			e.Type = errorEvent
		}
	}
	if err != nil && (!e.foreign() || !inField(err)) {
		return nil, fmt.Errorf("event %.40q: %w", e.Type, err)
	}
	return &e, nil
}

// inField reports whether only a field that says nothing of what the event is has a wrong type: the rest has been read.
func inField(err error) bool {
	var drift *json.UnmarshalTypeError
	return errors.As(err, &drift) && drift.Field != "" && drift.Field != "type"
}

// parseBlock reads a block of a reply that is not streamed.
func parseBlock(data []byte) (*wireBlock, error) {
	var b wireBlock
	if err := json.Unmarshal(data, &b); err != nil && (knownBlock(b.Type) || !inField(err)) {
		return nil, fmt.Errorf("block %.40q: %w", b.Type, err)
	}
	return &b, nil
}

// foreign reports whether the event is of no use to us.
func (e *event) foreign() bool {
	switch e.Type {
	case blockStart:
		return !knownBlock(e.Block.Type)
	case blockDelta:
		return !knownDelta(e.Delta.Type)
	case messageStart, messageDelta:
		return false
	default: // the others have no fields that count, but the error, which takes any
		return true
	}
}

func knownBlock(t string) bool {
	return t == textBlock || t == thinkingBlock || t == redactedBlock || t == toolBlock
}

func knownDelta(t string) bool {
	return t == textDelta || t == inputDelta || t == thinkingDelta || t == signatureDelta
}
