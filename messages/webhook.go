package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Webhook asks for a POST once a task or a batch has ended. It names no secret: requests are signed with a key of the
// tenant, which the dispatchers know.
type Webhook struct {
	URL string `json:"url" pattern:"^[hH][tT][tT][pP][sS]?://[^/?#]"` // https, without a user; http where the operator listed the host
	// Events are the ends that are told: completed, failed, cancelled and, of a batch, expired. Default: all.
	Events []string `json:"events,omitempty" uniqueItems:"true"`
}

// Wants reports whether an end with this status is told.
func (w *Webhook) Wants(status string) bool {
	return w != nil && (len(w.Events) == 0 || slices.Contains(w.Events, status))
}

// Check returns a *FieldError with a path below at, such as "webhook.". Ended are the statuses that there are.
func (w *Webhook) Check(at string, ended ...string) error {
	if err := checkAddress(at+"url", w.URL); err != nil {
		return err
	}
	for i, e := range w.Events {
		field := fmt.Sprintf("%sevents[%d]", at, i)
		switch {
		case !slices.Contains(ended, e):
			return &FieldError{Field: field, Reason: "must be one of " + strings.Join(ended, ", ")}
		case slices.Contains(w.Events[:i], e):
			return &FieldError{Field: field, Reason: "is given twice"}
		}
	}
	return nil
}

// taskEnds and batchEnds are the statuses that a webhook may ask for.
func taskEnds() []string {
	return []string{string(StatusCompleted), string(StatusFailed), string(StatusCancelled)}
}

func batchEnds() []string {
	return []string{string(BatchCompleted), string(BatchFailed), string(BatchCancelled), string(BatchExpired)}
}

// checkAddress wants an HTTP address that may be stored with a run.
func checkAddress(field, address string) error {
	if err := strict.CheckText(field, address, maxHookURL); err != nil {
		return err
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https":
		return &FieldError{Field: field, Reason: "must be an address such as https://hooks.example.com/longshore"}
	case u.User != nil:
		return &FieldError{Field: field, Reason: "must not hold a user or password: it is stored with every run"}
	case u.Fragment != "":
		return &FieldError{Field: field, Reason: "must not have a fragment"}
	case strings.Contains(u.Hostname(), "%"): // the zone of an address
		return &FieldError{Field: field, Reason: "must not have a zone"}
	}
	return nil
}

// WebhookOf says what has ended.
type WebhookOf string

// What a webhook is about.
const (
	WebhookRun   WebhookOf = "run"
	WebhookBatch WebhookOf = "batch"
)

// WebhookJob is one POST that is to be made: the body of a message of the stream of webhooks.
type WebhookJob struct {
	ID     string    `json:"id"` // of the delivery, the same over all attempts: receivers know a repetition by it
	Tenant string    `json:"tenant"`
	Of     WebhookOf `json:"of"`
	Name   string    `json:"name"` // of the run or batch
	Key    string    `json:"key"`  // token of the subject; one job of a key waits at a time
	URL    string    `json:"url"`
	Body   []byte    `json:"body"` // a CloudEvent, as it is sent
}

// RunWebhook returns the job that announces the end of a run.
func RunWebhook(run Ref, url string, body []byte) WebhookJob {
	return webhookJob(WebhookJob{Tenant: run.Tenant, Of: WebhookRun, Name: run.Run, Key: run.Run, URL: url, Body: body})
}

// BatchWebhook returns the job that announces the end of a batch. A failed batch may be submitted again, so its status is
// part of the key.
func BatchWebhook(ref BatchRef, status BatchStatus, url string, body []byte) WebhookJob {
	return webhookJob(WebhookJob{
		Tenant: ref.Tenant, Of: WebhookBatch, Name: ref.ID, Key: ref.ID + "-" + string(status), URL: url, Body: body,
	})
}

func webhookJob(j WebhookJob) WebhookJob {
	sum := sha256.Sum256([]byte(j.Subject()))
	j.ID = "msg_" + hex.EncodeToString(sum[:16]) // without a full stop, which separates what is signed
	return j
}

// Check returns a *FieldError when the job names nothing that may stand in a subject, or no address.
func (j *WebhookJob) Check() error {
	for _, f := range []struct{ name, value string }{{"tenant", j.Tenant}, {"name", j.Name}, {"key", j.Key}} {
		if err := strict.CheckToken(f.name, f.value); err != nil {
			return err
		}
	}
	if j.Of != WebhookRun && j.Of != WebhookBatch {
		return &FieldError{Field: "of", Reason: "must be run or batch"}
	}
	if j.ID == "" || len(j.ID) > strict.MaxToken || !strict.ValidToken(j.ID) {
		return &FieldError{Field: "id", Reason: "must be one token"}
	}
	return checkAddress("url", j.URL)
}

// Subject is where the job waits. It must only be called on a job that passed Check.
func (j *WebhookJob) Subject() string {
	return "webhooks." + j.Tenant + "." + string(j.Of) + "." + j.Key
}

// DeadSubject is where a job goes that could not be delivered. It has a part more than that of a task, which may have
// an agent of any name.
func (j *WebhookJob) DeadSubject() string {
	return "dead." + j.Tenant + ".webhook." + string(j.Of) + "." + j.Key
}

// TypeBatchFinished is the type of the CloudEvent that announces the end of a batch.
const TypeBatchFinished = typePrefix + "batch_finished" + typeSuffix

// BatchFinished is the data of batch_finished.
type BatchFinished struct {
	BatchRef
	Name     string      `json:"name,omitempty"`
	Status   BatchStatus `json:"status"`
	Reason   string      `json:"reason,omitempty"`
	Counts   BatchCounts `json:"counts"`
	Usage    Usage       `json:"tokenUsage"`
	Cost     float64     `json:"cost"`
	Unpriced int         `json:"unpriced,omitempty"` // runs whose cost is unknown; they are not in cost
	Created  time.Time   `json:"createdAt"`
	Ended    *time.Time  `json:"endedAt,omitempty"`
}

// Finished is the event of a batch that has ended.
func (b *Batch) Finished() Event {
	data := BatchFinished{
		BatchRef: b.BatchRef, Name: b.Name, Status: b.Status, Reason: b.Reason, Counts: b.Counts, Usage: b.Usage, Cost: b.Cost,
		Unpriced: b.Unpriced, Created: b.Created, Ended: b.Ended,
	}
	raw, err := json.Marshal(data)
	if err != nil {
		raw = json.RawMessage(`{}`) // our own data types always encode
	}
	e := Event{
		SpecVersion: "1.0", ID: b.ID + "." + string(b.Status), Source: sourcePrefix + b.Tenant, Type: TypeBatchFinished,
		Subject: b.ID, Time: b.Created, DataContentType: "application/json", Sequence: "1", Data: raw,
	}
	if b.Ended != nil {
		e.Time = *b.Ended
	}
	return e
}

// WebhookError says why a delivery was none. It never holds the address.
type WebhookError struct {
	Reason string
	Final  bool          // another attempt would be none either
	After  time.Duration // the receiver asked for this pause; 0: it did not
}

func (f *WebhookError) Error() string { return f.Reason }
