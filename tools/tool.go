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
	// Begin returns an error when the run is another worker's by now, and the call must have no effect. It was asked right
	// before Call. A tool that prepares for a while asks again, right before its effect, and returns the error. It may be nil.
	Begin func() error
}

// Result is what the model is told.
type Result struct {
	Content []messages.Block // blocks of text, or of an image with its bytes; nothing else counts
	IsError bool             // the tool could not do it, and Content says why and what would help
	Code    messages.Code    // of an error; default tool_failed
	Files   []string         // paths in the workspace that the call wrote
	// Meta says more about the answer, for people and programs: the model is not told. It is in the run's result and events,
	// as JSON of 4 KiB at most; what does not fit or is no JSON is left out, and "_leftOut" says how many.
	Meta map[string]any
	// Park, if set, says that the answer comes later: Content does not count, and the run waits.
	Park *Park
}

// Park is a call's wish to wait for something outside.
type Park struct {
	Reason string        // a word: "answer", "approval" …
	For    time.Duration // how long at most; 0: for ever

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
