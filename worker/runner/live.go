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

// LiveOutput streams what a program of a tool call writes while it runs, and redacts secrets. For one goroutine at a time; its
// methods do not block.
type LiveOutput interface {
	// Add appends.
	Add(text []byte)
	// Close ends it; ended says whether the program has ended by itself or was stopped for its limits. No method is called after it.
	Close(ended bool)
}

// output returns the LiveOutput of a call; nil: it is not shown.
func (x *toolWork) output(c messages.ToolCall) LiveOutput {
	s := x.journal.state
	if x.cfg.LiveOutput == nil || x.rules.withholds(s.Agent) {
		return nil
	}
	return x.cfg.LiveOutput(x.run, s.Step, s.Claims, c, s.Head.Shown)
}

type unseen struct{}

func (unseen) Add(messages.LiveKind, string)  {}
func (unseen) AddCall(string, string, string) {}
func (unseen) Reset()                         {}
func (unseen) Retry(string)                   {}
func (unseen) Close(bool)                     {}
