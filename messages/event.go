package messages

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Event is what the world sees of a run: CloudEvents 1.0 in JSON.
type Event struct {
	SpecVersion     string          `json:"specversion"` // "1.0"
	ID              string          `json:"id"`          // <run>.<sequence>: the same event always has the same
	Source          string          `json:"source"`      // /tenants/<tenant>
	Type            string          `json:"type"`        // longshore.<name>.v1
	Subject         string          `json:"subject"`     // run id
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Sequence        string          `json:"sequence"`              // the run's running number, from 1 without gaps, in decimal
	Traceparent     string          `json:"traceparent,omitempty"` // the run's span, when its task came with a traceparent
	Data            json.RawMessage `json:"data"`
}

// Names of events, in the order of a run's life.
const (
	EventRunQueued          = "run_queued"
	EventRunStarted         = "run_started"
	EventStepStart          = "step_start"
	EventMessageEnd         = "message_end"
	EventToolExecutionStart = "tool_execution_start"
	EventToolExecutionEnd   = "tool_execution_end"
	EventStepEnd            = "step_end"
	EventRunWaiting         = "run_waiting"
	EventRunResumed         = "run_resumed"
	EventCancelRequested    = "cancel_requested"
	EventError              = "error"
	EventTurnEnd            = "turn_end"
	EventRunFinished        = "run_finished"
	EventPlan               = "plan"               // after run_started, and after steps of a plan
	EventBudgetWarning      = "budget_warning"     // anywhere in a step
	EventApprovalRequested  = "approval_requested" // before its run_waiting
	EventApprovalDecided    = "approval_decided"   // before its run_resumed
	EventHookFailed         = "hook_failed"        // anywhere
	EventPolicyViolation    = "policy_violation"   // after what it is about
	EventMemoryWrite        = "memory_write"       // after the tool_execution_end of the call
	EventMemoryRecalled     = "memory_recalled"    // before the first step_start
)

// NameBundle is in the place of the name in the subject of a message that is several events of a run: a JSON array of them, in the order of
// their numbers. It is the name of no event.
const NameBundle = "bundle"

// Bundled reports whether events of a name may come in bundles: those of which runs have many, and which few look for by name.
func Bundled(name string) bool {
	switch name {
	case EventStepStart, EventMessageEnd, EventToolExecutionStart, EventToolExecutionEnd, EventStepEnd, EventMemoryWrite, EventTurnEnd:
		return true
	default:
		return false
	}
}

// Sizes of what an event may show, in bytes as JSON, so that no event exceeds MaxPayload; the log has the whole.
const (
	MaxEventText = 8 << 10
	MaxEventArgs = 1 << 10
	MaxEventName = 256 // what others named: a tool, a call, a model
)

const (
	typePrefix   = "longshore."
	typeSuffix   = ".v1"
	sourcePrefix = "/tenants/"
)

// EventType is the type of our events of a name.
func EventType(name string) string { return typePrefix + name + typeSuffix }

// EventSource is the source of the events of a tenant.
func EventSource(tenant string) string { return sourcePrefix + tenant }

// Name of the event, such as "run_finished"; the whole type when it is not one of ours.
func (e *Event) Name() string {
	name, prefixed := strings.CutPrefix(e.Type, typePrefix)
	name, versioned := strings.CutSuffix(name, typeSuffix)
	if !prefixed || !versioned {
		return e.Type
	}
	return name
}

