package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// LiteRequest is the body of /run-lite.
type LiteRequest struct {
	Input        string `json:"input"`
	IncludeSteps bool   `json:"includeSteps,omitempty"`
}

// LiteReply answers it.
type LiteReply struct {
	Output string     `json:"output"`
	Steps  []LiteStep `json:"steps,omitempty"` // when they were asked for
}

// LiteStep is a call of a tool, or the answer.
type LiteStep struct {
	Type    string          `json:"type"`              // "tool" or "final"
	Name    string          `json:"name,omitempty"`    // of the tool
	Args    json.RawMessage `json:"args,omitempty"`    // of the tool: an object
	Result  *string         `json:"result,omitempty"`  // of the tool
	Content *string         `json:"content,omitempty"` // the answer
}

// liteProblem is a problem that says what went wrong in one more field, as callers of /run-lite expect it.
type liteProblem struct {
	messages.Problem

	Error string `json:"error"`
}

func asLite(p *messages.Problem) any {
	text := p.Detail
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	return &liteProblem{*p, text}
}

var errLiteTimeout = errors.New("the run took too long")

// runLite has a task worked and waits for its answer. Whatever ends the wait ends the run.
func runLite(ctx context.Context, q *query) (reply any, err error) {
	return reply, q.lite(ctx, func(ctx context.Context, body LiteRequest, task messages.Task) error {
		var result *messages.AgentResult
		run, err := q.workLite(ctx, task, func(ctx context.Context, run messages.Ref) (err error) {
			result, err = q.awaitLite(ctx, run)
			return err
		})
		if err != nil {
			return err
		}
		reply, err = q.liteReply(ctx, run, result, body.IncludeSteps)
		return err
	})
}

// streamLite is runLite with the events of Karl's agent loop as they come. What goes wrong once the run has begun is the
// last of them.
func streamLite(w http.ResponseWriter, q *query) error {
	return q.lite(q.r.Context(), func(ctx context.Context, _ LiteRequest, task messages.Task) error {
		s := newStream(w, q.api.cfg.KeepAlive)
		_, err := q.workLite(ctx, task, func(ctx context.Context, run messages.Ref) error {
			k := newKarl(wholes{ctx, q.api.cfg.Runs, run, new(uint64)}, 0)
			w.Header().Set("Location", "/v1/tasks/"+run.Run)
			s.start()
			events, ended := make(chan messages.Event), make(chan error, 1)
			var forwarding sync.WaitGroup
			forwarding.Go(func() { ended <- forward(ctx, q.api.cfg.Hub.Watch(ctx, run), 0, nil, events) })
			defer forwarding.Wait()
			var failed error
			if !carry(ctx, s, events, nil, ended, func(e messages.Event) error {
				failed = cmp.Or(parkedLite(&e), s.frames(k.event(&e)))
				return failed
			}, nil) {
				return cmp.Or(failed, context.Cause(ctx), errStreamCut)
			}
			return nil
		})
		if err != nil && s.begun { // the status was sent
			p := problemOf(q.liteEnd(err))
			_ = s.frames([]frame{{data: karlEvent{Type: "error", Error: &karlError{"Error", p.Detail, p.Code}}}})
			return nil
		}
		return err
	})
}

var errStreamCut = errors.New("the events of the run could not be read")

// lite checks a request of /run-lite and waits for its turn.
func (q *query) lite(ctx context.Context, work func(context.Context, LiteRequest, messages.Task) error) error {
	var body LiteRequest
	if err := q.read(&body); err != nil {
		return err
	}
	if strings.TrimSpace(body.Input) == "" {
		return &messages.FieldError{Field: "input", Reason: "is missing or empty"}
	}
	tenant, err := q.tenant()
	if err != nil {
		return err
	}
	ctx, stop := q.api.untilDrain(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, q.api.cfg.LiteTimeout, errLiteTimeout)
	defer cancel()
	leave, err := q.api.lite.enter(ctx, tenant)
	if err != nil {
		return q.liteEnd(err)
	}
	defer leave()
	task := messages.Task{
		Tenant: tenant, Agent: messages.LiteAgent, Workspace: messages.LiteWorkspace, Input: messages.TextInput(body.Input),
	}
	task.Join(q.r.Header.Get(messages.HeaderTraceparent))
	return q.liteEnd(work(ctx, body, task))
}

func (q *query) liteReply(ctx context.Context, run messages.Ref, result *messages.AgentResult, steps bool) (*LiteReply, error) {
	if !result.Success {
		return nil, liteFailure(result)
	}
	output, _ := result.Result.(string)
	reply := &LiteReply{Output: output}
	if steps {
		var err error
		if reply.Steps, err = q.steps(ctx, run, result); err != nil {
			return nil, err
		}
		reply.Steps = append(reply.Steps, LiteStep{Type: "final", Content: &output})
	}
	return reply, nil
}

