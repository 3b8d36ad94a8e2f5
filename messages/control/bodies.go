package control

import "encoding/json"

// Bodies of requests over HTTP, where they are not those over NATS: the run or the batch is in the path.

// Reason is the body of a cancel.
type Reason struct {
	Reason string `json:"reason,omitempty"` // it is shown to everyone who watches, 1024 bytes at most
}

// Fork is the body of a fork.
type Fork struct {
	At       int    `json:"at"`                 // the first step that is made anew, from 1
	Agent    string `json:"agent,omitempty"`    // whose definition holds from then on
	Revision uint64 `json:"revision,omitempty"` // of the agent; default: as it is now
	Model    string `json:"model,omitempty"`    // in place of the agent's models
	NewID    string `json:"newId,omitempty"`    // of the new run
}

// Steer is the body of a message to a run.
type Steer struct {
	Message string `json:"message"` // 64 KiB at most
	By      string `json:"by,omitempty"`
	// ID makes it safe to repeat, like the header Idempotency-Key: the same message under the same id counts once.
	ID string `json:"id,omitempty"`
}

// Opinion is the body of feedback on a run: a score, a comment or labels.
type Opinion struct {
	Score   *float64          `json:"score,omitempty"` // -1 (bad) to 1 (good)
	Comment string            `json:"comment,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Step    int               `json:"step,omitempty"` // that it is about; absent: the whole run
	By      string            `json:"by,omitempty"`
	ID      string            `json:"id,omitempty"` // makes it safe to repeat, like the header Idempotency-Key
}

// Reply is the body of an answer to the question that a run waits with.
type Reply struct {
	Call string `json:"call,omitempty"` // whose question it is; absent: whatever is asked now
	Text string `json:"text,omitempty"`
	Deny bool   `json:"deny,omitempty"` // there is no answer: the call fails with the text, the budget ends
	By   string `json:"by,omitempty"`
}

// RenderRequest is what a prompt is filled in with.
type RenderRequest struct {
	Version        uint64          `json:"version,omitempty"` // default: the newest
	Vars           json.RawMessage `json:"vars,omitempty"`    // an object
	ThrowOnMissing bool            `json:"throwOnMissing,omitempty"`
}
