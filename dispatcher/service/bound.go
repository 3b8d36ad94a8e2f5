package service

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// boundBody is the body of a request. On a subject of a tenant it names that tenant, whatever the client wrote.
func boundBody(req micro.Request) ([]byte, error) {
	if err := bus.CheckRequest(&nats.Msg{Reply: req.Reply(), Header: nats.Header(req.Headers())}); err != nil {
		return nil, control.Forbidden(err.Error())
	}
	if !strings.HasPrefix(req.Subject(), "longshore.") { // a client that may make a consumer can have messages of a stream sent here
		return nil, control.Forbidden("not a request")
	}
	tenant, ok := control.TenantOf(req.Subject())
	switch {
	case !control.OfTenant(req.Subject()):
		return req.Data(), nil
	case !ok: // an account may have any name
		return nil, control.Forbidden("the subject names no tenant")
	}
	return control.BindTenant(req.Data(), tenant)
}

// refused reports a request that was refused because of its caller: it was for another tenant, or named no inbox for the answer.
func (s *Service) refused(subject string, p *messages.Problem) {
	if s.cfg.Denied == nil || p.Code != messages.CodeForbidden {
		return
	}
	tenant, ok := control.TenantOf(subject)
	if !ok {
		tenant = messages.DefaultTenant
	}
	s.cfg.Denied(tenant, control.AuthDenied{Code: p.Code, Reason: p.Detail, Operation: strict.Clip(subject, maxDeniedSubject)})
}

// maxDeniedSubject bounds what an event says of a subject that any client may have made up, in bytes.
const maxDeniedSubject = 256