// Number is the running number; 0 when it cannot be read.
func (e *Event) Number() uint64 {
	n, err := strconv.ParseUint(e.Sequence, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Ref is the run of the event, from source and subject; it may not be valid.
func (e *Event) Ref() Ref {
	tenant, ok := strings.CutPrefix(e.Source, sourcePrefix)
	if !ok {
		return Ref{Run: e.Subject}
	}
	return Ref{tenant, e.Subject}
}

// Data of the events.
type (
	// RunQueued is the data of run_queued.
	RunQueued struct {
		Agent    string            `json:"agent"`
		Priority Priority          `json:"priority"`
		Session  string            `json:"sessionId,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
		Input    string            `json:"input"` // shortened
		QueuedAt time.Time         `json:"queuedAt"`
		By       string            `json:"by,omitempty"` // who submitted it

		Traceparent string `json:"traceparent,omitempty"` // of the task: the span of who submitted it
	}
	// RunStarted is the data of run_started.
	RunStarted struct {
		Agent    string   `json:"agent"`
		Revision uint64   `json:"revision"`
		Model    string   `json:"model,omitempty"`
		Models   []string `json:"models,omitempty"`
		Tools    []string `json:"tools,omitempty"`
		MaxSteps int      `json:"maxSteps"`
		Planner  string   `json:"planner,omitempty"` // json or plan; absent: tools

		ForkedFrom *Origin    `json:"forkedFrom,omitempty"` // steps before that one have no events here
		Parent     *ParentRef `json:"parent,omitempty"`     // the run that delegated to it
	}
	// Step is the data of step_start and step_end.
	Step struct {
		StepID string     `json:"stepId"`
		Step   int        `json:"step"`
		Status StepStatus `json:"status,omitempty"` // step_end only
		Reason string     `json:"reason,omitempty"` // why a plan's step failed or was skipped
	}
	// MessageEnd is the data of message_end.
	MessageEnd struct {
		StepID    string     `json:"stepId"`
		Role      Role       `json:"role"`
		Text      string     `json:"text"`
		Reasoning string     `json:"reasoning,omitempty"` // only when the agent keeps it
		ToolCalls []ToolCall `json:"toolCalls,omitempty"`
		Stop      StopReason `json:"stop"`
		Usage     Usage      `json:"usage"`
		Provider  string     `json:"provider,omitempty"`
		Model     string     `json:"model,omitempty"`
		Millis    int64      `json:"millis"`
		Truncated bool       `json:"truncated,omitempty"` // text, reasoning or calls are shortened
		Cached    bool       `json:"cached,omitempty"`    // from the reply cache: nothing was paid
		Cost      *float64   `json:"cost,omitempty"`      // in US dollars; absent: unknown
		// FirstTokenMillis is how long the call took to its first text or reasoning; absent: there was none.
		FirstTokenMillis int64 `json:"firstTokenMillis,omitempty"`
	}
	// ToolExecution is the data of tool_execution_start and tool_execution_end.
	ToolExecution struct {
		StepID    string `json:"stepId"`
		CallID    string `json:"callId"`
		ToolName  string `json:"toolName"`
		Arguments string `json:"arguments,omitempty"` // start only
		Result    string `json:"result,omitempty"`    // end only
		IsError   bool   `json:"isError,omitempty"`
		Code      Code   `json:"code,omitempty"`
		Millis    int64  `json:"millis,omitempty"`
		Truncated bool   `json:"truncated,omitempty"`

		Meta json.RawMessage `json:"meta,omitempty"` // end only: what the tool said about its result, an object
	}
	// RunWaiting is the data of run_waiting and run_resumed.
	RunWaiting struct {
		Reason string     `json:"reason"`
		CallID string     `json:"callId,omitempty"`
		Until  *time.Time `json:"until,omitempty"`

		Limit    string `json:"limit,omitempty"`    // of the budget, when that is the reason
		Question string `json:"question,omitempty"` // what an answer is wanted to
		Cause    *Cause `json:"cause,omitempty"`    // what went wrong with the model, when that is the reason; it is called again at Until
	}
	// CancelAsked is the data of cancel_requested.
	CancelAsked struct {
		By     string `json:"by,omitempty"`
		Reason string `json:"reason,omitempty"`
	}
	// ErrorData is the data of error: a model call that failed for good.
	ErrorData struct {
		StepID    string `json:"stepId"`
		Message   string `json:"message"`
		Code      Code   `json:"code"`
		Retryable bool   `json:"retryable"`
		Fallback  string `json:"fallback,omitempty"` // what is done instead of failing: "continue", "retry" or "park"
		Provider  string `json:"provider,omitempty"` // that failed last, as "provider/model"
	}
	// TurnEnd is the data of turn_end.
	TurnEnd struct {
		Steps int      `json:"steps"`
		Usage Usage    `json:"usage"`
		Cost  *float64 `json:"cost,omitempty"` // in US dollars; absent: unknown
	}
	// BudgetWarning is the data of budget_warning.
	BudgetWarning struct {
		Limit   string  `json:"limit"`   // modelCalls, toolCalls, tokens, cost or wallTime
		Spent   float64 `json:"spent"`   // calls, tokens, US dollars or seconds
		Allowed float64 `json:"allowed"` // in the same unit
	}
	// HookFailure is the data of hook_failed.
	HookFailure struct {
		On     HookPoint `json:"on"`
		Hook   string    `json:"hook"`
		StepID string    `json:"stepId,omitempty"`
		CallID string    `json:"callId,omitempty"`
		Reason string    `json:"reason"`
		Fatal  bool      `json:"fatal,omitempty"` // it ends the run
	}
	// RunFinished is the data of run_finished.
	RunFinished struct {
		Result  AgentResult `json:"result"`            // shortened
		Webhook bool        `json:"webhook,omitempty"` // the task asks for a POST now
	}
)

// EventDecisionIgnored is the event of a decision that does not count, because it has no signature that the reader trusts.
const EventDecisionIgnored = "decision_ignored"

// DecisionIgnored is the data of decision_ignored.
type DecisionIgnored struct {
	Kind   string `json:"kind"` // cancel_requested, decided or steered
	Reason string `json:"reason"`
}

// StepStatus is how a step ended.
type StepStatus string

// Step statuses.
const (
	StepCompleted StepStatus = "completed"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped"
)

// Names of the events of delegation.
const (
	EventDelegated  = "delegated"   // before its run_waiting
	EventChildEnded = "child_ended" // anywhere after it
)

// ChildRef is a child of a run.
type ChildRef struct {
	Run    string  `json:"run"`
	Agent  string  `json:"agent"`
	Cost   float64 `json:"cost,omitempty"`   // in US dollars, that was set aside for it
	Tokens int64   `json:"tokens,omitempty"` // that were
}

// DelegatedData is the data of delegated.
type DelegatedData struct {
	CallID   string     `json:"callId"`
	Step     int        `json:"step"`
	Number   int        `json:"number"` // of the delegation in its run
	Need     int        `json:"need"`   // so many must complete; all: end
	Children []ChildRef `json:"children"`
}

// ChildEndedData is the data of child_ended.
type ChildEndedData struct {
	Run       string    `json:"run"`
	Number    int       `json:"number"` // of the delegation
	Status    Status    `json:"status"`
	Output    string    `json:"output,omitempty"`
	Truncated bool      `json:"truncated,omitempty"` // the output is
	Error     *RunError `json:"error,omitempty"`
	Cost      *float64  `json:"cost,omitempty"` // in US dollars, of it and of the runs below it; absent: unknown
}

// ParentRef is the run that delegated to another.
type ParentRef struct {
	Run    string `json:"run"`
	CallID string `json:"callId"`
}

// EventSteered is the name of the event that a message to a run has.
const EventSteered = "steered"

// SteeredData is the data of steered.
type SteeredData struct {
	ID        string `json:"id"` // of the message
	By        string `json:"by,omitempty"`
	Message   string `json:"message"`
	Truncated bool   `json:"truncated,omitempty"` // the message is
}

// Cause is why a run waits until its model may be called again: the last error of the call.
type Cause struct {
	Code     Code   `json:"code"`
	Message  string `json:"message"`
	Provider string `json:"provider,omitempty"` // that failed last, as "provider/model"
	Attempt  int    `json:"attempt,omitempty"`  // of the reply that is waited for, from 1: it grows with each wait for it
}

// Text is the cause on one line.
func (c *Cause) Text() string {
	text := strings.TrimSuffix(c.Message, ".")
	if c.Provider != "" && !strings.Contains(text, c.Provider) {
		text = c.Provider + ": " + text
	}
	if c.Code != "" {
		text += " (" + string(c.Code) + ")"
	}
	return text
}

// Shown is the cause as events hold it; nil stays nil.
func (c *Cause) Shown() *Cause {
	if c == nil {
		return nil
	}
	return &Cause{Code: c.Code, Message: strict.Brief(c.Message, MaxEventArgs), Provider: strict.Brief(c.Provider, MaxEventName), Attempt: c.Attempt}
}
