package runner

import "github.com/longshore-run/longshore/messages"

// LiveReply shows a reply while it is written. It takes secrets out itself. One goroutine uses it; none of its
// methods waits for anything outside.
type LiveReply interface {
	// Add goes on with the reply.
	Add(kind messages.LiveKind, text string)
	// AddCall goes on with a tool call of the reply.
	AddCall(id, name, args string)
	// Reset says that the reply begins anew.
	Reset()
	// Retry says that a try has failed and what follows. The text holds no secrets.
	Retry(text string)
	// Close ends the reply; whole reports whether all of it was added. Nothing is called after it.
	Close(whole bool)
}

// live is where the reply of a step is shown.
func (x *modelWork) live(step int) LiveReply {
	if x.cfg.Live == nil || step == 0 { // 0: a summary, which is not shown
		return unseen{}
	}
	return x.cfg.Live(x.run, step, x.journal.state.Claims)
}

type unseen struct{}

func (unseen) Add(messages.LiveKind, string)  {}
func (unseen) AddCall(string, string, string) {}
func (unseen) Reset()                         {}
func (unseen) Retry(string)                   {}
func (unseen) Close(bool)                     {}
