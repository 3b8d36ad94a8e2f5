package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Submitted answers a submit.
type Submitted struct {
	Tenant string                `json:"tenant"`
	ID     string                `json:"id"`
	Status messages.Status       `json:"status"`           // queued, or how it ended
	Result *messages.AgentResult `json:"result,omitempty"` // when it was waited for and came in time
}

func submitTask(ctx context.Context, q *query) (any, error) {
	data, err := q.raw()
	if err != nil {
		return nil, err
	}
	wait, err := q.duration("wait", maxWait)
	if err != nil {
		return nil, err
	}
	task, err := q.task(data)
	if err != nil {
		return nil, err
	}
	submit, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := q.api.cfg.Client.Submit(submit, *task); err != nil {
		return nil, err
	}
	run := task.Ref()
	reply := &replyOf{
		status: http.StatusAccepted, header: http.Header{"Location": {"/v1/tasks/" + run.Run}},
		body: Submitted{Tenant: run.Tenant, ID: run.Run, Status: messages.StatusQueued},
	}
	if wait == 0 {
		return reply, nil
	}
	result, err := q.await(ctx, run, wait)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errDraining):
		return reply, nil // it is stored: the caller asks again
	case err != nil:
		return nil, err
	}
	reply.status = http.StatusOK
	reply.body = Submitted{Tenant: run.Tenant, ID: run.Run, Status: result.Status, Result: result}
	return reply, nil
}

// task reads the task of a submit, with its tenant and id.
func (q *query) task(data []byte) (*messages.Task, error) {
	task, err := messages.DecodeTask(data)
	if err != nil {
		return nil, err
	}
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	header := q.r.Header.Get(control.HeaderTenant) != ""
	if q.who != nil {
		switch own := tenantIn(data); {
		case own == "":
			task.Tenant = tenant
		case own != tenant && (header || !q.who.AllTenants()):
			return nil, forbidden("the task is not of the tenant that it is submitted for")
		}
	} else if header {
		if task.Tenant != messages.DefaultTenant && task.Tenant != tenant {
			return nil, &messages.FieldError{Field: "tenant", Reason: "is not that of the header " + control.HeaderTenant}
		}
		task.Tenant = tenant
	}
	task.Join(q.r.Header.Get(messages.HeaderTraceparent))
	key := q.r.Header.Get(control.HeaderIdempotency)
	switch {
	case len(key) > 256:
		return nil, &messages.FieldError{Field: control.HeaderIdempotency, Reason: "is longer than 256 characters"}
	case task.ID == "" && key != "":
		task.ID = keyID(key)
	case task.ID == "":
		task.ID = messages.NewID(time.Now())
	}
	return task, nil
}

