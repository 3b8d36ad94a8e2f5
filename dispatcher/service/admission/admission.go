// Package admission decides which tasks come into the queue.
package admission

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/messages/runlog"
)

// maxFiles bounds the files that are looked for at a submit. How many a run may have, its workers say.
const maxFiles = 100_000

// Config is what Admission works with.
type Config struct {
	Queue    *taskqueue.Queue
	Quotas   *quotas.Quotas // of tenants, with what they use
	Catalog  *catalog.Catalog
	Workers  *roster.Fleet
	Runs     *runs.Runs
	Webhooks *webhooks.Webhooks
	Files    firstfiles.Store
	Now      func() time.Time
	NewID    func() string // of a task that has no id
	Log      *slog.Logger

	MaxInput int // bytes of a task's input; 0: messages.MaxInput
}

// Admission decides which tasks come into the queue: it checks them, holds them against the quota of their tenant, and publishes
// them.
type Admission struct {
	cfg    Config
	counts counts
}

// New returns an Admission.
func New(cfg Config) *Admission { return &Admission{cfg: cfg} }

// Handlers are the requests that every submit makes.
func (a *Admission) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectSubmit: a.Submit,
		control.SubjectVerify: request.Read(a.verify),
		control.SubjectAdmit:  request.Read(a.answerAdmit),
	}
}

// Submit publishes a task for a client that cannot or does not want to do so itself.
func (a *Admission) Submit(ctx context.Context, body []byte) (any, error) {
	t, err := messages.DecodeTask(body)
	if err != nil {
		return nil, err
	}
	t.Join(request.TraceOf(ctx))
	fresh := t.ID == ""
	if fresh {
		t.ID = a.cfg.NewID()
	}
	duplicate, err := a.Accept(ctx, t, fresh)
	if err != nil {
		return nil, err
	}
	return control.SubmitReply{ID: t.ID, Duplicate: duplicate}, nil
}

// Accept checks what a task asks of the fleet, and publishes it.
func (a *Admission) Accept(ctx context.Context, t *messages.Task, fresh bool) (duplicate bool, err error) {
	if t.Deadline != nil && !a.cfg.Now().Before(*t.Deadline) {
		return false, late(*t.Deadline)
	}
	if err := t.CheckInput(a.cfg.MaxInput); err != nil {
		return false, err
	}
	if err := a.cfg.Webhooks.Check(t.Webhook); err != nil {
		return false, err
	}
	if _, err := a.cfg.Catalog.Agent(ctx, t.Agent); err != nil {
		return false, err
	}
	admitted := t.Ref()
	if fresh {
		admitted.Run = ""
	}
	if _, err := a.Admit(ctx, admitted); err != nil {
		return false, err
	}
	if err := a.Keep(ctx, t); err != nil {
		return false, err
	}
	duplicate, err = a.cfg.Queue.Submit(ctx, t, fresh)
	if err == nil && duplicate {
		err = a.Same(ctx, t.Ref(), t.Fingerprint())
	}
	return duplicate, err
}

// Keep has the run of a task refer to the uploaded contents that the task names, so that they stay while it waits. A *messages.FieldError
// names what is not stored. Call it last before the task is queued: a run that never exists has a reference for a day. What a task
// brings is stored by the worker that begins it.
func (a *Admission) Keep(ctx context.Context, t *messages.Task) error {
	if !t.NamesFiles() {
		return nil
	}
	_, err := firstfiles.Save(ctx, a.cfg.Files, t, firstfiles.Limits{Files: maxFiles}, nil)
	return err
}

// Stored returns a *messages.FieldError that names what a task names and is not stored. What is found stays for some minutes at least.
func (a *Admission) Stored(ctx context.Context, t *messages.Task) error {
	if !t.NamesFiles() {
		return nil
	}
	return firstfiles.Check(ctx, a.cfg.Files, t, firstfiles.Limits{Files: maxFiles})
}

// verify reports whether the run of an id is the one of a task.
func (a *Admission) verify(ctx context.Context, req control.VerifyRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := a.Same(ctx, ref, req.Fingerprint); err != nil {
		return nil, err
	}
	return control.SubmitReply{ID: ref.Run, Duplicate: true}, nil
}

// Same returns a conflict unless the task of a run, queued or logged, has the fingerprint.
func (a *Admission) Same(ctx context.Context, ref messages.Ref, fingerprint string) error {
	task, err := a.cfg.Runs.Task(ctx, ref, true)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // its events are left, its log is not
		return request.Conflict("id: " + ref.Run + " belonged to a run that was removed; choose another")
	case err != nil:
		return err
	case task.Fingerprint() != fingerprint:
		return request.Conflict("id: " + ref.Run + " is taken by another task")
	default:
		return nil
	}
}

func late(deadline time.Time) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest,
		Code: messages.CodeDeadline, Detail: "the deadline, " + deadline.UTC().Format(time.RFC3339) + ", has passed", Field: "deadline",
	}
}
