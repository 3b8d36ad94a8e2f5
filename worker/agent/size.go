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

// size is about how many bytes of text the run holds.
func (s *State) size() int {
	n := 0
	for _, said := range [][]messages.Message{s.Transcript, s.Recalled} {
		for i := range said {
			n += sizeOf(said[i].Content)
		}
	}
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
