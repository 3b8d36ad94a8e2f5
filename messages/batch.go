package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/longshore-run/longshore/messages/strict"
)

// BatchStatus is what a batch is up to.
type BatchStatus string

// Statuses of a batch.
const (
	BatchValidating BatchStatus = "validating"  // lines are being taken in; nothing runs
	BatchInProgress BatchStatus = "in_progress" // its tasks are submitted and worked
	BatchFinalizing BatchStatus = "finalizing"  // all tasks are submitted; the last ones are in progress
	BatchCompleted  BatchStatus = "completed"   // every line has ended, well or not
	BatchFailed     BatchStatus = "failed"      // lines are wrong, so nothing was run
	BatchCancelled  BatchStatus = "cancelled"
	BatchExpired    BatchStatus = "expired"
)

// Ended reports whether a status is final. A failed batch alone may be submitted again.
func (s BatchStatus) Ended() bool {
	return s == BatchCompleted || s == BatchFailed || s == BatchCancelled || s == BatchExpired
}

// Limits of a batch.
const (
	MaxBatchLines  = 100_000
	MaxBatchLine   = 2 << 20 // bytes of a line
	MaxBatchErrors = 100     // wrong lines that a batch names; more are counted
	maxConcurrency = 10_000
	maxBatchID     = 36 // so that a task's id, with the hash after it, is a token
	maxCustomID    = 256
	maxBatchName   = 256
	batchHash      = 26 // characters of the hash in a task's id
	maxBatchCost   = 1e9
)

// Times of a batch.
const (
	DefaultBatchExpiry = 7 * 24 * time.Hour
	MaxBatchExpiry     = 14 * 24 * time.Hour // as long as events are kept
)

// LabelBatch is the label that every task of a batch has.
const LabelBatch = "batch"

// BatchRef names a batch everywhere. A valid one has two tokens, the id of at most 36 characters.
type BatchRef struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// Check returns a *FieldError when tenant or id is not valid.
func (r BatchRef) Check() error {
	if err := strict.CheckToken("tenant", r.Tenant); err != nil {
		return err
	}
	if !strict.ValidToken(r.ID) || len(r.ID) > maxBatchID || r.ID == "_" {
		return &FieldError{Field: "id", Reason: fmt.Sprintf("must be 1 to %d characters of A-Z a-z 0-9 _ -", maxBatchID)}
	}
	return nil
}

// String is tenant/id.
func (r BatchRef) String() string { return r.Tenant + "/" + r.ID }

// Subjects of a batch. They must only be called on a BatchRef that passed Check, with a task's id from TaskID.

// HeadSubject holds what is true of the batch.
func (r BatchRef) HeadSubject() string { return "batches." + r.Tenant + "." + r.ID + ".head" }

// LineSubject holds the line of a task.
func (r BatchRef) LineSubject(task string) string {
	return "batches." + r.Tenant + "." + r.ID + ".line." + task
}

// OutcomeSubject holds how the line of a task ended.
func (r BatchRef) OutcomeSubject(task string) string {
	return "batches." + r.Tenant + "." + r.ID + ".done." + task
}

// TaskID is the id of the task of a line: always the same for the same batch and custom_id.
func (r BatchRef) TaskID(customID string) string {
	sum := sha256.Sum256([]byte(r.ID + "\x00" + customID))
	return r.ID + "_" + hex.EncodeToString(sum[:])[:batchHash]
}

// BatchOf is the batch that a run would belong to by its id. Whether it does, its line tells.
func BatchOf(run Ref) (BatchRef, bool) {
	cut := len(run.Run) - batchHash - 1
	if cut < 1 || run.Run[cut] != '_' || strings.Trim(run.Run[cut+1:], "0123456789abcdef") != "" {
		return BatchRef{}, false
	}
	ref := BatchRef{run.Tenant, run.Run[:cut]}
	return ref, ref.Check() == nil
}

