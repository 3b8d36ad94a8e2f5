package runner

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// maxReply bounds the text, the reasoning and the tool calls of one reply together, in bytes. It is about a million tokens,
// several times what a model writes at once.
const maxReply = 4 << 20

// replySize counts a reply while it comes, so that one without end is given up before it is held in memory. A provider
// bounds what it reads, of which most may be framing; this bounds what a run keeps, whatever the provider is.
type replySize int

// add counts a piece. The error, a *model.Error that is not retryable, says that the reply is too large.
func (s *replySize) add(d *model.Delta) error {
	switch {
	case d.Reset:
		*s = 0
	case d.Call != nil:
		*s += replySize(len(d.Call.Arguments))
	case d.Reply != nil: // all of it once more, and what no piece has shown
		*s = sizeOf(d.Reply.Message.Content)
	default:
		*s += replySize(len(d.Text) + len(d.Reasoning))
	}
	if *s <= maxReply {
		return nil
	}
	return &model.Error{
		Class:  model.ReplyTooLarge,
		Detail: fmt.Sprintf("its text, reasoning and tool calls are together larger than %d bytes", maxReply),
		Hint:   "ask for a shorter answer, or set the agent's maxTokens",
	}
}

func sizeOf(content []messages.Block) (n replySize) {
	for i := range content {
		b := &content[i]
		n += replySize(len(b.Text))
		if r := b.Reasoning; r != nil {
			n += replySize(len(r.Text) + len(r.Signature) + len(r.Opaque))
		}
		if c := b.ToolCall; c != nil {
			n += replySize(len(c.ID) + len(c.Name) + len(c.Arguments))
		}
	}
	return n
}
