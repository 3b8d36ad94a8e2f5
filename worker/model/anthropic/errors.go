package anthropic

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// refusal is the error of an answer that is no 2xx.
func (x *exchange) refusal(no *httpstream.RefusalError) error {
	e := x.failure(parseFault(no.Body))
	e.RetryAfter, _ = httpstream.RetryAfter(no.Header, time.Now())
	return e
}

// failure is the typed error of a fault.
func (x *exchange) failure(f fault) *model.Error {
	e := &model.Error{Class: classify(x.Status, &f), Status: x.Status, RequestID: first(x.RequestID, f.requestID), Detail: f.message}
	if e.Detail == "" {
		e.Detail = f.kind
	}
	e.Hint = hint(e, &f)
	return e
}

// classify goes by what the provider says where a type or status is ambiguous, then by the error's type, which alone
// counts within a stream, then by the status.
func classify(status int, f *fault) model.Class {
	said := strings.ToLower(f.kind + " " + f.message)
	switch {
	case f.html && status < 400:
		return model.ModelOutput
	case httpstream.Mentions(said, "credit balance", "usage limit", "spend limit", "spending limit", "insufficient_quota", "insufficient credits"):
		return model.Quota
	case status == http.StatusTooManyRequests || f.kind == "rate_limit_error":
		return model.RateLimited
	case httpstream.Mentions(said, "prompt is too long", "context window", "context length", "context limit", "input is too long", "maximum context"):
		return model.ContextLength
	case httpstream.Mentions(said, "content filter", "content policy", "content_filter"):
		return model.ContentFilter
	}
	if c := byType(f.kind); c != model.Unknown {
		return c
	}
	if c := httpstream.ClassOf(status); c != model.Unknown {
		return c
	}
	return byWord(said)
}

// byWord sorts a gateway's error in a stream, which has neither type nor status.
func byWord(said string) model.Class {
	switch {
	case httpstream.Mentions(said, "rate limit", "rate_limit", "too many requests"):
		return model.RateLimited
	case httpstream.Mentions(said, "overloaded", "internal", "server error", "server_error", "unavailable", "bad gateway"):
		return model.Overloaded
	case httpstream.Mentions(said, "timeout", "timed out"):
		return model.Timeout
	case httpstream.Mentions(said, "unauthorized", "api key", "api_key"):
		return model.Auth
	}
	return model.Unknown
}

func byType(kind string) model.Class {
	switch kind {
	case "authentication_error", "permission_error":
		return model.Auth
	case "billing_error":
		return model.Quota
	case "request_too_large":
		return model.ContextLength
	case "timeout_error":
		return model.Timeout
	case "overloaded_error", "api_error":
		return model.Overloaded
	case "invalid_request_error", "not_found_error":
		return model.InvalidRequest
	}
	return model.Unknown
}

// hint says what the operator can do.
func hint(e *model.Error, f *fault) string {
	switch {
	case f.html && (e.Class == model.ModelOutput || e.Class == model.InvalidRequest):
		return "the address answers with a web page: check the base URL (ANTHROPIC_BASE_URL), which ends before /v1"
	case f.kind == "permission_error":
		return "the key may not use this model or feature: check the rights of the key's workspace"
	case e.Class == model.Auth:
		return "the endpoint refuses the key: check ANTHROPIC_API_KEY, and that the key belongs to this base URL"
	case e.Class == model.Quota:
		return "the account has no credit left or has met its spending limit: check its billing"
	case e.Class == model.RateLimited:
		return "raise the account's limits or let fewer runs work at once"
	case e.Class == model.Overloaded:
		return "the provider has trouble of its own: try again later, or name another provider to fall back on"
	case e.Class == model.Timeout:
		return "try again; if it stays so, give the model less to read or a smaller limit of tokens"
	case e.Class == model.ContextLength:
		return "the conversation no longer fits the model: choose one with a larger context, or give it less to read"
	case e.Class == model.ContentFilter:
		return "the provider's filter refuses the conversation: change the task, or choose another provider"
	case e.Status == http.StatusNotFound && f.kind == "":
		return "check the base URL (ANTHROPIC_BASE_URL), which ends before /v1, and the name of the model"
	case f.kind == "not_found_error" || strings.Contains(strings.ToLower(f.message), "model"):
		return "check the name of the model (ANTHROPIC_MODEL) and what it takes"
	case e.Class == model.InvalidRequest:
		return "the provider refuses the request as it is: check the agent's settings and tools against what the model takes"
	default:
		return "check that the base URL (ANTHROPIC_BASE_URL) speaks the Messages API of Anthropic"
	}
}

// ownHint says what to do about an error that is ours, not the provider's.
func ownHint(class model.Class) string {
	switch class {
	case model.Timeout:
		return "try again; a slow endpoint needs a longer LONGSHORE_MODEL_TIMEOUT"
	case model.Truncated:
		return "try again; something between here and the provider cuts answers short"
	case model.ModelOutput:
		return "check that the base URL (ANTHROPIC_BASE_URL) speaks the Messages API of Anthropic"
	case model.ReplyTooLarge:
		return "ask for less at once"
	default:
		return ""
	}
}

// truncated is the error of a stream that ended early.
func truncated(why string) error { return &model.Error{Class: model.Truncated, Detail: why} }

// garbled is the error of an answer that is no reply.
func garbled(format string, args ...any) error {
	return &model.Error{Class: model.ModelOutput, Detail: fmt.Sprintf(format, args...)}
}
