package messages

import "time"

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

// Ended tells whether a status is final.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// AgentResult is how a run ended.
type AgentResult struct { //nolint:recvcheck // short changes its copy
	ID           string         `json:"id"`
	Success      bool           `json:"success"`
	Result       any            `json:"result"` // a string
	Error        *RunError      `json:"error,omitempty"`
	StartedAt    time.Time      `json:"startedAt"`
	FinishedAt   time.Time      `json:"finishedAt"`
	Status       Status         `json:"status"`
	SessionID    string         `json:"sessionId,omitempty"`
	Steps        int            `json:"steps"`
	Actions      []ActionResult `json:"actions,omitempty"`
	ModelCalls   []ModelCall    `json:"modelCalls,omitempty"`
	TokenUsage   Usage          `json:"tokenUsage"`
	CostEstimate *float64       `json:"costEstimate"`          // in US dollars; null when a price is unknown
	Summary      string         `json:"summary,omitempty"`     // of a run with a plan: what was done
	Outputs      []string       `json:"outputs,omitempty"`     // workspace paths of the files that the run wrote, in order
	Logs         string         `json:"logs,omitempty"`        // where the run's log is; readable for the dispatcher and workers
	EventStream  string         `json:"eventStream,omitempty"` // the subject filter of the run's events
	Provenance   *Provenance    `json:"provenance,omitempty"`
	Aborted      bool           `json:"aborted,omitempty"`
	RetryInfo    *RetryInfo     `json:"retryInfo,omitempty"`
	Metrics      *Metrics       `json:"metrics,omitempty"`
	Seed         *int64         `json:"seed,omitempty"`      // of the task
	Cut          string         `json:"cut,omitempty"`       // what of a long run this does not repeat; the log has the whole
	Truncated    bool           `json:"truncated,omitempty"` // this is the shortened copy of an event
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
	return r
}

// ActionResult is one tool call of a run.
type ActionResult struct {
	Step   int    `json:"step"`
	Type   string `json:"type"` // "tool"
	CallID string `json:"callId"`
	Name   string `json:"name"`
	Input  string `json:"input"`  // the arguments as the model wrote them
	Output string `json:"output"` // text
	OK     bool   `json:"ok"`
	Code   Code   `json:"code,omitempty"`
	Millis int64  `json:"millis"`
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
	Agent    string `json:"agent"`
	Revision uint64 `json:"revision"`
}

// RetryInfo says how often the run was taken up again.
type RetryInfo struct {
	Attempts  int    `json:"attempts"`
	LastError string `json:"lastError,omitempty"`
}

// Metrics of a run.
type Metrics struct {
	DurationMs    int64            `json:"durationMs"`
	ToolLatencyMs map[string]int64 `json:"toolLatencyMs,omitempty"` // total by tool
}
