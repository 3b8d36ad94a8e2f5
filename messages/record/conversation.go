package record

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/scratchpad"
)

// SessionGranted ends the park of a run whose turn in its session has come, or that was given a permit of a semaphore.
type SessionGranted struct {
	Park uint64 `json:"park"` // sequence of the Parked entry
}

// Recalled begins the turn of a run in its session: the conversation so far, which no longer changes for this run.
type Recalled struct {
	From     string             `json:"from,omitempty"`     // the run whose end it reflects; empty: the conversation begins
	Messages []messages.Message `json:"messages,omitempty"` // oldest first
	// Older is how many of the Messages, from the first, are beyond the agent's window: their summary takes their place.
	Older   int `json:"older,omitempty"`
	Dropped int `json:"dropped,omitempty"` // older messages that are left out
	// Used are the tools whose results may be in the conversation, sorted: also in the words of answers.
	Used []string `json:"used,omitempty"`
	// Scratchpad is that of the session. The run begins with it if its agent says so; else it leaves it to the next run as it is.
	Scratchpad []scratchpad.Note `json:"scratchpad,omitempty"`
}

// Summarised is the paid model call that sums up the older part of a conversation. Without a text the call failed for
// good, and the older part is left out.
type Summarised struct {
	Text     string             `json:"text,omitempty"`
	Error    *messages.RunError `json:"error,omitempty"`
	Usage    messages.Usage     `json:"usage"`
	Provider string             `json:"provider,omitempty"`
	Model    string             `json:"model,omitempty"`
	Millis   int64              `json:"millis,omitempty"`
	Cached   bool               `json:"cached,omitempty"`
	Cost     *float64           `json:"cost,omitempty"` // as in ModelReplied
}

// Kind implements Record.
func (*SessionGranted) Kind() Kind { return KindSessionGranted }

// Kind implements Record.
func (*Recalled) Kind() Kind { return KindRecalled }

// Kind implements Record.
func (*Summarised) Kind() Kind { return KindSummarised }

// Lined says that the run is about to ask for permits of semaphores. It gives them back when it parks or ends.
type Lined struct {
	Semaphores []string `json:"lines"`
}

// Kind implements Record.
func (*Lined) Kind() Kind { return KindLined }
