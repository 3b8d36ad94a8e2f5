package control

import (
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/memory"
)

// Bodies of requests over HTTP, where they are not those over NATS: the run or the batch is in the path.

// Reason is the body of a cancel.
type Reason struct {
	Reason string `json:"reason,omitempty"` // it is shown to everyone who watches, 1024 bytes at most
}

// Fork is the body of a fork.
type Fork struct {
	At       int    `json:"at"`                 // the first step that is made anew, from 1
	Call     string `json:"call,omitempty"`     // of that step, which waited for a person: the step is kept until then, and the fork asks again
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

// PutItems is the body of a write to long-term memory.
type PutItems struct {
	Items []memory.Item `json:"items"`
}

// RenderRequest is what a prompt is filled in with.
type RenderRequest struct {
	Version        uint64          `json:"version,omitempty"` // default: the newest
	Vars           json.RawMessage `json:"vars,omitempty"`    // an object
	ThrowOnMissing bool            `json:"throwOnMissing,omitempty"`
}

// Verdict is the body of a decision about what a run waits with.
type Verdict struct {
	Call     string `json:"call,omitempty"`   // that waits; absent: the run asks whether it may go beyond its budget
	Decision string `json:"decision"`         // approve or deny
	Hash     string `json:"hash,omitempty"`   // of the arguments that were seen: with others it does not count
	Reason   string `json:"reason,omitempty"` // recorded, and told to the agent when it is a denial
	By       string `json:"by,omitempty"`     // who decides; recorded
	// Arguments, an object, take the place of those of the call that is approved, where its agent or the rule that asks allows it.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// BatchRetry is the body of a retry.
type BatchRetry struct {
	ID     string `json:"id,omitempty"`     // of the new batch; with one, the request may be made again
	Failed bool   `json:"failed,omitempty"` // only lines that failed, not those that were cancelled or expired
}

// What is asked over HTTP alone, where the API makes one answer of several requests.

// Submitted answers a submit.
type Submitted struct {
	Tenant string                `json:"tenant"`
	ID     string                `json:"id"`
	Status messages.Status       `json:"status"`           // queued, or how it ended
	Result *messages.AgentResult `json:"result,omitempty"` // when it was waited for and came in time
}

// TaskState is a task and, once it has ended, its result.
type TaskState struct {
	RunStatus
	Result *messages.AgentResult `json:"result,omitempty"`
}

// RunList is what was found.
type RunList struct {
	Runs       []*RunSummary `json:"runs"`                 // newest first
	Next       string        `json:"next,omitempty"`       // the id to continue after; empty: that was all
	Found      int           `json:"found"`                // that fit, beyond the limit too
	Forgotten  int           `json:"forgotten"`            // older runs that were not examined, or not counted
	MoreQueued bool          `json:"moreQueued,omitempty"` // there are queued runs that were not looked at
	IndexLag
}

// CancelRuns asks the runs that fit to stop.
type CancelRuns struct {
	RunsRequest
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// BulkCancel answers a cancel of many tasks.
type BulkCancel struct {
	Cancelled []string          `json:"cancelled"`        // these were asked to stop
	Failed    map[string]string `json:"failed,omitempty"` // these were not, and why
	More      bool              `json:"more,omitempty"`   // there are more: ask again
}

// AgentRequest names an agent.
type AgentRequest struct {
	Name string `json:"name"`
}

// AgentList is all agents.
type AgentList struct {
	Agents []messages.Definition `json:"agents"`
}

// RetryRequest makes a new batch of the lines of one that has ended.
type RetryRequest struct {
	Tenant string `json:"tenant,omitempty"`
	Batch  string `json:"batch"` // that has ended
	BatchRetry
}

// KeyOrder says what an API key is to be.
type KeyOrder struct {
	Tenant  string       `json:"tenant,omitempty"` // whose key it is, or * for all tenants; default: that of the request
	Roles   []AccessRole `json:"roles"`
	Name    string       `json:"name,omitempty"`    // for people
	Expires *time.Time   `json:"expires,omitempty"` // it is refused from then on; absent: it is valid until it is revoked
}

// NewKey is an API key that was made.
type NewKey struct {
	Key string `json:"key"` // shown this once: the fleet keeps its hash
	APIKey
}

// Hashes is the body of a question for contents.
type Hashes struct {
	Hashes []string `json:"hashes"` // at most 1000
}

// Contents is the body of an upload.
type Contents struct {
	Contents []Uploaded `json:"contents"` // at most 1000
}