// workLite submits and follows the run to its end. When that fails, the run is asked to stop, should there be one.
func (q *query) workLite(
	ctx context.Context, task messages.Task, follow func(context.Context, messages.Ref) error,
) (run messages.Ref, err error) {
	// A submit that is cut off may have been stored: it is waited for, so that the run can be cancelled by its id.
	submit, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	id, err := q.api.cfg.Client.Submit(submit, task)
	run = messages.Ref{Tenant: task.Tenant, Run: id}
	if err == nil {
		if err = follow(ctx, run); err == nil {
			return run, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
	}
	if id != "" {
		q.abandon(ctx, run, err)
	}
	return run, err
}

// awaitLite waits for a result. A run that parks because its model fails is given up at once: its caller could wait until
// the timeout without hearing why.
func (q *query) awaitLite(ctx context.Context, run messages.Ref) (*messages.AgentResult, error) {
	ctx, stop := q.api.untilDrain(ctx)
	defer stop()
	for e, err := range q.api.cfg.Hub.Watch(ctx, run) {
		if err != nil {
			return nil, err
		}
		if err := parkedLite(&e); err != nil {
			return nil, err
		}
	}
	return q.api.cfg.Client.Result(ctx, run)
}

// parkedLite is the answer for a run that parks because its model fails.
func parkedLite(e *messages.Event) error {
	if e.Name() != messages.EventRunWaiting {
		return nil
	}
	switch d := dataOf[messages.RunWaiting](e); d.Reason {
	case queue.ParkModel:
		return liteWaits(&d)
	case queue.ParkWorker:
		p := problemf(http.StatusServiceUnavailable, messages.CodeInternal, d.Question+"; the run was cancelled, submit it again later")
		p.Retryable = true
		return p
	default:
		return nil
	}
}

// liteWaits is the answer for a run whose model cannot be called for a while.
func liteWaits(d *messages.RunWaiting) error {
	p := problemf(http.StatusInternalServerError, messages.CodeModelOverloaded, "the model cannot be called now")
	if d.Cause != nil {
		p.Code, p.Detail = d.Cause.Code, d.Cause.Text()
	}
	if d.Until != nil {
		p.Detail += "; it may be called again at " + d.Until.UTC().Format(time.RFC3339)
	}
	p.Detail += "; the run was cancelled, submit it again later"
	p.Retryable = true
	return p
}

// abandonTimeout is shorter than what a dispatcher that stops leaves its requests.
const abandonTimeout = 3 * time.Second

// abandon cancels a run that no caller waits for.
func (q *query) abandon(ctx context.Context, run messages.Ref, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	reason := "the caller of /run-lite went away"
	if !errors.Is(why, context.Canceled) {
		reason = "/run-lite does not wait any longer: " + problemOf(q.liteEnd(why)).Detail
	}
	_, err := q.api.cfg.Client.Cancel(ctx, run, strict.Clip(reason, maxReason))
	if err != nil && !errors.Is(err, dispatcher.ErrEnded) && !errors.Is(err, dispatcher.ErrNotFound) {
		q.api.cfg.Log.WarnContext(ctx, "cancel a run without a caller", "task_id", run.Run, "tenant", run.Tenant, "err", err)
	}
}

// liteEnd is why a call was given up.
func (q *query) liteEnd(err error) error {
	if errors.Is(err, errLiteTimeout) {
		return problemf(http.StatusInternalServerError, messages.CodeDeadline,
			fmt.Sprintf("no answer within %s: the run was cancelled", q.api.cfg.LiteTimeout))
	}
	return err
}

// liteFailure is the answer for a run that failed, in its own words.
func liteFailure(r *messages.AgentResult) error {
	p := problemf(http.StatusInternalServerError, messages.CodeInternal, "the run has "+string(r.Status))
	if r.Error != nil {
		p.Detail = r.Error.Message
		if r.Error.Code != "" {
			p.Code, p.Retryable = r.Error.Code, r.Error.Code.Retryable()
		}
	}
	return p
}

// steps are the calls of a run. A result holds shortened copies of them; the log has the whole.
func (q *query) steps(ctx context.Context, run messages.Ref, r *messages.AgentResult) ([]LiteStep, error) {
	type call struct {
		step int
		id   string
	}
	args, results := map[call]string{}, map[call]string{}
	for e, err := range q.api.cfg.Runs.Read(ctx, run, 0, runlog.Tail) {
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.ToolStarted:
				args[call{r.Step, r.Call.ID}] = r.Call.Arguments
			case *record.ToolReturned:
				results[call{r.Step, r.Result.CallID}] = r.Result.Shown()
			}
		}
	}
	var out []LiteStep
	for _, a := range r.Calls() {
		at := call{a.Step, a.CallID}
		text, ok := results[at]
		if !ok {
			text = a.Output
		}
		s := LiteStep{Type: "tool", Name: a.Name, Args: json.RawMessage(args[at]), Result: &text}
		if !json.Valid(s.Args) { // a call that was refused never began
			if s.Args = json.RawMessage(a.Input); !json.Valid(s.Args) {
				s.Args = json.RawMessage("{}")
			}
		}
		out = append(out, s)
	}
	return out, nil
}
