package service

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	actTimeout    = 5 * time.Second // to publish the event of an act
	maxCallerText = 256             // bytes of what is kept of a caller
)

// withCaller is a context that knows for whom a request is made. What users of a tenant say of it is ignored: no
// program of ours between them and the dispatcher has checked it.
func withCaller(ctx context.Context, req micro.Request) context.Context {
	text := req.Headers().Get(control.HeaderCaller)
	if text == "" || control.OfTenant(req.Subject()) {
		return ctx
	}
	var c control.Caller
	_ = json.Unmarshal([]byte(text), &c) // of a newer client, or nonsense: what can be read counts
	c.Who, c.Remote = strict.Clip(c.Who, maxCallerText), strict.Clip(c.Remote, maxCallerText)
	return request.WithCaller(ctx, c)
}

// told is a handler of which an event is made, if its operation is audited. What was refused changed nothing, and has no event.
func (s *Service) told(o *control.Operation, do request.Handler) request.Handler {
	if !o.Audited {
		return do
	}
	return func(ctx context.Context, body []byte) (any, error) {
		reply, err := do(ctx, body)
		outcome, code := control.ActDone, messages.Code("")
		if err != nil {
			p := request.Problem(err)
			if code = p.Code; code != messages.CodeInternal || p.Status == http.StatusNotImplemented {
				return reply, err
			}
			outcome = control.ActUnknown
		}
		act, tenant := o.Acted(body)
		if tenant == "" {
			tenant = messages.DefaultTenant
		}
		c := request.CallerOf(ctx)
		act.Who, act.Remote, act.Outcome, act.Code = c.Who, c.Remote, outcome, code
		telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
		defer cancel()
		if err := s.cfg.Events.AnnounceTo(telling, tenant, control.EventActed, act); err != nil { // the change is made all the same
			s.untold.Add(1)
			s.cfg.Log.ErrorContext(ctx, "a change has no event: the audit lacks it", "operation", act.Action, "name", act.Target, "tenant", tenant,
				"by", act.By, "who", act.Who, "err", err)
		}
		return reply, err
	}
}

// Untold is how many changes have no event, for NATS took none.
func (s *Service) Untold() uint64 { return s.untold.Load() }
