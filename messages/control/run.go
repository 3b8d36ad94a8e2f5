package control

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/strict"
)

// The dispatcher's micro service. Requests and replies are JSON; an error reply is a Problem and carries the
// headers of the NATS micro protocol too.

// Subjects of the service's endpoints.
const (
	SubjectSubmit = "longshore.submit" // Task -> SubmitReply
	SubjectStatus = "longshore.status" // RunRequest -> RunStatus
	SubjectResult = "longshore.result" // ResultRequest -> AgentResult or TaskResult; conflict while the run has not ended
	SubjectCancel = "longshore.cancel" // CancelRequest -> RunStatus; conflict when it has ended
	SubjectVerify = "longshore.verify" // VerifyRequest -> SubmitReply; is the id taken by this very task?
	SubjectLog    = "longshore.log"    // LogRequest -> LogPage
	SubjectCheck  = "longshore.check"  // RunRequest -> RunCheck
	SubjectFork   = "longshore.fork"   // ForkRequest -> ForkReply; conflict when the new id is taken
)

// SubmitReply answers a submit.
type SubmitReply struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"` // the same task had been submitted before
}

// RunRequest names a run.
type RunRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	ID     string `json:"id"`
}

// ResultRequest asks for the result of a run.
type ResultRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	ID     string `json:"id"`
	// Transcript asks for what was said, too; After continues after Transcript.Next of the page before.
	Transcript bool   `json:"transcript,omitempty"`
	After      string `json:"after,omitempty"`
	// Format asks for another form: FormatTaskResult. It does not go with Transcript.
	Format string `json:"format,omitempty"`
	// Wait is how long the answer may wait for the end of the run, which may not even exist yet. At most MaxResultWait.
	Wait messages.Duration `json:"wait,omitempty"`
}

// MaxResultWait is the longest ResultRequest.Wait. Who waits for longer asks again.
const MaxResultWait = 5 * time.Second

// Check returns a *FieldError for what is wrong besides the name of the run.
func (r *ResultRequest) Check() error {
	switch {
	case r.Format != "" && r.Format != FormatTaskResult:
		return &messages.FieldError{Field: "format", Reason: "must be " + FormatTaskResult}
	case r.Format != "" && r.Transcript:
		return &messages.FieldError{Field: "transcript", Reason: "cannot be combined with format"}
	case r.After != "" && !r.Transcript:
		return &messages.FieldError{Field: "after", Reason: "is only for a transcript"}
	case r.Wait < 0 || r.Wait > messages.Duration(MaxResultWait):
		return &messages.FieldError{Field: "wait", Reason: "must be from 0s to " + MaxResultWait.String()}
	}
	_, err := messages.ParseTranscriptPlace(r.After)
	return err
}

// RunRemoved is the detail of a Problem with the code not_found about a run that events or the index still know.
const RunRemoved = "the run has ended and was removed after its retention (LONGSHORE_RETENTION)"

// VerifyRequest asks whether the run of an id is the one of a task with this fingerprint.
type VerifyRequest struct {
	Tenant      string `json:"tenant,omitempty"`
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"`
}

