package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// answerFunc answers a request's body.
type answerFunc func(ctx context.Context, body []byte) (any, error)

// handlers answer all requests of the fleet, by their subjects.
func (s *Service) handlers() map[string]answerFunc {
	all := map[string]answerFunc{
		control.SubjectSubmit:        s.submit,
		control.SubjectVerify:        s.verify,
		control.SubjectStatus:        s.status,
		control.SubjectResult:        s.result,
		control.SubjectCancel:        s.cancel,
		control.SubjectApprovals:     s.approvals,
		control.SubjectApprove:       s.approve,
		control.SubjectDeny:          s.deny,
		control.SubjectAnswer:        s.answerQuestion,
		control.SubjectLog:           s.log,
		control.SubjectFork:          s.fork,
		control.SubjectSessions:      s.sessions,
		control.SubjectSession:       s.session,
		control.SubjectSessionDelete: s.deleteSession,
		control.SubjectBatchOpen:     s.openBatch,
		control.SubjectBatchSeal:     s.sealBatch,
		control.SubjectBatchStatus:   s.batchStatus,
		control.SubjectBatchList:     s.batchList,
		control.SubjectBatchCancel:   s.cancelBatch,
		control.SubjectLanes:         s.lanes,
		control.SubjectEvents:        asked(s.events),
	}
	maps.Copy(all, s.catalog())
	maps.Copy(all, s.talk())
	maps.Copy(all, s.schedules())
	maps.Copy(all, s.deadLetters())
	maps.Copy(all, s.quotas())
	maps.Copy(all, s.workforce())
	maps.Copy(all, s.keys())
	maps.Copy(all, s.queueing())
	maps.Copy(all, s.manyRuns())
	s.tell(all)
	return all
}

// endpoints are all subjects that are answered: of the fleet, and of clients that are bound to a tenant.
func (s *Service) endpoints() iter.Seq2[string, answerFunc] {
	all := maps.Clone(s.within())
	bound(all)
	return maps.All(all)
}

// answer answers one request that came over NATS, with a Problem if it fails.
func (s *Service) answer(ctx context.Context, req micro.Request, do answerFunc) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	data, err := boundBody(req)
	var body []byte
	if err == nil {
		body, err = s.work(withCaller(withTrace(ctx, req), req), data, do)
	}
	if err == nil {
		err = s.reply(req, body, nil)
	}
	if err == nil {
		return
	}
	p := s.refusal(ctx, req.Subject(), err)
	body, _ = json.Marshal(p) // strings and numbers always encode
	err = s.reply(req, body, nats.Header{micro.ErrorHeader: {p.Detail}, micro.ErrorCodeHeader: {strconv.Itoa(p.Status)}})
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "reply to a request", "subject", req.Subject(), "err", err)
	}
}

