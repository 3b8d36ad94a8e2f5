package service

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
)

// answerFunc answers a request's body.
type answerFunc func(ctx context.Context, body []byte) (any, error)

// endpoints are all requests by their subject.
func (s *Service) endpoints() iter.Seq2[string, answerFunc] {
	return maps.All(map[string]answerFunc{
		messages.SubjectSubmit: s.submit,
		messages.SubjectVerify: s.verify,
		messages.SubjectStatus: s.status,
		messages.SubjectResult: s.result,
		messages.SubjectCancel: s.cancel,
	})
}

// answer answers one request, with a Problem if it fails.
func (s *Service) answer(ctx context.Context, req micro.Request, do answerFunc) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := do(ctx, req.Data())
	if err == nil {
		err = req.RespondJSON(reply)
	} else {
		p := problem(err)
		if p.Code == messages.CodeInternal {
			s.cfg.Log.WarnContext(ctx, "answer a request", "subject", req.Subject(), "err", err)
		}
		body, _ := json.Marshal(p) // strings and numbers always encode
		err = req.Error(strconv.Itoa(p.Status), p.Detail, body)
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "reply to a request", "subject", req.Subject(), "err", err)
	}
}

// problem is the public form of an error. What is not meant for the caller stays in the log.
func problem(err error) *messages.Problem {
	p := &messages.Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: messages.CodeInternal, Detail: "internal error"}
	var (
		field *messages.FieldError
		own   *messages.Problem
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &field):
		p.Status, p.Code, p.Detail, p.Field = http.StatusBadRequest, messages.CodeInvalidInput, field.Reason, field.Field
	case errors.Is(err, messages.ErrUnknownAgent):
		p.Status, p.Code, p.Detail, p.Field = http.StatusBadRequest, messages.CodeUnknownAgent, err.Error(), "agent"
	case errors.Is(err, runlog.ErrNotFound):
		p.Status, p.Code, p.Detail = http.StatusNotFound, messages.CodeNotFound, "no such run"
	case errors.Is(err, runlog.ErrEnded):
		p.Status, p.Code, p.Detail = http.StatusConflict, messages.CodeConflict, "the run has ended"
	case errors.Is(err, context.DeadlineExceeded):
		p.Status, p.Detail = http.StatusGatewayTimeout, "the message store did not answer in time"
	}
	p.Title, p.Retryable = http.StatusText(p.Status), p.Code.Retryable()
	return p
}

func conflict(detail string) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict,
		Code: messages.CodeConflict, Detail: detail,
	}
}

// submit publishes a task for a client that cannot or does not want to do so itself.
func (s *Service) submit(ctx context.Context, body []byte) (any, error) {
	t, err := messages.DecodeTask(body)
	if err != nil {
		return nil, err
	}
	if t.ID == "" {
		t.ID = s.cfg.Keeper.NewID()
	}
	if _, err := s.cfg.Bus.Agent(ctx, t.Agent); err != nil {
		return nil, err
	}
	duplicate, err := s.cfg.Bus.Submit(ctx, t)
	if err != nil {
		return nil, err
	}
	if duplicate {
		if err := s.same(ctx, t.Ref(), t.Fingerprint()); err != nil {
			return nil, err
		}
	}
	return messages.SubmitReply{ID: t.ID, Duplicate: duplicate}, nil
}

// verify tells a client whether the run of an id is the one of its task.
func (s *Service) verify(ctx context.Context, body []byte) (any, error) {
	var req messages.VerifyRequest
	if err := messages.Decode(body, &req); err != nil {
		return nil, err
	}
	ref, err := messages.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := s.same(ctx, ref, req.Fingerprint); err != nil {
		return nil, err
	}
	return messages.SubmitReply{ID: ref.Run, Duplicate: true}, nil
}

// same returns a conflict unless the task of a run, queued or logged, has the fingerprint.
func (s *Service) same(ctx context.Context, ref messages.Ref, fingerprint string) error {
	task, err := s.task(ctx, ref)
	switch {
	case err != nil:
		return err
	case task.Fingerprint() != fingerprint:
		return conflict("id: " + ref.Run + " is taken by another task")
	default:
		return nil
	}
}

// task is what a run was asked to do: from its log, or else from the queue.
func (s *Service) task(ctx context.Context, ref messages.Ref) (*messages.Task, error) {
	for e, err := range s.cfg.Keeper.Log.Read(ctx, ref, 0, 1) {
		if err != nil {
			return nil, err
		}
		if started, ok := e.Records[0].(*messages.Started); ok {
			return &started.Task, nil
		}
	}
	q, ok, err := s.queued(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, runlog.ErrNotFound
	default:
		return messages.DecodeTaskFor(ref, q.priority, q.body)
	}
}

// queued is a task that no worker has begun.
type queued struct {
	priority messages.Priority
	body     []byte
	at       time.Time
}

// queued looks for a run's start ticket in the queue.
func (s *Service) queued(ctx context.Context, ref messages.Ref) (queued, bool, error) {
	q, ok, err := s.cfg.Bus.Queued(ctx, ref)
	if err != nil || !ok {
		return queued{}, false, err
	}
	p, _, ok := messages.ParseTaskSubject(q.Subject)
	return queued{p, q.Body, q.At}, ok && !p.Wakes(), nil
}

func (s *Service) status(ctx context.Context, body []byte) (any, error) {
	ref, err := runOf(body)
	if err != nil {
		return nil, err
	}
	last, ok, err := s.cfg.Keeper.Log.Last(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return statusOf(ref, last), nil
	}
	q, ok, err := s.queued(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, runlog.ErrNotFound
	default:
		return messages.RunStatus{Tenant: ref.Tenant, ID: ref.Run, Status: messages.StatusQueued, Updated: q.at}, nil
	}
}

// statusOf reads a status off the newest entry.
func statusOf(ref messages.Ref, last messages.Entry) messages.RunStatus {
	h := last.Head
	st := messages.RunStatus{
		Tenant: ref.Tenant, ID: ref.Run, Attempt: h.Attempt, Updated: h.Time, Waits: h.Waits,
		Sequence: h.FirstEvent + uint64(h.Events) - 1, //nolint:gosec // a count
	}
	switch h.Phase {
	case messages.PhaseParked, messages.PhaseReady:
		st.Status = messages.StatusWaiting
	case messages.PhaseFinished:
		if r := resultOf(last); r != nil {
			st.Status = r.Status
		}
	case messages.PhaseActive:
		st.Status = messages.StatusRunning
	}
	st.Cancel = h.Cancel && h.Phase != messages.PhaseFinished
	return st
}

func resultOf(last messages.Entry) *messages.AgentResult {
	for _, r := range last.Records {
		if f, ok := r.(*messages.Finished); ok {
			return &f.Result
		}
	}
	return nil
}

func (s *Service) result(ctx context.Context, body []byte) (any, error) {
	ref, err := runOf(body)
	if err != nil {
		return nil, err
	}
	last, ok, err := s.cfg.Keeper.Log.Last(ctx, ref)
	if err != nil {
		return nil, err
	}
	if ok {
		if r := resultOf(last); r != nil {
			return r, nil
		}
		return nil, conflict("the run has not ended")
	}
	switch _, ok, err := s.queued(ctx, ref); {
	case err != nil:
		return nil, err
	case ok:
		return nil, conflict("the run has not ended")
	default:
		return nil, runlog.ErrNotFound
	}
}

func runOf(body []byte) (messages.Ref, error) {
	var req messages.RunRequest
	if err := messages.Decode(body, &req); err != nil {
		return messages.Ref{}, err
	}
	return req.Ref()
}