// CancelRequest asks a run to stop.
type CancelRequest struct {
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// RunStatus is what is known about a run.
type RunStatus struct {
	Tenant   string          `json:"tenant"`
	ID       string          `json:"id"`
	Status   messages.Status `json:"status"`
	Attempt  int             `json:"attempt,omitempty"`  // claims since the last progress
	Updated  time.Time       `json:"updated"`            // when the log last grew, or when it was queued
	Waits    string          `json:"waits,omitempty"`    // what a waiting run waits for
	WaitsFor string          `json:"waitsFor,omitempty"` // what a worker must have, when it waits for one: "no worker has the tool x"; or which children: "2 of 3 children: a, b"
	Until    *time.Time      `json:"until,omitempty"`    // when a wait for the model ends and it is called again
	Cause    *messages.Cause `json:"cause,omitempty"`    // what went wrong with the model that it waits for
	Cancel   bool            `json:"cancel,omitempty"`   // asked to stop and still on its way there
	Sequence uint64          `json:"sequence,omitempty"` // events so far
	// NotBefore is when a queued run is handed to a worker at the earliest, if that is to come.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// Ignored: the newest thing that was decided about the run does not count, for it has no valid signature.
	Ignored bool `json:"ignored,omitempty"`
	// Webhook is what became of the webhook that the task asks for, once the run has ended.
	Webhook *WebhookState `json:"webhook,omitempty"`
	// Delegations is how often it has handed sub-tasks to other agents. A list of runs with it as parent shows them.
	Delegations int `json:"delegations,omitempty"`
}

// WebhookStanding says how far a webhook is.
type WebhookStanding string

// Standings of a webhook.
const (
	// WebhookPending: it is still to be delivered, now or after a pause.
	WebhookPending WebhookStanding = "pending"
	// WebhookDelivered: it is neither queued nor a dead letter. The receiver has accepted it, unless its dead letter was purged or
	// no dispatcher has sent webhooks for a week.
	WebhookDelivered WebhookStanding = "delivered"
	// WebhookDead: it was given up, and is a dead letter that can be sent again.
	WebhookDead WebhookStanding = "dead"
)

// WebhookState is what became of the webhook of a run that has ended.
type WebhookState struct {
	State     WebhookStanding `json:"state"`
	Attempts  int             `json:"attempts,omitempty"`  // of a dead one
	LastError string          `json:"lastError,omitempty"` // of a dead one; never with the address
	At        *time.Time      `json:"at,omitempty"`        // when it was queued, or given up
}

// Ref of the request, with the tenant's default; checked.
func (r RunRequest) Ref() (messages.Ref, error) {
	ref := messages.Ref{Tenant: r.Tenant, Run: r.ID}
	if ref.Tenant == "" {
		ref.Tenant = messages.DefaultTenant
	}
	return ref, ref.Check()
}

// FormatTaskResult is the ResultRequest.Format that asks for a TaskResult.
const FormatTaskResult = "task-result"

// TaskResult is a result in short, for those who asked for files: how it ended, what it wrote, what it did, and what
// processes logged about it.
type TaskResult struct {
	Status  messages.Status     `json:"status"`  // completed, failed, cancelled
	Outputs []string            `json:"outputs"` // workspace paths of the files that the run wrote
	Summary string              `json:"summary"` // in the words of its model, of a completed run; else in ours
	Logs    []logentry.LogEntry `json:"logs"`    // the stored entries, oldest first; the newest, when there are too many
	// LogsLeftOut is how many older entries are not in Logs, of those that are kept.
	LogsLeftOut int `json:"logsLeftOut,omitempty"`
}

// NewTaskResult is a result in short, with what was logged about the run.
func NewTaskResult(r *messages.AgentResult, logs []logentry.LogEntry) TaskResult {
	t := TaskResult{Status: r.Status, Outputs: append([]string{}, r.Outputs...), Summary: r.Summary, Logs: append([]logentry.LogEntry{}, logs...)}
	if r.Success {
		t.Summary = cmp.Or(r.InWords(), r.Summary)
	}
	return t
}

// Fit leaves out the oldest entries of the log, and then shortens the summary and leaves out outputs, until it is n bytes as
// JSON, at most.
func (t *TaskResult) Fit(n int) {
	size := func(v any) int {
		b, err := json.Marshal(v)
		if err != nil {
			return n
		}
		return len(b) + len(",")
	}
	rest := *t
	rest.Logs = []logentry.LogEntry{}
	if size(&rest) > n/2 {
		t.Summary = strict.Clip(t.Summary, n/2/len(`\u0000`))
		rest.Summary = t.Summary
	}
	if size(&rest) > n/2 {
		t.Outputs = []string{}
		rest.Outputs = t.Outputs
	}
	room := n - size(&rest) - len(`,"logsLeftOut":1000`)
	keep := len(t.Logs)
	for keep > 0 {
		if room -= size(&t.Logs[keep-1]); room < 0 {
			break
		}
		keep--
	}
	t.Logs, t.LogsLeftOut = t.Logs[keep:], t.LogsLeftOut+keep
}