// Answer answers a request of this process as it does one that comes over NATS: as many at once, within the same time. An
// error is a *messages.Problem.
func (s *Service) Answer(ctx context.Context, subject string, request []byte, from control.Caller) ([]byte, error) {
	do := s.within()[subject]
	if do == nil {
		return nil, control.Forbidden("not a request")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	select {
	case s.places <- struct{}{}:
	case <-s.over:
		_, err := stopped(ctx, nil)
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.places }()
	body, err := s.work(context.WithValue(ctx, callerKey{}, from), request, do)
	if err != nil {
		return nil, s.refusal(ctx, subject, err)
	}
	return body, nil
}

// work answers a request, as JSON.
func (s *Service) work(ctx context.Context, request []byte, do answerFunc) ([]byte, error) {
	reply, err := do(ctx, request)
	if errors.Is(err, runlog.ErrNotFound) {
		err = s.missing(ctx, request, err)
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(reply)
	if err != nil {
		return nil, fmt.Errorf("encode the reply: %w", err)
	}
	return body, nil
}

// refusal is the public form of what went wrong with a request, told to those who should know.
func (s *Service) refusal(ctx context.Context, subject string, err error) *messages.Problem {
	p := problem(err)
	s.refused(subject, p)
	if p.Code == messages.CodeInternal {
		s.cfg.Log.WarnContext(ctx, "answer a request", "subject", subject, "err", err)
	}
	return p
}

// stopped is the answer to a request that came too late: who asks need not wait for one that does not come.
func stopped(context.Context, []byte) (any, error) {
	return nil, &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
		Code: messages.CodeInternal, Retryable: true, Detail: "the dispatcher stops: ask again",
	}
}

// reply answers a request, unless nobody waits at an inbox. It leaves the request's own methods alone: they write to the request,
// which the micro service reads as soon as its handler has returned.
func (s *Service) reply(req micro.Request, body []byte, header nats.Header) error {
	if !bus.IsInbox(req.Reply()) {
		return nil
	}
	return s.cfg.Conn.PublishMsg(&nats.Msg{Subject: req.Reply(), Data: body, Header: header})
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
	case catalogProblem(err) != nil:
		return catalogProblem(err)
	case scheduleProblem(err) != nil:
		return scheduleProblem(err)
	case errors.As(err, &field):
		p.Status, p.Code, p.Detail, p.Field = http.StatusBadRequest, messages.CodeInvalidInput, field.Reason, field.Field
	case errors.Is(err, messages.ErrUnknownAgent):
		p.Status, p.Code, p.Detail, p.Field = http.StatusBadRequest, messages.CodeUnknownAgent, err.Error(), "agent"
	case errors.Is(err, runlog.ErrNotFound):
		p.Status, p.Code, p.Detail = http.StatusNotFound, messages.CodeNotFound, "no such run"
	case errors.Is(err, batches.ErrNoBatch):
		p.Status, p.Code, p.Detail = http.StatusNotFound, messages.CodeNotFound, "no such batch"
	case errors.Is(err, deadletters.ErrNoLetter):
		p.Status, p.Code, p.Detail = http.StatusNotFound, messages.CodeNotFound, "no such dead letter"
	case errors.Is(err, runlog.ErrEnded):
		p.Status, p.Code, p.Detail = http.StatusConflict, messages.CodeConflict, "the run has ended"
	case errors.Is(err, record.ErrNewerVersion):
		p.Status, p.Detail = http.StatusNotImplemented, "the log was written by a newer version than this dispatcher's"
	case errors.Is(err, nats.ErrMaxPayload):
		p.Status, p.Detail = http.StatusRequestEntityTooLarge, "the answer is larger than the server's max_payload"
	default:
		if why, ok := bus.Unavailable(err); ok {
			p.Status, p.Detail = http.StatusServiceUnavailable, why
		}
	}
	p.Title, p.Retryable = http.StatusText(p.Status), p.Code.Retryable()
	return p
}

func late(deadline time.Time) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest,
		Code: messages.CodeDeadline, Detail: "the deadline, " + deadline.UTC().Format(time.RFC3339) + ", has passed", Field: "deadline",
	}
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
	t.Join(traceOf(ctx))
	fresh := t.ID == ""
	if fresh {
		t.ID = s.cfg.Controller.NewID()
	}
	duplicate, err := s.accept(ctx, t, fresh)
	if err != nil {
		return nil, err
	}
	return control.SubmitReply{ID: t.ID, Duplicate: duplicate}, nil
}

// admit checks what a task asks of the fleet, and publishes it.
func (s *Service) accept(ctx context.Context, t *messages.Task, fresh bool) (duplicate bool, err error) {
	if t.Deadline != nil && !s.cfg.Controller.Now().Before(*t.Deadline) {
		return false, late(*t.Deadline)
	}
	if err := t.CheckInput(s.cfg.MaxInput); err != nil {
		return false, err
	}
	if err := s.checkWebhook(t.Webhook); err != nil {
		return false, err
	}
	if _, err := s.cfg.Catalog.Agent(ctx, t.Agent); err != nil {
		return false, err
	}
	admitted := t.Ref()
	if fresh {
		admitted.Run = ""
	}
	if _, err := s.admit(ctx, admitted); err != nil {
		return false, err
	}
	duplicate, err = s.cfg.Bus.Submit(ctx, t, fresh)
	if err == nil && duplicate {
		err = s.same(ctx, t.Ref(), t.Fingerprint())
	}
	return duplicate, err
}

// verify tells a client whether the run of an id is the one of its task.
func (s *Service) verify(ctx context.Context, body []byte) (any, error) {
	var req control.VerifyRequest
	if err := strict.Decode(body, &req); err != nil {
		return nil, err
	}
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := s.same(ctx, ref, req.Fingerprint); err != nil {
		return nil, err
	}
	return control.SubmitReply{ID: ref.Run, Duplicate: true}, nil
}

// same returns a conflict unless the task of a run, queued or logged, has the fingerprint.
func (s *Service) same(ctx context.Context, ref messages.Ref, fingerprint string) error {
	task, err := s.task(ctx, ref, true)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // its events are left, its log is not
		return conflict("id: " + ref.Run + " was that of a run which is gone; take another")
	case err != nil:
		return err
	case task.Fingerprint() != fingerprint:
		return conflict("id: " + ref.Run + " is taken by another task")
	default:
		return nil
	}
}

