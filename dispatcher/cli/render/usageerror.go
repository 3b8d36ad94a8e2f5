package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// UsageError is a mistake in how a command was called: nothing was connected and nothing was done.
type UsageError struct {
	Err error // one line, without control characters
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef is a mistake in how a command was called.
func Usagef(format string, args ...any) error { return Misuse(fmt.Errorf(format, args...)) }

// Misuse makes a UsageError. A field of a task or a run is called what its flag is called.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	if _, already := errors.AsType[*UsageError](err); already {
		return err
	}
	if field, ok := errors.AsType[*messages.FieldError](err); ok {
		err = &messages.FieldError{Field: flagOf(field.Field), Reason: field.Reason}
	}
	return &UsageError{OneLine(err)}
}

func flagOf(field string) string {
	name, rest, nested := strings.Cut(field, ".")
	switch name {
	case "limits":
		return "--max-steps"
	case "labels":
		name = "label"
	case "workspace":
		name = "named-workspace"
	case "tenant", "agent", "session", "priority", "context", "requires":
	default:
		return field
	}
	if nested {
		return "--" + name + " " + rest
	}
	return "--" + name
}
