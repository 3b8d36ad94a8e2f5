// Package tools defines what a tool is and checks every call before it reaches one. Each family of tools is a leaf
// folder that makes [Tool] values; a [Set] is the choice that a worker offers. [Func] makes a Tool of a function with
// typed arguments; package toolstest checks that a Tool keeps its promises.
//
// A tool's failure is data for the model ([Result] with IsError); a Go error is the platform's failure, and the call
// is made again with the same key on another attempt.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/scratchpad"
	"github.com/longshore-run/longshore/sandbox"
)

// Tool does one thing for a model. Safe for concurrent use.
type Tool interface {
	// Spec is always the same.
	Spec() messages.ToolSpec
	// Call does it. Arguments are a JSON object that fits the schema of Spec. Call must end soon after ctx does: who
	// calls waits for it. A Result with IsError is an answer and is never asked for again; an error is not, and the
	// call may be made again with the same key when the tool's effect is read or idempotent.
	Call(ctx context.Context, c Call) (Result, error)
}

// Timeouter is a Tool with a timeout of its own instead of DefaultTimeout. It is more than zero and always the same.
type Timeouter interface{ Timeout() time.Duration }

// Retrier is a Tool whose calls are made again after a Transient result.
type Retrier interface {
	// Retry is always the same.
	Retry() Retry
}

// Retry is how often, and how soon. The time that a call may take bounds all of its attempts together.
type Retry struct {
	Retries int           // after the first attempt
	First   time.Duration // wait before the first of them; each further wait is twice as long
	Most    time.Duration // a wait is never longer
}

// DefaultTimeout is how long a call may take.
const DefaultTimeout = 30 * time.Second

// Call is all that a tool gets to know.
type Call struct {
	Run       messages.Ref       // whose call it is
	ID        string             // of the call, as the model named it; unique in the run's step
	Key       string             // of the call, the same on every attempt: hand it to services that deduplicate
	Arguments json.RawMessage    // a JSON object that fits the tool's schema
	Workspace *sandbox.Workspace // the run's files, only until Call returns; nil in a run without files
	// Timeout, if above 0, is the most that the run's agent gives the call. A Set never waits longer because of it.
	Timeout time.Duration
	// Retries, if not nil, is what the run's agent says in place of what a Retrier says.
	Retries *int
	// Agent is the name of the run's agent.
	Agent string
	// Session is that of the run; empty without one.
	Session string
	// Grants are what the run's agent leaves of what the operator granted. A tool that reaches anything outside keeps to both.
	Grants messages.Grants
	// Memories reports whether the run's agent may reach a collection of long-term memory, of those that the operator grants. It may be nil: each.
	Memories func(collection string) bool
	// Delegate says to whom the run's agent may hand sub-tasks; nil: to no agent.
	Delegate *messages.Delegate
	// Reach returns an error, fit for a model, when the rules of the run forbid a host that is not in the arguments, as hosts.Endpoint
	// writes it. A tool asks before it goes there. It may be nil.
	Reach func(endpoint string) error
	// Redirect is Reach for a host that an answer leads to. It also forbids those to whose calls a person would have to agree. It may be
	// nil.
	Redirect func(endpoint string) error
	// Begin returns an error when the run is another worker's by now, and the call must have no effect. It was asked right
	// before Call. A tool that prepares for a while asks again, right before its effect, and returns the error. It may be nil.
	Begin func() error
	// Again reports whether the call may be made once more after a Transient failure, as the rates of the run's policies have it. A Set
	// asks before each further attempt, and keeps the failure when it may not. It may be nil.
	Again func(context.Context) bool
	// Redact takes secrets out of text. A Set asks it before it cuts a result, for half a secret would not be known as one. It may
	// be nil.
	Redact func(string) string
	// Output takes what a program of the call writes while it runs, to show it to people who watch. It does not wait, and may drop. It
	// is for one goroutine at a time, not called after Call has returned, and may be nil.
	Output func([]byte)
	// Scratchpad holds the run's notes as they are before the call; a copy. What a call changes in it is what Result.Memory says.
	Scratchpad scratchpad.Pad
	// Remember returns what of a text a memory may keep, as the rules of the run have it: all, all but keys and personal data, or
	// nothing, when ok is false. A tool that writes to a memory asks before. It may be nil: all.
	Remember func(text string) (kept string, ok bool)
	// Retain is the longest that a memory may hold what the call writes to a collection, as the rules of the run have it; 0: as long as the call
	// asks. It may be nil.
	Retain func(collection string) time.Duration
}

// Result is what the model is told.
type Result struct {
	Content []messages.Block // blocks of text, or of an image with its bytes; nothing else counts
	IsError bool             // the tool could not do it, and Content says why and what would help
	Code    messages.Code    // of an error; default tool_failed
	Files   []string         // paths in the workspace that the call wrote
	// Transient says of an error that nothing came of the call and that the same call may succeed soon. A Set makes it again
	// where the tool is a Retrier or the agent says so. A tool with the effect once says it only when it is certain.
	Transient bool
	// RetryAfter says of a Transient error how long to wait at least.
	RetryAfter time.Duration
	// Meta says more about the answer, for people and programs: the model is not told. It is in the run's result and events,
	// as JSON of 4 KiB at most; what does not fit or is no JSON is left out, and "_leftOut" says how many.
	Meta map[string]any
	// Memory is what the call changed in memories, at most 64 changes. What it says of the scratchpad takes effect with the result, and not of
	// one that is an error.
	Memory []messages.MemoryChange
	// Park, if set, says that the answer comes later: Content does not count, and the run waits.
	Park *Park
	// Delegation, if set, has the run wait for runs of other agents, and the answer is what came of them: Content does not count.
	Delegation *Delegation
}

// Delegation is a call's wish to hand sub-tasks to other agents.
type Delegation struct {
	Tasks     []Subtask
	Need      int    // so many must complete
	Any       bool   // or all end in any way
	OnFailure string // messages.OnChildReturn (default) or OnChildFail
}

// Subtask is one task of a Delegation.
type Subtask struct{ Agent, Input string }

// Park is a call's wish to wait for something outside.
type Park struct {
	Reason string        // a word: "answer", "approval" …
	For    time.Duration // how long at most; 0: forever

	Question string // what an answer is wanted to, for people; may be empty
}

// Text is a Result of one text.
func Text(s string) Result { return Result{Content: messages.TextContent(s)} }

// Failure is a Result that tells the model what went wrong, in words that it can act on.
func Failure(s string) Result {
	return Result{Content: messages.TextContent(s), IsError: true, Code: messages.CodeToolFailed}
}

// invalid is a Result for arguments or names that no tool should see.
func invalid(s string) *Result {
	return &Result{Content: messages.TextContent(s), IsError: true, Code: messages.CodeInvalidInput}
}