// keyID is the id of an idempotency key: the key itself where it can be one.
func keyID(key string) string {
	key = strings.Trim(key, `"`) // a structured field is quoted
	if strict.ValidToken(key) && key != "_" {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "key-" + hex.EncodeToString(sum[:16])
}

// await waits for the end of a run.
func (q *query) await(ctx context.Context, run messages.Ref, most time.Duration) (*messages.AgentResult, error) {
	ctx, stop := q.api.untilDrain(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for _, err := range q.api.cfg.Hub.Watch(ctx, run) {
		if err != nil {
			return nil, err
		}
	}
	return q.api.cfg.Client.Result(ctx, run)
}

// TaskState is a task and, once it has ended, its result.
type TaskState struct {
	control.RunStatus
	Result *messages.AgentResult `json:"result,omitempty"`
}

func getTask(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	status, err := q.api.cfg.Client.Status(ctx, run)
	if err != nil {
		return nil, err
	}
	state := TaskState{RunStatus: *status}
	if status.Status.Ended() {
		if state.Result, err = q.api.cfg.Client.Result(ctx, run); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func getResult(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	req := control.ResultRequest{After: q.text("after"), Format: q.text("format")}
	if req.Transcript, err = q.flag("transcript"); err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	switch {
	case req.Format == control.FormatTaskResult:
		return q.api.cfg.Client.TaskResult(ctx, run)
	case req.Transcript:
		return q.api.cfg.Client.ResultWithTranscript(ctx, run, req.After)
	default:
		return q.api.cfg.Client.Result(ctx, run)
	}
}

// maxReason bounds what a person says.
const maxReason = 1 << 10

func checkReason(r control.Reason) error {
	if len(r.Reason) > maxReason {
		return &messages.FieldError{Field: "reason", Reason: "is longer than 1024 bytes"}
	}
	return nil
}

const (
	defaultListed = 100
	maxListed     = 1000
	listedBack    = 24 * time.Hour
	maxSearched   = 256 // bytes
)

// filterParameters are those that say which runs are meant.
func filterParameters() []control.Parameter {
	return []control.Parameter{
		{Name: "status", Text: "Only these: queued, running, waiting, completed, failed, cancelled.", Many: true, Example: "failed"},
		{Name: "agent", Text: "Only runs of this agent."},
		{Name: "session", Text: "Only runs of this conversation."},
		{Name: "parent", Text: "Only runs to which this run delegated."},
		{Name: "label", Text: "Only runs with this label, as key=value.", Many: true, Example: "team=search"},
		{Name: "since", Text: "Only runs with an event since this time, and queued ones submitted since; by default the last 24 hours.", Kind: "date-time"},
		{Name: "q", Text: "Only runs with this text in id, input, error or result, ignoring case.", Example: "invoice"},
		{Name: "code", Text: "Only runs that failed for this reason.", Example: "tool_failed"},
		{Name: "until", Text: "Only runs that were submitted before this time.", Kind: "date-time"},
	}
}

func (q *query) filter() (f dispatcher.RunFilter, err error) {
	if f.Tenant, err = q.tenant(); err != nil {
		return f, err
	}
	for _, s := range q.list("status") {
		switch st := messages.Status(s); st {
		case messages.StatusQueued, messages.StatusRunning, messages.StatusWaiting, messages.StatusCompleted, messages.StatusFailed, messages.StatusCancelled:
			f.Statuses = append(f.Statuses, st)
		default:
			return f, &messages.FieldError{Field: "status", Reason: "must be queued, running, waiting, completed, failed or cancelled"}
		}
	}
	for _, l := range q.values["label"] {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return f, &messages.FieldError{Field: "label", Reason: "must be key=value"}
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		if _, twice := f.Labels[k]; twice {
			return f, &messages.FieldError{Field: "label", Reason: "names a key twice: no run has two values of it"}
		}
		f.Labels[k] = v
	}
	f.Agent, f.Session, f.Search, f.Code = q.text("agent"), q.text("session"), q.text("q"), messages.Code(q.text("code"))
	if f.Parent = q.text("parent"); f.Parent != "" && !strict.ValidToken(f.Parent) {
		return f, &messages.FieldError{Field: "parent", Reason: "must be the id of a task"}
	}
	if len(f.Search) > maxSearched {
		return f, &messages.FieldError{Field: "q", Reason: "is longer than 256 bytes"}
	}
	if f.Since, err = q.time("since", time.Now().Add(-listedBack)); err != nil {
		return f, err
	}
	f.Until, err = q.time("until", time.Time{})
	return f, err
}

func listTasks(ctx context.Context, q *query) (any, error) {
	f, err := q.filter()
	if err != nil {
		return nil, err
	}
	if f.Limit, err = q.limit(maxListed); err != nil {
		return nil, err
	}
	if f.After = q.text("after"); f.After != "" && !strict.ValidToken(f.After) {
		return nil, &messages.FieldError{Field: "after", Reason: "must be the id of a task"}
	}
	return q.api.cfg.Client.Runs().List(ctx, f)
}

// BulkCancel answers a cancel of many tasks.
type BulkCancel struct {
	Cancelled []string          `json:"cancelled"`        // these were asked to stop
	Failed    map[string]string `json:"failed,omitempty"` // these were not, and why
	More      bool              `json:"more,omitempty"`   // there are more: ask again
}

// maxBulk is how many one request cancels.
const maxBulk = 200

func cancelTasks(ctx context.Context, q *query) (any, error) {
	f, err := q.filter()
	if err != nil {
		return nil, err
	}
	if f.Agent == "" && f.Session == "" && f.Parent == "" && len(f.Labels) == 0 && len(f.Statuses) == 0 && f.Search == "" {
		return nil, &messages.FieldError{Field: "query", Reason: "says of no task that it is meant: give status, agent, session, parent or label"}
	}
	for _, s := range f.Statuses {
		if s.Ended() {
			return nil, &messages.FieldError{Field: "status", Reason: "a task that is " + string(s) + " cannot be cancelled"}
		}
	}
	if len(f.Statuses) == 0 {
		f.Statuses = []messages.Status{messages.StatusQueued, messages.StatusRunning, messages.StatusWaiting}
	}
	var body control.Reason
	if err := errors.Join(q.read(&body), checkReason(body)); err != nil {
		return nil, err
	}
	f.Limit = maxBulk
	list, err := q.api.cfg.Client.Runs().List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := BulkCancel{Cancelled: []string{}, More: list.Next != "" || list.MoreQueued || list.Behind > 0}
	for _, r := range list.Runs {
		_, err := q.api.cfg.Client.Runs().CancelAs(ctx, messages.Ref{Tenant: r.Tenant, Run: r.ID}, q.by(""), body.Reason)
		switch {
		case errors.Is(err, dispatcher.ErrEnded): // meanwhile
		case err != nil:
			if out.Failed == nil {
				out.Failed = map[string]string{}
			}
			out.Failed[r.ID] = problemOf(err).Detail
		default:
			out.Cancelled = append(out.Cancelled, r.ID)
		}
	}
	return out, nil
}