// BatchSettings are what a batch is submitted with.
type BatchSettings struct {
	Name        string     `json:"name,omitempty"`        // for people
	MaxCost     *float64   `json:"maxCost,omitempty"`     // in US dollars; when it is spent the rest is cancelled
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`   // what has not ended by then is given up. Default in 7 days
	SkipInvalid bool       `json:"skipInvalid,omitempty"` // leave wrong lines out, instead of running nothing
	Webhook     *Webhook   `json:"webhook,omitempty"`     // is told when the batch has ended
	Concurrency int        `json:"concurrency,omitempty"` // how many of its tasks are queued, run or wait at once; 0: no cap of its own
}

// Check returns a *FieldError for the first setting that is wrong.
func (s *BatchSettings) Check(now time.Time) error {
	if err := strict.CheckText("name", s.Name, maxBatchName); err != nil {
		return err
	}
	if c := s.MaxCost; c != nil && (math.IsNaN(*c) || *c < 0 || *c > maxBatchCost) {
		return &FieldError{Field: "maxCost", Reason: "must be 0 to 1000000000 US dollars"}
	}
	if e := s.ExpiresAt; e != nil && (!e.After(now) || e.Sub(now) > MaxBatchExpiry+time.Minute) {
		return &FieldError{Field: "expiresAt", Reason: "must be in the future, at most 14 days ahead"}
	}
	if s.Concurrency < 0 || s.Concurrency > maxConcurrency {
		return &FieldError{Field: "concurrency", Reason: fmt.Sprintf("must be 1 to %d", maxConcurrency)}
	}
	if s.Webhook != nil {
		return s.Webhook.Check("webhook.", batchEnds()...)
	}
	return nil
}

// LineError says why a line of a batch is refused.
type LineError struct {
	Line     int    `json:"line"` // from 1, as an editor counts; blank lines count too
	CustomID string `json:"custom_id,omitempty"`
	Code     Code   `json:"code"`
	Field    string `json:"field,omitempty"`
	Message  string `json:"message"`
}

func (e *LineError) Error() string {
	if e.Field == "" || e.Field == strict.Body {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Message)
}

// BatchCounts are the lines of a batch that have ended, by how, and those that are on their way.
type BatchCounts struct {
	Total     int `json:"total"`
	Submitted int `json:"submitted"` // became tasks
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"` // begun or not
	Expired   int `json:"expired"`   // never submitted
	Invalid   int `json:"invalid"`   // refused lines; not in total
}

// Ended is how many lines have an outcome.
func (c *BatchCounts) Ended() int { return c.Completed + c.Failed + c.Cancelled + c.Expired }

// Batch is the head of a batch: what is true of it, up to its newest outcomes.
type Batch struct {
	BatchRef
	BatchSettings
	Status    BatchStatus `json:"status"`
	Reason    string      `json:"reason,omitempty"` // why no more lines are submitted
	Waits     string      `json:"waits,omitempty"`  // which quota of the tenant the next lines wait for
	Counts    BatchCounts `json:"counts"`
	Usage     Usage       `json:"tokenUsage"`
	Cost      float64     `json:"cost"`                  // in US dollars, of what has ended and has a price
	Unpriced  int         `json:"unpriced,omitempty"`    // runs whose cost is unknown; they are not in Cost
	SecondsTo *float64    `json:"secondsLeft,omitempty"` // an estimate; absent: unknown
	Errors    []LineError `json:"errors,omitempty"`      // the first wrong lines
	Created   time.Time   `json:"createdAt"`
	Began     *time.Time  `json:"inProgressAt,omitempty"`
	Ended     *time.Time  `json:"endedAt,omitempty"`

	Cursor BatchCursor `json:"cursor"`
}

// BatchCursor is how far the dispatchers are with a batch. It is theirs alone.
type BatchCursor struct {
	Submitter string      `json:"submitter,omitempty"` // the latest attempt to submit the lines; fences older ones
	Digest    string      `json:"digest,omitempty"`    // of all accepted lines
	Held      int         `json:"held,omitempty"`      // lines whose uploaded contents are kept for them
	HeldLine  uint64      `json:"heldLine,omitempty"`  // sequence of the last of these
	Line      uint64      `json:"line,omitempty"`      // sequence of the last line that was submitted or given up
	Handled   int         `json:"handled,omitempty"`   // how many lines that are
	Outcome   uint64      `json:"outcome,omitempty"`   // sequence of the last outcome in the counts
	Stop      BatchStatus `json:"stop,omitempty"`      // what it will be once all has ended, when that is not completed
	GivenUp   int         `json:"givenUp,omitempty"`   // lines handled since then
	Stopped   bool        `json:"stopped,omitempty"`   // the runs on their way were asked to stop
	Tell      bool        `json:"tell,omitempty"`      // the batch has ended and its webhook is not in the queue yet
}

// BatchLine is a line as it is stored.
type BatchLine struct {
	Line     int    `json:"line"`
	CustomID string `json:"custom_id"`
	Task     Task   `json:"task"` // with its id
}

// BatchOutcome is how a line ended.
type BatchOutcome struct {
	CustomID string      `json:"custom_id"`
	Line     int         `json:"line"`
	Task     string      `json:"task"`
	Status   BatchStatus `json:"status"`           // completed, failed, cancelled or expired
	Result   *RunOutcome `json:"result,omitempty"` // absent: it never ran
	Error    *RunError   `json:"error,omitempty"`
}

