package record

import (
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Record is one fact in a run's log. A record carries everything that the events derived from it need.
//
// Only the owner writes: *Started *Claimed *StepStarted *ModelReplied *ModelFailed *ToolStarted *ToolReturned *StepEnded
// *Parked *Released *Planned *Finished *BudgetWarned *HookFailed *PolicyApplied *Recalled *Summarised *Lined *Delegated *FilesSaved *MemoryWritten *MemoryRecalled. Control records, which any process may
// append: *CancelRequested *Answered *Decided *Expired *Lost *SessionGranted *Steered *ChildEnded *Withdrawn.
type Record interface{ Kind() Kind }

// Kind names a record on the wire.
type Kind string

// Kinds.
const (
	KindStarted         Kind = "started"
	KindClaimed         Kind = "claimed"
	KindStepStarted     Kind = "step_started"
	KindModelReplied    Kind = "model_replied"
	KindModelFailed     Kind = "model_failed"
	KindToolStarted     Kind = "tool_started"
	KindToolReturned    Kind = "tool_returned"
	KindStepEnded       Kind = "step_ended"
	KindParked          Kind = "parked"
	KindReleased        Kind = "released"
	KindLost            Kind = "lost"
	KindCancelRequested Kind = "cancel_requested"
	KindAnswered        Kind = "answered"
	KindExpired         Kind = "expired"
	KindFinished        Kind = "finished"
	KindPlanned         Kind = "planned"
	KindDecided         Kind = "decided"
	KindBudgetWarned    Kind = "budget_warned"
	KindSessionGranted  Kind = "session_granted"
	KindRecalled        Kind = "recalled"
	KindSummarised      Kind = "summarised"
	KindHookFailed      Kind = "hook_failed"
	KindSteered         Kind = "steered"
	KindLined           Kind = "lined"
	KindPolicyApplied   Kind = "policy_applied"
	KindDelegated       Kind = "delegated"
	KindChildEnded      Kind = "child_ended"
	KindWithdrawn       Kind = "withdrawn"
	KindFilesSaved      Kind = "files_saved"
	KindMemoryWritten   Kind = "memory_written"
	KindMemoryRecalled  Kind = "memory_recalled"
)

// Started pins what the run is. It is the first record of every log.
type Started struct {
	Task     messages.Task       `json:"task"`
	Agent    messages.Definition `json:"agent"`
	Tools    []messages.ToolSpec `json:"tools,omitempty"`
	QueuedAt time.Time           `json:"queuedAt"`
	Raw      []byte              `json:"raw,omitempty"` // the body as it came, of a task that cannot be worked
	// ForkedFrom is set for a fork: a run that begins with the history of another. Its log exists before the run has an owner.
	ForkedFrom *messages.Origin `json:"forkedFrom,omitempty"`
	Prefix     Records          `json:"prefix,omitempty"` // what was kept of that run; it counts as if it followed this record
	Shown      *Shown           `json:"shown,omitempty"`  // what the events of the run may show; nil in logs of earlier versions: all
	Parent     *Parent          `json:"parent,omitempty"` // of a child. Its log too exists before the run has an owner
}

// Claimed makes a worker the owner. After it only that worker may append the owner's records.
type Claimed struct {
	Claim  string `json:"claim"` // random, one per claim: the fence compares it, not the worker's name
	Worker string `json:"worker"`
	Ticket uint64 `json:"ticket"` // the task message: its sequence in TASKS
	// Delivery is how often the message had been delivered. Only a newer delivery of it may take the run from this claim.
	Delivery int    `json:"delivery,omitempty"`
	Resumes  string `json:"resumes,omitempty"` // the reason of the park that this claim ends
	// Tools are those of a run that began on a worker which did not have them.
	Tools []messages.ToolSpec `json:"tools,omitempty"`
}

// StepStarted begins a turn of plan, act, reflect: its model call is made next. With a StepID it begins a step of the
// plan: its tool call is made next, and there is no model call.
type StepStarted struct {
	Step    int              `json:"step"`              // from 1
	StepID  string           `json:"stepId,omitempty"`  // of the plan's step
	Purpose messages.Purpose `json:"purpose,omitempty"` // of the model call
}

// ModelReplied is a paid model call.
type ModelReplied struct {
	Step     int                 `json:"step"`
	Message  messages.Message    `json:"message"`
	Stop     messages.StopReason `json:"stop"`
	Usage    messages.Usage      `json:"usage"`
	Provider string              `json:"provider,omitempty"`
	Model    string              `json:"model,omitempty"`
	Millis   int64               `json:"millis"`           // how long the call took
	Cached   bool                `json:"cached,omitempty"` // from the reply cache: nothing was paid, usage is zero
	Cost     *float64            `json:"cost,omitempty"`   // in US dollars, by the prices of the worker that made the call; nil: a price is unknown
	// FirstTokenMillis is how long the call, its retries included, took to the first text or reasoning of this reply; 0: it has none, or it is not known.
	FirstTokenMillis int64 `json:"firstTokenMillis,omitempty"`
}

// ModelFailed is a model call that failed for good.
type ModelFailed struct {
	Step     int               `json:"step"`
	Error    messages.RunError `json:"error"`
	Fallback string            `json:"fallback,omitempty"` // what is done instead of failing: "continue", "retry" or "park"
	Provider string            `json:"provider,omitempty"` // that failed last, as "provider/model"
}

// ToolStarted is the intent to make a call; it is in the log before the call is made. After a crash a call of
// EffectOnce that has it and no result is reported as unknown.
type ToolStarted struct {
	Step   int               `json:"step"`
	Call   messages.ToolCall `json:"call"`
	StepID string            `json:"stepId,omitempty"` // of the plan's step
	Edited bool              `json:"edited,omitempty"` // its arguments are those of a person, who approved it
}

// ToolReturned is the outcome of a call. A call that was refused has no ToolStarted.
type ToolReturned struct {
	Step   int                 `json:"step"`
	Name   string              `json:"name"`
	Result messages.ToolResult `json:"result"`
	Code   messages.Code       `json:"code,omitempty"` // set when Result.IsError: invalid_input, tool_failed, tool_unknown_outcome …
	Millis int64               `json:"millis"`
	StepID string              `json:"stepId,omitempty"` // of the plan's step
	Files  []string            `json:"files,omitempty"`  // workspace paths that the call wrote
	// Meta is what the tool said about its result, in addition to it: an object of at most MaxMeta bytes. The model is not told.
	Meta json.RawMessage `json:"meta,omitempty"`
	// Embedded is what the call had embedded in long-term memory; nil: nothing.
	Embedded *Embedded `json:"embedded,omitempty"`
}

// StepEnded ends a turn, or a step of the plan. A step that was skipped need not have begun.
type StepEnded struct {
	Step   int                 `json:"step"`
	Status messages.StepStatus `json:"status"`
	StepID string              `json:"stepId,omitempty"` // of the plan's step
	Reason string              `json:"reason,omitempty"` // why it failed or was skipped
}

// Parked says that the run waits for something outside and holds no worker meanwhile.
type Parked struct {
	Reason string     `json:"reason"`          // what for, in a word: "approval", "answer", "timer", "model" …
	Call   string     `json:"call,omitempty"`  // the tool call that waits, if one does
	Until  *time.Time `json:"until,omitempty"` // when the wait expires
	// Limit is the cap that the run cannot continue without exceeding, when Reason is ReasonBudget, the limit of its tenant, when it
	// is ParkQuota, or the rule, when it is ParkRate; Question says so in a sentence.
	Limit    string `json:"limit,omitempty"`
	Question string `json:"question,omitempty"`

	Approval  *messages.Approval `json:"approval,omitempty"` // what is asked for, when the reason is ParkApproval
	Semaphore string             `json:"line,omitempty"`     // that has no permit for it, when the reason is ParkSemaphore or ParkPaused
	Cause     *messages.Cause    `json:"cause,omitempty"`    // what went wrong with the model, when the reason is ParkModel
	Needs     *messages.Needs    `json:"needs,omitempty"`    // of a worker, when the reason is ParkWorker
	Again     bool               `json:"again,omitempty"`    // it has no turn yet when the park ends, and asks for one; the reason is ParkQuota

	Permits []Permit `json:"permits,omitempty"` // that calls have for later, when the reason is ParkRate
	Unmade  []string `json:"unmade,omitempty"`  // calls that have a ToolStarted and were not made, when the reason is ParkRate
}

// Permit lets a call be made once, from From until before To, by the first claim after the park that holds it.
type Permit struct {
	Step  int       `json:"step"`
	Call  string    `json:"call"`
	Rates []string  `json:"rates"` // keys of the rates that counted it
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// Released hands an open claim back. The attempt is given back too, unless it was Spent.
type Released struct {
	Reason string `json:"reason"`
	Spent  bool   `json:"spent,omitempty"`
}

// Lost ends the open claim of a worker that is gone together with its ticket.
type Lost struct {
	Ticket uint64 `json:"ticket"`
}

// CancelRequested asks the run to stop.
type CancelRequested struct {
	ID     string `json:"id"` // control id: a record of the same id is the same request
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Text says it in a sentence.
func (c *CancelRequested) Text() string {
	text := "cancelled"
	if c.By != "" {
		text += " by " + c.By
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

// Answered is what a parked call waited for.
type Answered struct {
	ID      string           `json:"id"`
	Park    uint64           `json:"park"` // sequence of the Parked entry that it answers
	By      string           `json:"by,omitempty"`
	Content []messages.Block `json:"content"`
	IsError bool             `json:"isError,omitempty"`
}

// Expired says that a park's time is over.
type Expired struct {
	Park uint64 `json:"park"`
	Call string `json:"call,omitempty"` // that waited for an approval, if one did
}

// Finished ends the run. Nothing after it counts.
type Finished struct {
	Result messages.AgentResult `json:"result"`
	Dead   bool                 `json:"dead,omitempty"` // the task also goes to the dead letters
	Used   []string             `json:"used,omitempty"` // of a child: tools that gave results in it or below
}

// BudgetWarned says that the agent's soft share of a cap is used. There is one at most for each cap of a run.
type BudgetWarned struct {
	Limit   string  `json:"limit"`   // CapTokens …
	Spent   float64 `json:"spent"`   // calls, tokens, US dollars or seconds
	Allowed float64 `json:"allowed"` // the whole of it, in the same unit
}

// HookFailed says that a hook could not be asked or told. What it decides or hears is not in it: a refusal is the
// ToolReturned or Finished that follows from it.
type HookFailed struct {
	On     messages.HookPoint `json:"on"`
	Hook   string             `json:"hook"` // its name
	Step   int                `json:"step,omitempty"`
	Call   string             `json:"call,omitempty"` // the tool call that it was about
	Reason string             `json:"reason"`
	Fatal  bool               `json:"fatal,omitempty"` // it ends the run
}

// PolicyApplied says that a rule blocked something, redacted it, or has a call wait for a person. A blocked call is answered with
// the reason, a blocked reply or input ends the run.
type PolicyApplied struct {
	Point  messages.PolicyPoint `json:"point"`
	Action string               `json:"action"` // PolicyBlock, PolicyRedact or PolicyAsk
	Rule   string               `json:"rule"`
	Source string               `json:"source"`
	Reason string               `json:"reason"`
	Step   int                  `json:"step,omitempty"`
	StepID string               `json:"stepId,omitempty"` // of the plan's step
	Tool   string               `json:"tool,omitempty"`
	Call   string               `json:"call,omitempty"`
	// Arguments, if not empty, take the place of those of the call.
	Arguments string `json:"arguments,omitempty"`
	// Edit lets the person who is asked approve the call with other arguments.
	Edit bool `json:"edit,omitempty"`
}

// Kind implements Record.
func (*Started) Kind() Kind         { return KindStarted }
func (*Claimed) Kind() Kind         { return KindClaimed }
func (*StepStarted) Kind() Kind     { return KindStepStarted }
func (*ModelReplied) Kind() Kind    { return KindModelReplied }
func (*ModelFailed) Kind() Kind     { return KindModelFailed }
func (*ToolStarted) Kind() Kind     { return KindToolStarted }
func (*ToolReturned) Kind() Kind    { return KindToolReturned }
func (*StepEnded) Kind() Kind       { return KindStepEnded }
func (*Parked) Kind() Kind          { return KindParked }
func (*Released) Kind() Kind        { return KindReleased }
func (*Lost) Kind() Kind            { return KindLost }
func (*CancelRequested) Kind() Kind { return KindCancelRequested }
func (*Answered) Kind() Kind        { return KindAnswered }
func (*Expired) Kind() Kind         { return KindExpired }
func (*Finished) Kind() Kind        { return KindFinished }
func (*BudgetWarned) Kind() Kind    { return KindBudgetWarned }
func (*HookFailed) Kind() Kind      { return KindHookFailed }
func (*PolicyApplied) Kind() Kind   { return KindPolicyApplied }
