package model

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Error is a failed call. Every error of a Provider but a cancelled context is one.
type Error struct {
	Class      Class
	Status     int           // HTTP status; 0 without one
	Detail     string        // what the provider said, shortened, without secrets
	Hint       string        // what to do about it, a sentence; may be empty
	RequestID  string        // the provider's
	RetryAfter time.Duration // as the provider asked; 0: it did not
	Provider   string        // "provider/model" that failed, from a Router; may be empty
	Paused     string        // the provider that an operator paused, when no other can take the request
}

func (e *Error) Error() string {
	s := "model: " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	switch { // what to do comes first: what a provider said may be long, and a terminal cuts the end off
	case e.Hint != "" && e.Detail != "":
		return s + ": " + e.Hint + " (" + e.Detail + ")"
	case e.Hint != "" || e.Detail != "":
		return s + ": " + e.Hint + e.Detail
	default:
		return s
	}
}

// Class sorts errors by what is to be done about them.
type Class string

// Classes.
const (
	RateLimited    Class = "rate_limited"
	Overloaded     Class = "overloaded"
	Timeout        Class = "timeout"
	Network        Class = "network"
	Truncated      Class = "truncated" // the stream was cut
	Auth           Class = "auth"
	Quota          Class = "quota"
	InvalidRequest Class = "invalid_request"
	ContextLength  Class = "context_length"
	ContentFilter  Class = "content_filter"
	ModelOutput    Class = "model_output"    // what came is not a reply
	ReplyTooLarge  Class = "reply_too_large" // beyond a bound on its bytes; asked again it would be as large
	NoProvider     Class = "no_provider"
	Unknown        Class = "unknown"
)

// Retryable reports whether the same call may succeed when it is made again.
func (e *Error) Retryable() bool { return e.Code().Retryable() }

// Code is the error's code in the public contract.
func (e *Error) Code() messages.Code {
	switch e.Class {
	case RateLimited:
		return messages.CodeModelRateLimited
	case Overloaded:
		return messages.CodeModelOverloaded
	case Timeout:
		return messages.CodeModelTimeout
	case Network:
		return messages.CodeModelUnreachable
	case Truncated:
		return messages.CodeModelTruncated
	case Auth:
		return messages.CodeModelAuth
	case Quota:
		return messages.CodeModelQuota
	case ContextLength, ReplyTooLarge:
		return messages.CodeModelContextLength
	case ContentFilter:
		return messages.CodeModelContentFilter
	case ModelOutput:
		return messages.CodeModelInvalidOutput
	case NoProvider:
		return messages.CodeNoProvider
	case InvalidRequest:
		return messages.CodeInvalidInput
	case Unknown:
		return messages.CodeInternal
	default:
		return messages.CodeInternal
	}
}
