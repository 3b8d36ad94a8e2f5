package messages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Status of a task on the outside.
type Status string

// Statuses.
const (
	StatusQueued    Status = "queued"
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Ended reports whether a status is final.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// AgentResult is how a run ended.
type AgentResult struct { //nolint:recvcheck // short changes its copy
	ID      string `json:"id"`
	Success bool   `json:"success"`
	Result  any    `json:"result"` // a string
	// Output is the answer as the JSON value that it is, of a completed run with an output schema.
	Output       json.RawMessage `json:"output,omitempty"`
	Error        *RunError       `json:"error,omitempty"`
	StartedAt    time.Time       `json:"startedAt"`
	FinishedAt   time.Time       `json:"finishedAt"`
	Status       Status          `json:"status"`
	SessionID    string          `json:"sessionId,omitempty"`
	Steps        int             `json:"steps"`
	Actions      []ActionResult  `json:"actions,omitempty"`
	ModelCalls   []ModelCall     `json:"modelCalls,omitempty"`
	TokenUsage   Usage           `json:"tokenUsage"`
	CostEstimate *float64        `json:"costEstimate"`           // in US dollars; null when a price is unknown
	Below        *Below          `json:"below,omitempty"`        // what the runs below it used, which is in no other field
	MemoryDeltas []MemoryChange  `json:"memoryDeltas,omitempty"` // what its tool calls changed in memories, the first MaxMemoryDeltas
	Summary      string          `json:"summary,omitempty"`      // what was done: by the model, of a completed run with a plan; else by us
	Outputs      []string        `json:"outputs,omitempty"`      // workspace paths of the files that the run wrote, in order
	// Attachments says where the files are: by their path in Outputs, the path below the folder of all workspaces.
	Attachments map[string]string `json:"attachments,omitempty"`
	// Files is what the run left behind, of a run whose files were saved.
	Files       *ResultFiles `json:"files,omitempty"`
	Logs        string       `json:"logs,omitempty"`        // where the run's log is; readable for the dispatcher and workers
	EventStream string       `json:"eventStream,omitempty"` // the subject filter of the run's events
	Provenance  *Provenance  `json:"provenance,omitempty"`
	Aborted     bool         `json:"aborted,omitempty"`
	RetryInfo   *RetryInfo   `json:"retryInfo,omitempty"`
	Metrics     *Metrics     `json:"metrics,omitempty"`
	Diagnostics *Diagnostics `json:"diagnostics,omitempty"`
	Seed        *int64       `json:"seed,omitempty"` // of the task
	// Deterministic: the task has a seed, and no reply was sampled: each is from a script or the reply cache.
	Deterministic bool   `json:"deterministic,omitempty"`
	Cut           string `json:"cut,omitempty"`       // what of a long run this does not repeat; the log has the whole
	Truncated     bool   `json:"truncated,omitempty"` // this is the shortened copy of an event
	// Transcript is what was said, of a result that was asked for with it. It is read from the log, and never stored.
	Transcript *Transcript `json:"transcript,omitempty"`
}

// Calls are the tool calls among the actions.
func (r *AgentResult) Calls() []ActionResult {
	return slices.DeleteFunc(slices.Clone(r.Actions), func(a ActionResult) bool { return a.Type == ActionPlanner })
}

// EndedResult is the result of a run that ended without having been worked to its end.
func EndedResult(run Ref, task *Task, status Status, why *RunError, began, now time.Time) AgentResult {
	r := AgentResult{
		ID: run.Run, Status: status, Error: why, StartedAt: began, FinishedAt: now, SessionID: run.Run,
		EventStream: run.EventFilter(), Aborted: status == StatusCancelled,
	}
	if task != nil && task.Session != "" {
		r.SessionID = task.Session
	}
	r.Error = why.Informed(nil)
	r.Summarise()
	return r
}

// Values of ActionResult.Type.
const (
	ActionTool    = "tool"    // a call
	ActionPlanner = "planner" // what was decided about a plan
)

// ActionPlannerSkip is the name of the action of a plan's step that was skipped; those of the others are a Decision.
const ActionPlannerSkip = "skip"

// ActionResult is one tool call of a run, or one decision about its plan.
type ActionResult struct {
	Step   int             `json:"step"`
	Type   string          `json:"type"`
	CallID string          `json:"callId"` // of a decision: the step of the plan that it is about, if it is one
	Name   string          `json:"name"`   // of the tool, or the decision
	Input  string          `json:"input"`  // the arguments as the model wrote them, or the plan as JSON
	Output string          `json:"output"` // text: what the tool answered, or the reason
	OK     bool            `json:"ok"`
	Code   Code            `json:"code,omitempty"`
	Millis int64           `json:"millis"`
	Meta   json.RawMessage `json:"meta,omitempty"` // what the tool said about its answer: an object
}

// ModelCall is one paid model call of a run.
type ModelCall struct {
	Step     int        `json:"step"`
	Provider string     `json:"provider,omitempty"`
	Model    string     `json:"model,omitempty"`
	Stop     StopReason `json:"stop"`
	Usage    Usage      `json:"usage"`
	Millis   int64      `json:"millis"`
	Cached   bool       `json:"cached,omitempty"` // from the reply cache: nothing was paid
	Cost     *float64   `json:"cost,omitempty"`   // in US dollars; absent: unknown
}

// Provenance says which definition made the result.
type Provenance struct {
	Agent    string       `json:"agent"`
	Revision uint64       `json:"revision"`
	Planner  string       `json:"planner,omitempty"` // json or plan; absent: tools
	Prompts  []PromptUsed `json:"prompts,omitempty"` // stored prompts that went into it
	Models   []string     `json:"models,omitempty"`  // that replied, as provider/model, each once

	Memories []MemoryUsed `json:"memories,omitempty"` // that the run began with, the best first
}

// PromptUsed is a version of a stored prompt.
type PromptUsed struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

// Diagnostics tell what did not go smoothly.
type Diagnostics struct {
	Warnings []string `json:"warnings,omitempty"` // oldest first
	Traces   []string `json:"traces,omitempty"`   // the traceparent of the run's span, when its task came with one
}

// RetryInfo says how often the run was taken over.
type RetryInfo struct {
	Attempts  int    `json:"attempts"`
	LastError string `json:"lastError,omitempty"`
}

// Metrics of a run.
type Metrics struct {
	DurationMs    int64            `json:"durationMs"`
	ToolLatencyMs map[string]int64 `json:"toolLatencyMs,omitempty"` // total by tool
}

// Shorten makes a copy of a result fit an event.
func (r *AgentResult) Shorten(run Ref) {
	var cut bool
	if s, ok := r.Result.(string); ok {
		r.Result, cut = strict.Fit(s, MaxEventText)
	} else if r.Result != nil && strict.Larger(r.Result, MaxEventText) {
		r.Result, cut = nil, true
	}
	if r.Error != nil {
		r.Error = &RunError{Message: strict.Brief(r.Error.Message, MaxEventArgs), Code: r.Error.Code}
	}
	if m := r.Metrics; m != nil && strict.Larger(m.ToolLatencyMs, MaxEventText) {
		r.Metrics, cut = &Metrics{DurationMs: m.DurationMs}, true
	}
	if s, shortened := strict.Fit(r.Summary, MaxEventText); shortened {
		r.Summary, cut = s, true
	}
	if len(r.Outputs) > 0 && strict.Larger(r.Outputs, MaxEventText) {
		r.Outputs, cut = nil, true
	}
	if len(r.MemoryDeltas) > 0 && strict.Larger(r.MemoryDeltas, MaxEventText) {
		r.MemoryDeltas, cut = nil, true
	}
	if len(r.Output) > MaxEventText {
		r.Output, cut = nil, true
	}
	if p := r.Provenance; p != nil && len(p.Memories) > 0 && strict.Larger(p, MaxEventText) {
		rest := *p
		rest.Memories, r.Provenance, cut = nil, &rest, true
	}
	if p := r.Provenance; p != nil && strict.Larger(p, MaxEventText) {
		r.Provenance, cut = &Provenance{Agent: strict.Brief(p.Agent, MaxEventName), Revision: p.Revision, Planner: strict.Brief(p.Planner, MaxEventName)}, true
	}
	r.Truncated = cut || len(r.Actions) > 0 || len(r.ModelCalls) > 0
	// Not the last two, so that an event does not depend on which workers were killed.
	r.Actions, r.ModelCalls, r.Attachments, r.Transcript, r.RetryInfo, r.Diagnostics = nil, nil, nil, nil, nil, nil
	if r.Files != nil && len(r.Files.List) > 0 {
		files := *r.Files
		files.List, r.Files, r.Truncated = nil, &files, true
	}
	if run != (Ref{}) {
		r.EventStream = run.EventFilter()
	}
}

// Bounds of a summary that we write.
const (
	maxSummaryFiles = 5
	maxSummaryWhy   = 1 << 10 // bytes of an error's text
)

// Summarise says in a sentence or two what the run did and how it ended, unless a model has said so already.
func (r *AgentResult) Summarise() {
	if r.Summary != "" {
		return
	}
	var s strings.Builder
	switch r.Status {
	case StatusCompleted:
		s.WriteString("Completed")
	case StatusCancelled:
		s.WriteString("Cancelled")
	default:
		s.WriteString("Failed")
	}
	calls, failed := 0, 0
	for i := range r.Actions {
		if r.Actions[i].Type != ActionTool {
			continue
		}
		if calls++; !r.Actions[i].OK {
			failed++
		}
	}
	if r.Steps == 0 {
		s.WriteString(" before the first step")
	} else {
		fmt.Fprintf(&s, " after %s", plural(r.Steps, "step"))
	}
	if calls > 0 {
		fmt.Fprintf(&s, " and %s", plural(calls, "tool call"))
	}
	if failed > 0 {
		fmt.Fprintf(&s, " (%d failed)", failed)
	}
	if r.Error != nil {
		fmt.Fprintf(&s, ": %s", strict.Clip(r.Error.Message, maxSummaryWhy))
		if r.Error.Code != "" && r.Error.Code != CodeCancelled {
			fmt.Fprintf(&s, " (%s)", r.Error.Code)
		}
	}
	s.WriteString(".")
	if n := len(r.Outputs); n > 0 {
		fmt.Fprintf(&s, " Files written: %s", strings.Join(r.Outputs[:min(n, maxSummaryFiles)], ", "))
		if n > maxSummaryFiles {
			fmt.Fprintf(&s, " and %d more", n-maxSummaryFiles)
		}
		s.WriteString(".")
	}
	r.Summary = s.String()
}

// InWords is what a run did in the words of its model: the summary of a run with a plan, else the answer; empty when it did
// not complete.
func (r *AgentResult) InWords() string {
	text, isText := r.Result.(string)
	planned := r.Provenance == nil || r.Provenance.Planner == PlannerPlan
	switch {
	case isText && text != "" && (r.Summary == "" || !planned):
		return text
	case r.Success && planned:
		return r.Summary
	default:
		return ""
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ChildResult is how a sub-task ended.
type ChildResult struct {
	Agent  string    `json:"agent"`
	Run    string    `json:"run"`
	Status Status    `json:"status"`
	Output string    `json:"output,omitempty"` // of a completed one
	Cut    bool      `json:"cut,omitempty"`    // Output is the beginning of a longer one
	Error  *RunError `json:"error,omitempty"`
	Cost   *float64  `json:"cost,omitempty"` // in US dollars, of it and of the runs below it; absent: unknown
}

// Below is what the runs below a run used, on all levels together.
type Below struct {
	Runs   int     `json:"runs"`
	Cost   float64 `json:"cost"`   // in US dollars, as far as it is known
	Tokens int64   `json:"tokens"` // as Usage.Total counts them
}

// Memories that a run changes.
const (
	MemoryScratchpad = "scratchpad" // its own notes, which end with it or continue in its session
	MemoryLongTerm   = "long-term"  // a collection of its tenant
)

// What is done to a memory.
const (
	MemoryAppend = "append"
	MemoryClear  = "clear"
	MemoryWrite  = "write"
	MemoryDelete = "delete"
)

// MaxMemoryDeltas bounds what a result repeats of the changes of a run. Its events have all of them.
const MaxMemoryDeltas = 64

// MemoryChange is a change that a tool call made to a memory.
type MemoryChange struct {
	Memory  string `json:"memory"`            // "scratchpad" or "long-term"
	Op      string `json:"op"`                // "append" and "clear" of a scratchpad, "write" and "delete" of long-term memory
	Name    string `json:"name,omitempty"`    // of the stream, or of the collection
	ID      string `json:"id,omitempty"`      // of what was added or removed
	Text    string `json:"text,omitempty"`    // what was added; in events and results its beginning
	Bytes   int    `json:"bytes,omitempty"`   // of the whole text
	Removed int    `json:"removed,omitempty"` // by clear and delete
	Evicted int    `json:"evicted,omitempty"` // older entries that made room for it
}

// MemoryWritten is the data of EventMemoryWrite.
type MemoryWritten struct {
	StepID  string         `json:"stepId"`
	CallID  string         `json:"callId,omitempty"`
	Changes []MemoryChange `json:"changes"`
	More    int            `json:"more,omitempty"` // changes that did not fit
}

// MemoryUsed is an item of long-term memory that a run was given, and where it came from.
type MemoryUsed struct {
	ID         string    `json:"id"`
	Collection string    `json:"collection"`
	Score      float64   `json:"score"`              // comparable within one run only
	Run        string    `json:"run,omitempty"`      // that kept it
	Document   string    `json:"document,omitempty"` // that it is a part of
	Part       int       `json:"part,omitempty"`     // of the document, from 1
	Created    time.Time `json:"created,omitzero"`
}

// MemoryRecalled is the data of EventMemoryRecalled.
type MemoryRecalled struct {
	Memories []MemoryShown `json:"memories"`           // the best first
	More     int           `json:"more,omitempty"`     // that the run was given and that did not fit
	LeftOut  int           `json:"leftOut,omitempty"`  // that the run was not given: they would be more than the policy's tokens
	Degraded string        `json:"degraded,omitempty"` // what the search had to leave out, such as vectors
	Error    string        `json:"error,omitempty"`    // why there are none
	Fatal    bool          `json:"fatal,omitempty"`    // the error ends the run
	Millis   int64         `json:"millis"`
}

// MemoryShown is a memory with the beginning of its text.
type MemoryShown struct {
	MemoryUsed

	Text string `json:"text,omitempty"`
}
