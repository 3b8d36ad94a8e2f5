// Package tools defines what a tool is and checks every call before it reaches one. Each family of tools is a leaf
// folder that makes [Tool] values; a [Set] is the choice that a worker offers.
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
	Spec() messages.ToolSpec
	// Call runs it. Arguments fit the schema of Spec. It must end soon after ctx.
	Call(ctx context.Context, c Call) (Result, error)
}

// Timeouter is a Tool with a timeout of its own instead of DefaultTimeout.
type Timeouter interface{ Timeout() time.Duration }

// DefaultTimeout is how long a call may take.
const DefaultTimeout = 30 * time.Second

// Call is all that a tool gets to know.
type Call struct {
	Run       messages.Ref
	ID        string
	Key       string // stable over attempts: hand it to services that deduplicate
	Arguments json.RawMessage
	Workspace *sandbox.Workspace
}

// Result is what the model is told.
type Result struct {
	Content []messages.Block // text blocks
	IsError bool
	Code    messages.Code // of an error; default tool_failed
	// Park, if set, says that the answer comes later: Content does not count, and the run waits.
	Park *Park
}

// Park is a call's wish to wait for something outside.
type Park struct {
	Reason string        // a word: "answer", "approval" …
	For    time.Duration // how long at most; 0: for ever
}

// Text is a Result of one text.
func Text(s string) Result { return Result{Content: messages.TextContent(s)} }

// Failure is a Result that tells the model what went wrong.
func Failure(s string) Result {
	return Result{Content: messages.TextContent(s), IsError: true, Code: messages.CodeToolFailed}
}