// RunOutcome is what a batch keeps of the result of a run.
type RunOutcome struct {
	Text         any       `json:"text"` // a string
	Steps        int       `json:"steps"`
	TokenUsage   Usage     `json:"tokenUsage"`
	CostEstimate *float64  `json:"costEstimate"` // null when a price is unknown
	StartedAt    time.Time `json:"startedAt"`
	FinishedAt   time.Time `json:"finishedAt"`
	Truncated    bool      `json:"truncated,omitempty"` // the text is shortened; the run's own result has it whole
}

// OutcomeOf is the outcome of a line whose run has ended.
func OutcomeOf(l *BatchLine, r *AgentResult) BatchOutcome {
	out := BatchOutcome{
		CustomID: l.CustomID, Line: l.Line, Task: l.Task.ID, Status: BatchFailed, Error: r.Error,
		Result: &RunOutcome{
			Text: r.Result, Steps: r.Steps, TokenUsage: r.TokenUsage, CostEstimate: r.CostEstimate,
			StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, Truncated: r.Truncated,
		},
	}
	switch r.Status {
	case StatusCompleted:
		out.Status = BatchCompleted
	case StatusCancelled:
		out.Status = BatchCancelled
	default:
		if out.Error == nil {
			out.Error = &RunError{Message: "the run failed", Code: CodeInternal}
		}
	}
	return out
}

// Count adds an outcome. Each must be added once.
func (b *Batch) Count(o *BatchOutcome) {
	switch o.Status {
	case BatchCompleted:
		b.Counts.Completed++
	case BatchCancelled:
		b.Counts.Cancelled++
	case BatchExpired:
		b.Counts.Expired++
	default:
		b.Counts.Failed++
	}
	if o.Result == nil {
		return
	}
	b.Usage = b.Usage.Add(o.Result.TokenUsage)
	switch c := o.Result.CostEstimate; {
	case c != nil:
		b.Cost += *c
	case o.Result.TokenUsage != (Usage{}): // what asked no model costs nothing
		b.Unpriced++
	}
}

// Estimate returns the remaining time in seconds, extrapolated from the lines that have ended; nil when it is unknown.
func (b *Batch) Estimate(now time.Time) *float64 {
	done := b.Counts.Ended()
	if b.Began == nil || b.Status.Ended() || done == 0 {
		return nil
	}
	left := now.Sub(*b.Began).Seconds() / float64(done) * float64(b.Counts.Total-done)
	return &left
}

// lineWire is a line as people write it: a custom_id, and a task or the variables of a template.
type lineWire struct {
	CustomID    string                     `json:"custom_id"`
	Vars        map[string]json.RawMessage `json:"vars,omitempty"`
	Description Input                      `json:"description,omitempty"`
	Task
}

// DecodeBatchLine reads a line strictly. With a template the line holds variables, else a task. The task that comes
// back has its id, tenant, priority and the batch's label, and is checked.
func DecodeBatchLine(ref BatchRef, data []byte, template *BatchTemplate) (customID string, t *Task, err error) {
	var wire lineWire
	if err := strict.DecodeDepth(strict.Body, maxTaskDepth, data, &wire); err != nil {
		return "", nil, err
	}
	if err := checkCustomID(wire.CustomID); err != nil {
		return "", nil, err
	}
	t = &wire.Task
	switch {
	case template != nil:
		t, err = template.fill(&wire)
	case wire.Vars != nil:
		err = &FieldError{Field: "vars", Reason: "need a template"}
	case wire.Description != nil && t.Input != nil:
		err = &FieldError{Field: "description", Reason: "give either input or description, not both"}
	case wire.Description != nil:
		t.Input = wire.Description
	}
	if err == nil {
		err = t.enlist(ref, wire.CustomID)
	}
	return wire.CustomID, t, err
}

// enlist makes a task one of a batch.
func (t *Task) enlist(ref BatchRef, customID string) error {
	if t.ID != "" {
		return &FieldError{Field: "id", Reason: "is made from the batch and custom_id"}
	}
	if t.Tenant != "" && t.Tenant != ref.Tenant {
		return &FieldError{Field: "tenant", Reason: "is not that of the batch"}
	}
	if _, taken := t.Labels[LabelBatch]; taken {
		return &FieldError{Field: "labels." + LabelBatch, Reason: "is the batch's own"}
	}
	t.ID, t.Tenant = ref.TaskID(customID), ref.Tenant
	if t.Priority == "" {
		t.Priority = PriorityLow
	}
	labels := make(map[string]string, len(t.Labels)+1)
	maps.Copy(labels, t.Labels)
	labels[LabelBatch] = ref.ID
	t.Labels = labels
	t.SetDefaults()
	return t.Validate()
}

func checkCustomID(s string) error {
	if s == "" {
		return &FieldError{Field: "custom_id", Reason: "is missing"}
	}
	if err := strict.CheckText("custom_id", s, maxCustomID); err != nil {
		return err
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return &FieldError{Field: "custom_id", Reason: "holds characters that cannot be shown"}
	}
	return nil
}