// task is what a run was asked to do: from its log, or else from the queue.
func (s *Service) task(ctx context.Context, ref messages.Ref, again bool) (*messages.Task, error) {
	for e, err := range s.cfg.Controller.Log.Read(ctx, ref, 0, 1) {
		if err != nil {
			return nil, err
		}
		started, ok := e.Records[0].(*record.Started)
		if !ok {
			return nil, fmt.Errorf("the log of %s does not begin with its task", ref)
		}
		return &started.Task, nil
	}
	q, ok, err := s.queued(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return messages.DecodeTaskFor(ref, q.priority, q.body)
	case again:
		return s.task(ctx, ref, false) // it may have begun between the two looks
	default:
		return nil, runlog.ErrNotFound
	}
}

// queued is a task that no worker has begun.
type queued struct {
	priority messages.Priority
	body     []byte
	at       time.Time
	later    *time.Time // when it comes to the queue; nil: it is there
}

// queued looks for a run's start ticket in the queue, and then among those that wait for their time.
func (s *Service) queued(ctx context.Context, ref messages.Ref) (queued, bool, error) {
	q, ok, err := s.cfg.Bus.Queued(ctx, ref)
	if err != nil {
		return queued{}, false, err
	}
	if ok {
		p, _, ok := messages.ParseTaskSubject(q.Subject)
		return queued{priority: p, body: q.Body, at: q.At}, ok && !p.Wakes(), nil
	}
	q, ok, err = s.cfg.Bus.Delayed(ctx, ref)
	if err != nil || !ok {
		return queued{}, false, err
	}
	p, _, ok := messages.ParseTaskSubject(q.Subject)
	return queued{p, q.Body, q.At, &q.Later}, ok && !p.Wakes(), nil
}

func (s *Service) status(ctx context.Context, body []byte) (any, error) {
	ref, err := runOf(body)
	if err != nil {
		return nil, err
	}
	last, q, err := s.find(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case q != nil:
		return control.RunStatus{Tenant: ref.Tenant, ID: ref.Run, Status: messages.StatusQueued, Updated: q.at, NotBefore: q.later}, nil
	default:
		st, err := s.statusOf(ctx, ref, last)
		if err == nil && last.Head.Webhook && last.Head.Phase == record.PhaseFinished {
			st.Webhook, err = s.webhookOf(ctx, ref, st.Status)
		}
		return st, err
	}
}

// find returns the newest entry of a run's log or, if it has none, its queued task. With neither it is
// runlog.ErrNotFound.
func (s *Service) find(ctx context.Context, ref messages.Ref) (last record.Entry, q *queued, err error) {
	for range 2 { // a short run may begin and end between the two looks
		last, ok, err := s.cfg.Controller.Log.Last(ctx, ref)
		if err != nil || ok {
			return last, nil, err
		}
		q, ok, err := s.queued(ctx, ref)
		if err != nil || ok {
			return last, &q, err
		}
	}
	return last, nil, runlog.ErrNotFound
}

// statusOf reads a status off the newest entry.
func (s *Service) statusOf(ctx context.Context, ref messages.Ref, last record.Entry) (control.RunStatus, error) {
	h := last.Head
	st := control.RunStatus{
		Tenant: ref.Tenant, ID: ref.Run, Attempt: h.Attempt, Updated: h.Time, Waits: h.Waits, Status: messages.StatusRunning,
		Sequence: h.FirstEvent + uint64(h.Events) - 1,
		Cancel:   h.Cancel && h.Phase != record.PhaseFinished,
		Ignored:  h.Has(record.KindUnverified),
	}
	switch {
	case h.Phase == record.PhaseFinished && h.Status.Ended():
		st.Status = h.Status
	case h.Phase == record.PhaseFinished: // by an earlier version, which had it in the result alone
		r, err := s.resultOf(ctx, ref, last)
		if err != nil {
			return st, err
		}
		st.Status = r.Status
	case h.Waits != "":
		st.Status = messages.StatusWaiting
		if (h.Waits == messages.ParkModel || h.Waits == messages.ParkWorker) && h.Phase == record.PhaseParked {
			p, _, err := s.cfg.Controller.Park(ctx, ref, last)
			if err != nil {
				return st, err
			}
			if p != nil {
				st.Until, st.Cause = p.Until, p.Cause
				if h.Waits == messages.ParkWorker {
					st.WaitsFor = p.Question
				}
			}
		}
	case h.ClaimSeq == 0 && h.Phase == record.PhaseReady:
		st.Status = messages.StatusQueued // a fork that no worker has taken up
	}
	return st, nil
}

func runOf(body []byte) (messages.Ref, error) {
	var req control.RunRequest
	if err := strict.Decode(body, &req); err != nil {
		return messages.Ref{}, err
	}
	return req.Ref()
}
