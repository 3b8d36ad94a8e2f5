package request

import (
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// ProblemOf is the public form of an error of an operation: the failure that the operation declares it to be, or else its Problem.
func ProblemOf(o *control.Operation, err error) *messages.Problem {
	f := o.Failure(err)
	if f == nil {
		return Problem(err)
	}
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status, Code: f.Code, Retryable: f.Code.Retryable(),
		Detail: strict.Clip(err.Error(), maxDetail),
	}
}

// maxDetail bounds the text of an error that names what the caller gave.
const maxDetail = 1024

// Problem is the public form of an error that any operation may have. What is not meant for the caller is left out of it.
func Problem(err error) *messages.Problem {
	p := &messages.Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: messages.CodeInternal, Detail: "internal error"}
	var (
		field *messages.FieldError
		own   *messages.Problem
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, messages.ErrRevision), errors.Is(err, schedules.ErrScheduleMoved):
		return Conflict(err.Error())
	case errors.As(err, &field):
		p.Status, p.Code, p.Detail, p.Field = http.StatusBadRequest, messages.CodeInvalidInput, field.Reason, field.Field
	case errors.Is(err, messages.ErrUnknownAgent):
		p.Status, p.Code, p.Detail, p.Field = http.StatusBadRequest, messages.CodeUnknownAgent, err.Error(), "agent"
	case errors.Is(err, runlog.ErrNotFound):
		p.Status, p.Code, p.Detail = http.StatusNotFound, messages.CodeNotFound, "no such run"
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

// Conflict is the problem of a request that what is stored does not allow.
func Conflict(detail string) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict,
		Code: messages.CodeConflict, Detail: detail,
	}
}
