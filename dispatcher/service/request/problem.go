package request

import (
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Problem is the public form of an error. What is not meant for the caller is left out of it.
func Problem(err error) *messages.Problem {
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

// catalogProblem is the public form of an error about agents and prompts; nil if it is another.
func catalogProblem(err error) *messages.Problem {
	switch {
	case errors.Is(err, messages.ErrRevision):
		return Conflict(err.Error())
	case errors.Is(err, messages.ErrUnknownPrompt):
		return NotFound(messages.CodeNotFound, err)
	default:
		return nil
	}
}

// scheduleProblem is the public form of an error about schedules; nil if it is another.
func scheduleProblem(err error) *messages.Problem {
	switch {
	case errors.Is(err, schedules.ErrNoSchedule):
		return NotFound(messages.CodeNotFound, schedules.ErrNoSchedule)
	case errors.Is(err, schedules.ErrScheduleMoved):
		return Conflict(err.Error())
	default:
		return nil
	}
}

// NoAgent makes an unknown agent, which is a mistake of a task, something that is not found.
func NoAgent(err error) error {
	if errors.Is(err, messages.ErrUnknownAgent) {
		return NotFound(messages.CodeUnknownAgent, err)
	}
	return err
}

// NotFound is the problem of a request for something that does not exist.
func NotFound(code messages.Code, err error) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound, Code: code,
		Detail: strict.Clip(err.Error(), 1024),
	}
}

// Conflict is the problem of a request that what is stored does not allow.
func Conflict(detail string) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict,
		Code: messages.CodeConflict, Detail: detail,
	}
}
