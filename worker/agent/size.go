package agent

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// maxConversation bounds the texts that a run holds, in bytes: a worker has them in memory several times over while it
// asks the model and stores the outcome. No model takes as much.
const maxConversation = 8 << 20

// outgrown ends a run whose conversation, with what its open calls brought, is too large; nil: it is not.
func (s *State) outgrown() *Finish {
	if s.size() <= maxConversation {
		return nil
	}
	return outgrown()
}

// outgrown is the end of a run whose conversation is too large.
func outgrown() *Finish {
	return fail(messages.CodeModelContextLength, fmt.Sprintf(
		"the conversation with the results of its calls is larger than %d bytes: let tools return less, or make fewer calls", maxConversation))
}

// tally is the size of the first messages of a list that only grows at its end. It is kept because a run asks for its size at each step,
// and a walk over all that was said would make long runs quadratic.
type tally struct {
	counted      int // messages
	text, images int // bytes
}

// with returns the tally of the whole list.
func (t tally) with(said []messages.Message) tally {
	for i := t.counted; i < len(said); i++ {
		t.text += sizeOf(said[i].Content)
		t.images += imagesOf(said[i].Content)
	}
	t.counted = len(said)
	return t
}

// count takes up what was said since it was called last. What it has not taken up yet is counted by each call of said.
func (s *State) count() {
	s.transcript, s.recalled = s.transcript.with(s.Transcript), s.recalled.with(s.Recalled)
}

// said is the size of the conversation, with what the session recalled.
func (s *State) said() (text, images int) {
	t, r := s.transcript.with(s.Transcript), s.recalled.with(s.Recalled)
	return t.text + r.text, t.images + r.images
}

// size is about how many bytes of text the run holds. It looks at the open calls and the plan anew, which are bounded.
func (s *State) size() int {
	n, _ := s.said()
	if s.Remembered != nil {
		for i := range s.Remembered.Memories {
			n += len(s.Remembered.Memories[i].Text)
		}
	}
	for i := range s.Open {
		n += len(s.Open[i].Call.Arguments)
		if r := s.Open[i].Result; r != nil {
			n += sizeOf(r.Content)
		}
	}
	if s.Plan != nil {
		for i := range s.Plan.Calls {
			n += len(s.Plan.Calls[i].Call.Arguments) + sizeOf(s.Plan.Calls[i].Result.Content)
		}
		for _, step := range s.Plan.Steps {
			n += len(step.Output)
		}
	}
	return n
}

// Bytes is about how many bytes of memory the run takes while it is worked: its texts and images, and what it was given.
func (s *State) Bytes() int64 {
	_, n := s.said()
	n += s.size()
	for i := range s.Open {
		if r := s.Open[i].Result; r != nil {
			n += imagesOf(r.Content)
		}
	}
	if s.Task != nil {
		n += sizeOf(s.Task.Input) + imagesOf(s.Task.Input) + len(s.Task.Context)
	}
	if s.Agent != nil {
		n += len(s.Agent.Instructions)
	}
	for i := range s.Tools {
		n += len(s.Tools[i].Description) + len(s.Tools[i].InputSchema)
	}
	return int64(n)
}

// BytesOf is the same of a request that was planned on this state.
func (s *State) BytesOf(a *CallModel) int64 {
	said := s.tallyOf(a.Messages)
	n := said.text + said.images
	for i := range a.Tools {
		n += len(a.Tools[i].Description) + len(a.Tools[i].InputSchema)
	}
	return int64(n)
}

// tallyOf is the size of messages. Most requests are the transcript itself, which is counted already.
func (s *State) tallyOf(ms []messages.Message) tally {
	var t tally
	if n := s.transcript.counted; n > 0 && n <= len(ms) && &ms[0] == &s.Transcript[0] {
		t = s.transcript
	}
	return t.with(ms)
}

// imagesOf is how many bytes images have.
func imagesOf(blocks []messages.Block) int {
	n := 0
	for i := range blocks {
		if b := &blocks[i]; b.Image != nil {
			n += len(b.Image.Data)
		} else if b.ToolResult != nil {
			n += imagesOf(b.ToolResult.Content)
		}
	}
	return n
}
