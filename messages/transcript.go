package messages

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Transcript is what was said in a run, oldest first: the instructions and the task, what the session recalled, what the
// model replied, what tools answered and what people told the run. It is a page.
type Transcript struct {
	Messages []TranscriptMessage `json:"messages"`
	Next     string              `json:"next,omitempty"` // ask for those after this one; absent: there are no more
}

// TranscriptMessage is one message.
type TranscriptMessage struct {
	At   string    `json:"at"`   // its place, to continue after
	Time time.Time `json:"time"` // of the entry of the log that has it
	Step int       `json:"step,omitempty"`
	Message

	Recalled  bool `json:"recalled,omitempty"`  // it is of an earlier run of the session
	Truncated bool `json:"truncated,omitempty"` // its texts are shortened; the log has the whole
}

// TranscriptPlace is where a message of a transcript is: the entry, and its number in that, from 1.
type TranscriptPlace struct {
	Seq uint64
	N   int
}

func (p TranscriptPlace) String() string {
	return strconv.FormatUint(p.Seq, 10) + "." + strconv.Itoa(p.N)
}

// ParseTranscriptPlace reads what String wrote; empty is before the first. The error is a *FieldError.
func ParseTranscriptPlace(s string) (p TranscriptPlace, err error) {
	if s == "" {
		return p, nil
	}
	seq, n, _ := strings.Cut(s, ".")
	if p.Seq, err = strconv.ParseUint(seq, 10, 63); err == nil {
		p.N, err = strconv.Atoi(n)
	}
	if err != nil || p.N < 1 || p.Seq == 0 {
		return TranscriptPlace{}, &FieldError{Field: "after", Reason: "must be the next, or the at of a message, of a transcript"}
	}
	return p, nil
}

// Fit shortens the message to n bytes as JSON, at most. Images and files are described, and what only a provider can read is left out.
func (m *TranscriptMessage) Fit(n int) {
	whole := m.Content
	for limit := n; ; limit /= 2 {
		var cut bool
		m.Content, cut = shownBlocks(whole, limit)
		m.Truncated = cut
		b, err := json.Marshal(m)
		if err == nil && len(b) <= n {
			return
		}
		if limit == 0 {
			break
		}
	}
	m.Truncated = true
	m.Content = TextContent(fmt.Sprintf("(%d blocks, too many to show)", len(whole)))
}

// shownBlocks are copies of blocks with texts of n bytes at most.
func shownBlocks(in []Block, n int) (out []Block, cut bool) {
	clip := func(s string) string {
		cut = cut || len(s) > n
		return strict.Clip(s, n)
	}
	for _, b := range in {
		switch {
		case b.Image != nil:
			out = append(out, Block{Text: b.Image.Shown()})
		case b.File != nil:
			out = append(out, Block{Text: b.File.Shown()})
		case b.Reasoning != nil:
			out = append(out, Block{Reasoning: &Reasoning{Family: b.Reasoning.Family, Text: clip(b.Reasoning.Text)}})
		case b.ToolCall != nil:
			out = append(out, Block{ToolCall: &ToolCall{ID: clip(b.ToolCall.ID), Name: clip(b.ToolCall.Name), Arguments: clip(b.ToolCall.Arguments)}})
		case b.ToolResult != nil:
			content, inner := shownBlocks(b.ToolResult.Content, n)
			cut = cut || inner
			out = append(out, Block{ToolResult: &ToolResult{CallID: clip(b.ToolResult.CallID), Content: content, IsError: b.ToolResult.IsError}})
		default:
			out = append(out, Block{Text: clip(b.Text)})
		}
	}
	return out, cut
}
