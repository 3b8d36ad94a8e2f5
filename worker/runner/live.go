package runner

import "github.com/longshore-run/longshore/messages"

// LiveReply streams a reply while it is generated, and redacts secrets. Not safe for concurrent use; its methods do not block.
type LiveReply interface {
	// Add appends to the reply.
	Add(kind messages.LiveKind, text string)
	// AddCall appends to a tool call of the reply.
	AddCall(id, name, args string)
	// Reset discards the reply, which starts over.
	Reset()
	// Retry reports a failed attempt and what follows. The text holds no secrets.
	Retry(text string)
	// Close ends the reply; whole says whether it is complete. No method is called after it.
	Close(whole bool)
}

// live returns the LiveReply of a step.
func (x *modelWork) live(step int) LiveReply {
	if x.cfg.Live == nil || step == 0 { // 0: a summary, which is not shown
		return unseen{}
	}
	return x.cfg.Live(x.run, step, x.journal.state.Claims, x.journal.state.Head.Shown)
}

type unseen struct{}

func (unseen) Add(messages.LiveKind, string)  {}
func (unseen) AddCall(string, string, string) {}
func (unseen) Reset()                         {}
func (unseen) Retry(string)                   {}
func (unseen) Close(bool)                     {}
