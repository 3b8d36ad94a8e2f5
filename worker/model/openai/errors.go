package openai

import (
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// refusal is the error of an answer that is no 2xx.
func (x *exchange) refusal(no *httpstream.RefusalError) error {
	e := x.failure(parseFault(no.Body))
	e.RetryAfter = retryAfter(no.Header, no.Body, time.Now())
	return e
}

// failure is the typed error of a fault.
func (x *exchange) failure(f fault) *model.Error {
	e := &model.Error{Class: classify(x.Status, &f), Status: x.Status, Detail: f.message}
	if x.Status < 300 && f.status != 0 {
		e.Status = f.status // of the provider behind a gateway that had answered 200
	}
	if !strings.ContainsFunc(e.Detail, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsControl(r) }) {
		e.Detail = f.code
	}
	e.Hint = hint(e, &f)
	return e
}

// classify goes by what the provider says where statuses are ambiguous, and by the status otherwise.
func classify(status int, f *fault) model.Class {
	if status < 400 {
		status = f.status
	}
	said := strings.ToLower(f.code + " " + f.message)
	switch {
	case f.html && status < 400:
		return model.ModelOutput
	case status != http.StatusTooManyRequests && httpstream.Mentions(said, contextWords()...):
		return model.ContextLength
	case httpstream.Mentions(said, quotaWords()...):
		return model.Quota
	case status < 500 && status != http.StatusTooManyRequests && httpstream.Mentions(said, filterWords()...):
		return model.ContentFilter
	case httpstream.Mentions(said, "tool_use_failed", "json_validate_failed"):
		return model.ModelOutput
	case status == http.StatusBadRequest && httpstream.Mentions(said, keyWords()...):
		return model.Auth
	}
	if c := httpstream.ClassOf(status); c != model.Unknown {
		return c
	}
	return byWord(said)
}

func contextWords() []string {
	return []string{
		"context_length", "context length", "context window", "maximum context", "context size", "prompt is too long",
		"input is too long", "prompt too long", "maximum prompt length", "exceeds the maximum number of tokens",
	}
}

func keyWords() []string {
	return []string{"invalid_api_key", "api key not valid", "invalid api key", "incorrect api key", "api_key_invalid"}
}

func quotaWords() []string {
	return []string{
		"insufficient_quota", "billing_hard_limit", "insufficient credits", "insufficient balance", "credit balance",
		"billing_not_active", "exceeded your current quota", "spending limit",
	}
}

// modelWords are said of a model that the endpoint does not have.
func modelWords() []string {
	return []string{
		"model_not_found", "deploymentnotfound", "invalid_model", "invalid model", "not a valid model", "model not exist",
		"no such model", "unknown model", "model not found", "no endpoints found", "unknown_model",
	}
}

func namesNoModel(said string) bool {
	return httpstream.Mentions(said, modelWords()...) ||
		httpstream.Mentions(said, "model", "deployment", "function '") && httpstream.Mentions(said, "does not exist", "not found", "not exist", "do not have access")
}

func filterWords() []string {
	return []string{"content_filter", "content_policy", "content policy", "responsibleai", "moderation", "flagged"}
}

// byWord sorts an error in a stream, which has no status of its own.
func byWord(said string) model.Class {
	for _, w := range []struct {
		word  string
		class model.Class
	}{
		{"rate_limit", model.RateLimited},
		{"rate limit", model.RateLimited},
		{"too many requests", model.RateLimited},
		{"overloaded", model.Overloaded},
		{"server_error", model.Overloaded},
		{"server error", model.Overloaded},
		{"internal", model.Overloaded},
		{"unavailable", model.Overloaded},
		{"bad gateway", model.Overloaded},
		{"timeout", model.Timeout},
		{"timed out", model.Timeout},
		{"authentication", model.Auth},
		{"unauthorized", model.Auth},
		{"api_key", model.Auth},
		{"quota", model.Quota},
		{"invalid_request", model.InvalidRequest},
		{"invalid_argument", model.InvalidRequest},
		{"bad_request", model.InvalidRequest},
		{"not_found", model.InvalidRequest},
		{"not found", model.InvalidRequest},
	} {
		if strings.Contains(said, w.word) {
			return w.class
		}
	}
	return model.Unknown
}

// hint says in one sentence what the operator can do.
func hint(e *model.Error, f *fault) string {
	said := strings.ToLower(f.code + " " + f.message)
	switch {
	case f.html && (e.Class == model.ModelOutput || e.Class == model.InvalidRequest):
		return "the address answers with a web page: check the base URL (OPENAI_BASE_URL), which usually ends in /v1"
	case e.Class == model.Auth && e.Status == http.StatusForbidden:
		return "the endpoint refuses the key for this call: check OPENAI_API_KEY, and that its account may use the model"
	case e.Class == model.Auth:
		return "the endpoint refuses the key: check OPENAI_API_KEY, and that the key belongs to this base URL"
	case e.Class == model.Quota:
		return "the account has no credit left: check its billing"
	case e.Class == model.RateLimited:
		return "raise the account's limits or let fewer runs work at once"
	case e.Class == model.ContextLength:
		return "the conversation no longer fits the model: choose one with a larger context, or give it less to read"
	case e.Class == model.ContentFilter:
		return "the provider's filter refuses the conversation: change the task, or choose another provider"
	case e.Class != model.InvalidRequest:
		return ""
	case httpstream.Mentions(said, "reasoning_content", "thought_signature", "content[].thinking"):
		return `the model wants its reasoning back: set "reasoning: echo" in the agent`
	case namesNoModel(said):
		return "the endpoint has no model of this name: check OPENAI_MODEL, or the model of the provider or agent"
	case strings.Contains(said, "response_format"):
		return "the model cannot be held to JSON this way: switch jsonSchema or jsonMode off in its provider's capabilities"
	case strings.Contains(said, "temperature"):
		return "the model takes no temperature, or not this one: leave it out of the agent"
	case strings.Contains(said, "image"):
		return "the model takes no images, or not these: choose one that sees, or switch images off in its provider's capabilities"
	case httpstream.Mentions(said, "tool", "function call"):
		return "the model or its server refuses the tools: start the server with tool calls, or switch tools off in the provider's capabilities"
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		return "check the base URL (OPENAI_BASE_URL), which usually ends in /v1, and the name of the model"
	case strings.Contains(said, "model"):
		return "check the name of the model (OPENAI_MODEL) and what this endpoint takes for it"
	default:
		return ""
	}
}
