package messages

import (
	"errors"
	"fmt"
	"maps"

	"github.com/longshore-run/longshore/messages/strict"
)

// ErrUnknownAgent means that a task names an agent that is not defined.
var ErrUnknownAgent = errors.New("unknown agent")

// FieldError says which field of an input is wrong and why.
type FieldError = strict.FieldError

// Code is the closed list of reasons why a run or a request failed.
type Code string

// Codes.
const (
	CodeInvalidInput       Code = "invalid_input"
	CodeUnknownAgent       Code = "unknown_agent"
	CodeConflict           Code = "conflict"
	CodeNotFound           Code = "not_found"
	CodeMaxSteps           Code = "max_steps"
	CodeBudget             Code = "budget"
	CodeDeadline           Code = "deadline"
	CodeCancelled          Code = "cancelled"
	CodeModelAuth          Code = "model_auth"
	CodeModelQuota         Code = "model_quota"
	CodeModelRateLimited   Code = "model_rate_limited"
	CodeModelOverloaded    Code = "model_overloaded"
	CodeModelTimeout       Code = "model_timeout"
	CodeModelUnreachable   Code = "model_unreachable" // the network: a name, a route, a connection refused or cut
	CodeModelTruncated     Code = "model_truncated"
	CodeModelContextLength Code = "model_context_length"
	CodeModelContentFilter Code = "model_content_filter"
	CodeModelInvalidOutput Code = "model_invalid_output"
	CodeNoProvider         Code = "no_provider"
	CodeToolFailed         Code = "tool_failed"
	CodeToolUnknownOutcome Code = "tool_unknown_outcome"
	CodePolicy             Code = "policy"
	CodeApprovalDenied     Code = "approval_denied"
	CodeApprovalExpired    Code = "approval_expired"
	CodeOutputSchema       Code = "output_schema"
	CodeMemoryUnavailable  Code = "memory_unavailable" // of an agent that does not work without its memories
	CodeMemoryLimit        Code = "memory_limit"       // the run would hold more of its worker's memory than a run may
	CodePoison             Code = "poison"
	CodeRateLimited        Code = "rate_limited"    // a quota of the tenant is used up; the problem says when to come again
	CodeUnauthenticated    Code = "unauthenticated" // no credentials, or invalid ones
	CodeForbidden          Code = "forbidden"       // valid credentials without the permission
	CodeWebhookFailed      Code = "webhook_failed"  // a webhook was not delivered; only of dead letters
	CodeInternal           Code = "internal"

	CodeRepositoryUnreachable Code = "repository_unreachable" // a git repository of the task
)

// Codes are all codes with whether the same request may succeed when it is made again.
func Codes() map[Code]bool {
	return map[Code]bool{
		CodeInvalidInput: false, CodeUnknownAgent: false, CodeConflict: false, CodeNotFound: false,
		CodeMaxSteps: false, CodeBudget: false, CodeDeadline: false, CodeCancelled: false,
		CodeModelAuth: false, CodeModelQuota: false, CodeModelRateLimited: true, CodeModelOverloaded: true,
		CodeModelTimeout: true, CodeModelUnreachable: true, CodeModelTruncated: true, CodeModelContextLength: false, CodeModelContentFilter: false,
		CodeModelInvalidOutput: true, CodeNoProvider: false, CodeToolFailed: true, CodeToolUnknownOutcome: false,
		CodePolicy: false, CodeApprovalDenied: false, CodeApprovalExpired: false, CodeOutputSchema: true, CodeMemoryUnavailable: true,
		CodePoison: false, CodeInternal: true, CodeRateLimited: true, CodeUnauthenticated: false, CodeForbidden: false, CodeWebhookFailed: true,
		CodeRepositoryUnreachable: true, CodeMemoryLimit: false,
	}
}

// Retryable reports whether the same request may succeed when it is made again.
func (c Code) Retryable() bool { return Codes()[c] }

// RunError is why a run failed.
type RunError struct {
	Message string `json:"message"`
	Code    Code   `json:"code,omitempty"`
	// Info says more, as an object: retryable always, and of a worked run the step, the provider that failed, the tool and the
	// call, or the limit with what was spent, needed and allowed of it.
	Info any `json:"info,omitempty"`
}

// Informed is a copy of the error whose Info has what is known too, and whether a retry may help; nil of nil.
func (e *RunError) Informed(more map[string]any) *RunError {
	if e == nil {
		return nil
	}
	info := map[string]any{}
	maps.Copy(info, more)
	if own, ok := e.Info.(map[string]any); ok {
		maps.Copy(info, own)
	}
	info["retryable"] = e.Code.Retryable()
	return &RunError{Message: e.Message, Code: e.Code, Info: info}
}

func (e *RunError) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Problem is an error reply to a request, over NATS and HTTP alike: RFC 9457 problem details with a code and
// whether a retry helps.
type Problem struct { //nolint:errname // the RFC's word
	Type      string `json:"type"` // always "about:blank"; Code tells problems apart
	Title     string `json:"title"`
	Status    int    `json:"status"` // as in HTTP
	Detail    string `json:"detail"`
	Code      Code   `json:"code"`
	Retryable bool   `json:"retryable"`
	Field     string `json:"field,omitempty"`
	// RetryAfter is how many seconds to wait before the request is made again; over HTTP it is the header too.
	RetryAfter int `json:"retryAfter,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }
