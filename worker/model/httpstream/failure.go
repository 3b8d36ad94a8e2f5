package httpstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/longshore-run/longshore/worker/model"
)

// Failure is the error that a call ends with: the cause of the caller's context when that has ended, and an *model.Error
// otherwise. One that err holds is kept, with the call's status and request id where it has none, and without keys.
// Anything else is what the network or the watchdog made of the answer. It is called once for a call, at its end.
func (c *Call) Failure(err error) error {
	if c.caller.Err() != nil {
		return context.Cause(c.caller)
	}
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case ok:
	case errors.Is(context.Cause(c.ctx), errIdle):
		e = &model.Error{Class: model.Timeout, Detail: "nothing came for " + c.wait.Round(time.Millisecond).String()}
	default:
		e = &model.Error{Class: model.Truncated, Detail: "the stream was cut: " + err.Error()}
	}
	e.Detail = c.client.secrets.clip(e.Detail, MaxDetail)
	if e.Status == 0 {
		e.Status = c.Status
	}
	if e.RequestID = c.client.secrets.clip(e.RequestID, maxRequestID); e.RequestID == "" {
		e.RequestID = c.RequestID
	}
	return e
}

// unreachable is the error of a request that got no answer.
func (c *Call) unreachable(err error) error {
	if errors.Is(context.Cause(c.ctx), errNoHeaders) {
		return &model.Error{
			Class: model.Timeout, Detail: "no answer within " + c.client.config.StartTimeout.String(),
			Hint: "check that the endpoint is up; a slow one needs a longer LONGSHORE_MODEL_START_TIMEOUT",
		}
	}
	return &model.Error{
		Class: model.Network, Detail: err.Error(),
		Hint: "check that the endpoint is up and that its base URL (" + c.client.config.URLVariable + ") is right",
	}
}

func (c *Call) redirect(resp *http.Response) error {
	e := &model.Error{
		Class: model.InvalidRequest, Detail: "the endpoint redirects, and redirects are not followed",
		Hint: "set the base URL (" + c.client.config.URLVariable + ") to the address that it redirects to",
	}
	if to, err := resp.Location(); err == nil {
		e.Detail = "the endpoint redirects to " + to.Scheme + "://" + to.Host + ", and redirects are not followed"
	}
	return e
}

// ClassOf sorts an HTTP status; Unknown below 400.
func ClassOf(status int) model.Class {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return model.Auth
	case http.StatusPaymentRequired:
		return model.Quota
	case http.StatusRequestTimeout, http.StatusGatewayTimeout, 522, 524:
		return model.Timeout
	case http.StatusConflict, http.StatusTooEarly:
		return model.Overloaded
	case http.StatusRequestEntityTooLarge:
		return model.ContextLength
	case http.StatusTooManyRequests:
		return model.RateLimited
	}
	switch {
	case status >= 500:
		return model.Overloaded
	case status >= 400:
		return model.InvalidRequest
	}
	return model.Unknown
}

// Mentions reports whether one of the words is in what a provider said.
func Mentions(said string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(said, w) {
			return true
		}
	}
	return false
}
