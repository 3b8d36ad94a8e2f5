package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// handlers answer the requests of all operations of the table, by the subjects of the fleet. An error names an operation
// without a handler, or a handler without an operation.
func (s *Service) handlers() (request.Handlers, error) {
	known := s.owners.handlers()
	for subject, do := range s.cfg.Handlers {
		if s.cfg.Operations.Of(subject) == nil {
			return nil, fmt.Errorf("serve operations: the handler of %s has no operation in the table", subject)
		}
		known[subject] = do
	}
	all := make(request.Handlers, len(s.cfg.Operations))
	for _, o := range s.cfg.Operations {
		do := known[o.Subject]
		switch {
		case do == nil:
			return nil, fmt.Errorf("serve operations: %s has no handler", o.Subject)
		case all[o.Subject] != nil:
			return nil, fmt.Errorf("serve operations: %s is in the table twice", o.Subject)
		}
		all[o.Subject] = s.told(&o, declared(&o, do))
	}
	return all, nil
}

// declared is a handler whose errors are the problems that its operation says they are.
func declared(o *control.Operation, do request.Handler) request.Handler {
	return func(ctx context.Context, body []byte) (any, error) {
		reply, err := do(ctx, body)
		if o.Failure(err) != nil {
			err = request.ProblemOf(o, err)
		}
		return reply, err
	}
}

// endpoints are all subjects that are answered: of the fleet, and of clients that are bound to a tenant.
func (s *Service) endpoints() (request.Handlers, error) {
	within, err := s.within()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(within)
	for _, o := range s.cfg.Operations {
		if o.Tenants {
			all[control.TenantSubject("*", o.Subject)] = all[o.Subject]
		}
	}
	return all, nil
}

// answer answers one request that came over NATS, with a Problem if it fails.
func (s *Service) answer(ctx context.Context, req micro.Request, do request.Handler) {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	data, err := boundBody(req)
	var body []byte
	if err == nil {
		body, err = s.work(withCaller(request.WithTrace(ctx, req.Headers().Get(messages.HeaderTraceparent)), req), data, do)
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
func (s *Service) Answer(ctx context.Context, subject string, body []byte, from control.Caller) ([]byte, error) {
	all, err := s.within()
	if err != nil {
		return nil, s.refusal(ctx, subject, err)
	}
	do := all[subject]
	if do == nil {
		return nil, control.Forbidden("not a request")
	}
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	select {
	case s.permits <- struct{}{}:
	case <-s.over:
		_, err := stopped(ctx, nil)
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.permits }()
	answer, err := s.work(request.WithCaller(ctx, from), body, do)
	if err != nil {
		return nil, s.refusal(ctx, subject, err)
	}
	return answer, nil
}

// work answers a request, as JSON.
func (s *Service) work(ctx context.Context, body []byte, do request.Handler) ([]byte, error) {
	reply, err := do(request.WithIdler(ctx, s.idle), body)
	if errors.Is(err, runlog.ErrNotFound) {
		err = s.missing(ctx, body, err)
	}
	if err != nil {
		return nil, err
	}
	answer, err := json.Marshal(reply)
	if err != nil {
		return nil, fmt.Errorf("encode the reply: %w", err)
	}
	return answer, nil
}

// refusal is the public form of what went wrong with a request, reported where it should be known.
func (s *Service) refusal(ctx context.Context, subject string, err error) *messages.Problem {
	p := request.Problem(err)
	s.refused(subject, p)
	if p.Code == messages.CodeInternal {
		s.cfg.Log.WarnContext(ctx, "answer a request", "subject", subject, "err", err)
	}
	return p
}

// stopped is the answer to a request that came too late: the caller need not wait for one that does not come.
func stopped(context.Context, []byte) (any, error) {
	return nil, &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
		Code: messages.CodeInternal, Retryable: true, Detail: "the dispatcher stops: ask again",
	}
}

// reply answers a request, unless it names no inbox. It leaves the request's own methods alone: they write to the request,
// which the micro service reads as soon as its handler has returned.
func (s *Service) reply(req micro.Request, body []byte, header nats.Header) error {
	if !bus.IsInbox(req.Reply()) {
		return nil
	}
	return s.cfg.Conn.PublishMsg(&nats.Msg{Subject: req.Reply(), Data: body, Header: header})
}
