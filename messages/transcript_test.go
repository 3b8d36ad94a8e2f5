package messages_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// The calls of a plan's steps are said too, though no reply has them.
func TestSaidInARunWithAPlan(t *testing.T) {
	t.Parallel()
	e := record.Entry{Seq: 7, Records: []record.Record{
		&record.ToolStarted{Step: 1, StepID: "a", Call: messages.ToolCall{ID: "a", Name: "look", Arguments: `{}`}},
		&record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "b", Name: "look", Arguments: `{}`}}, // its reply has it
		&record.ToolReturned{Step: 1, Result: messages.ToolResult{CallID: "a", Content: messages.TextContent("seen")}},
	}}
	var got []string
	for at, m := range record.Said(&e) {
		got = append(got, at.String()+" "+string(m.Role))
	}
	noDiff(t, "said", []string{"7.1 assistant", "7.2 tool"}, got)
}

// A message that is too long is shortened to fit, whatever its texts are, and says so.
func TestTranscriptMessageFits(t *testing.T) {
	t.Parallel()
	var many []messages.Block
	for range 300 {
		many = append(many, messages.Block{ToolCall: &messages.ToolCall{ID: "c", Name: "t", Arguments: strings.Repeat("\x01", 900)}})
	}
	for name, content := range map[string][]messages.Block{
		"one text": messages.TextContent(strings.Repeat("\x01", 1<<20)), "many calls": many,
		"a result": {{ToolResult: &messages.ToolResult{Content: messages.TextContent(strings.Repeat("x", 1<<20))}}},
		"an image": {{Image: &messages.Image{MediaType: "image/png", Data: make([]byte, 1<<20)}}},
	} {
		m := messages.TranscriptMessage{At: "1.1", Message: messages.Message{Role: messages.RoleTool, Content: content}}
		m.Fit(32 << 10)
		if b := encode(t, m); len(b) > 32<<10 || m.Truncated != (name != "an image") {
			t.Errorf("%s: %d bytes, truncated %v", name, len(b), m.Truncated)
		}
	}
}
