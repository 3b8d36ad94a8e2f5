package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

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
		body: control.Submitted{Tenant: run.Tenant, ID: run.Run, Status: messages.StatusQueued},
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
	reply.body = control.Submitted{Tenant: run.Tenant, ID: run.Run, Status: result.Status, Result: result}
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

func getTask(ctx context.Context, q *query, r control.RunRequest) (any, error) {
	run := messages.Ref{Tenant: r.Tenant, Run: r.ID}
	status, err := q.api.cfg.Client.Status(ctx, run)
	if err != nil {
		return nil, err
	}
	state := control.TaskState{RunStatus: *status}
	if status.Status.Ended() {
		if state.Result, err = q.api.cfg.Client.Result(ctx, run); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func getLog(ctx context.Context, q *query, r control.LogRequest) (any, error) {
	limit, err := q.limit(maxListed)
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Runs().LogPage(ctx, messages.Ref{Tenant: r.Tenant, Run: r.ID}, r.After, limit)
}

func runSchedule(ctx context.Context, q *query, r control.ScheduleRun) (any, error) {
	if r.ID == "" {
		r.ID = messages.NewID(time.Now()) // so that a lost answer leaves one run
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	o := control.Of(control.SubjectScheduleRun)
	if _, err := q.api.cfg.Client.Ask(ctx, o, request); err != nil {
		return nil, overHTTP(o, err)
	}
	return control.Submitted{Tenant: r.Tenant, ID: r.ID, Status: messages.StatusQueued}, nil
}

const (
	defaultListed = 100
	maxListed     = 1000
	maxReason     = 1 << 10 // bytes of what a person says
	maxBulk       = 200     // how many runs one request cancels
)

func listTasks(ctx context.Context, q *query, r control.RunsRequest) (any, error) {
	return q.api.cfg.Client.Runs().List(ctx, dispatcher.FilterOf(&r))
}

func cancelTasks(ctx context.Context, q *query, r control.CancelRuns) (any, error) {
	f := dispatcher.FilterOf(&r.RunsRequest)
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
	if len(r.Reason) > maxReason {
		return nil, &messages.FieldError{Field: "reason", Reason: "is longer than 1024 bytes"}
	}
	f.Limit = maxBulk
	list, err := q.api.cfg.Client.Runs().List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := control.BulkCancel{Cancelled: []string{}, More: list.Next != "" || list.MoreQueued || list.Behind > 0}
	for _, run := range list.Runs {
		_, err := q.api.cfg.Client.Runs().CancelAs(ctx, messages.Ref{Tenant: run.Tenant, Run: run.ID}, r.By, r.Reason)
		switch {
		case errors.Is(err, dispatcher.ErrEnded): // meanwhile
		case err != nil:
			if out.Failed == nil {
				out.Failed = map[string]string{}
			}
			out.Failed[run.ID] = problemOf(err).Detail
		default:
			out.Cancelled = append(out.Cancelled, run.ID)
		}
	}
	return out, nil
}
