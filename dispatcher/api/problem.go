package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// problemf is a problem of a status and a code.
func problemf(status int, code messages.Code, detail string) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail, Retryable: code.Retryable(),
	}
}

// problemOf is the public form of an error. What is not meant for the caller stays in the log.
func problemOf(err error) *messages.Problem {
	var (
		own   *messages.Problem
		field *messages.FieldError
		large *http.MaxBytesError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problemf(http.StatusBadRequest, messages.CodeInvalidInput, "the body was cut")
	case errors.As(err, &field):
		p := problemf(http.StatusBadRequest, messages.CodeInvalidInput, field.Reason)
		p.Field = field.Field
		return p
	case errors.As(err, &large):
		return problemf(http.StatusRequestEntityTooLarge, messages.CodeInvalidInput, "the body is larger than "+strconv.FormatInt(large.Limit, 10)+" bytes")
	case errors.Is(err, messages.ErrUnknownAgent):
		p := problemf(http.StatusBadRequest, messages.CodeUnknownAgent, err.Error())
		p.Field = "agent"
		return p
	case errors.Is(err, dispatcher.ErrRemoved):
		return problemf(http.StatusNotFound, messages.CodeNotFound, control.RunRemoved)
	case errors.Is(err, dispatcher.ErrNotFound):
		return problemf(http.StatusNotFound, messages.CodeNotFound, "no such run")
	case errors.Is(err, dispatcher.ErrNoBatch):
		return problemf(http.StatusNotFound, messages.CodeNotFound, "no such batch")
	case errors.Is(err, dispatcher.ErrConflict), errors.Is(err, dispatcher.ErrRevision), errors.Is(err, dispatcher.ErrEnded), errors.Is(err, dispatcher.ErrNotEnded):
		return problemf(http.StatusConflict, messages.CodeConflict, err.Error())
	case errors.Is(err, auth.ErrUnavailable):
		p := problemf(http.StatusServiceUnavailable, messages.CodeInternal, auth.ErrUnavailable.Error())
		p.Retryable = true
		return p
	case errors.Is(err, errRevoked):
		return unauthenticated(errRevoked.Error())
	case errors.Is(err, errDraining), errors.Is(err, dispatcher.ErrUnavailable):
		p := problemf(http.StatusServiceUnavailable, messages.CodeInternal, err.Error())
		p.Retryable = true
		return p
	case errors.Is(err, context.Canceled): // the client is gone
		return problemf(http.StatusServiceUnavailable, messages.CodeInternal, "the request was given up")
	}
	if why, ok := bus.Unavailable(err); ok {
		p := problemf(http.StatusServiceUnavailable, messages.CodeInternal, why)
		p.Retryable = true
		return p
	}
	return problemf(http.StatusInternalServerError, messages.CodeInternal, "internal error")
}

func writeProblem(w http.ResponseWriter, p *messages.Problem) {
	retryAfter(w, p)
	writeProblemAs(w, p.Status, p)
}

// retryAfter says when to come again, as the problem does.
func retryAfter(w http.ResponseWriter, p *messages.Problem) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
}

func writeProblemAs(w http.ResponseWriter, status int, p any) {
	body, _ := json.Marshal(p) // strings and numbers always encode
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
