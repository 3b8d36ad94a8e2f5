package process

import (
	"errors"
	"strconv"
	"strings"
)

// ErrUnavailable means that programs cannot be confined here as required. Every such error is an *[UnavailableError].
var ErrUnavailable = errors.New("the sandbox is not available")

// UnavailableError says which layers are missing, and why.
type UnavailableError struct {
	Missing Layers
	Reasons []string // One for each thing that failed, such as "namespaces: clone: operation not permitted".
}

// Error names the missing layers and the reasons.
func (e *UnavailableError) Error() string {
	text := ErrUnavailable.Error()
	if e.Missing != 0 {
		text += ": without " + e.Missing.String()
	}
	if len(e.Reasons) > 0 {
		text += " (" + strings.Join(e.Reasons, "; ") + ")"
	}
	return text
}

// Is reports whether target is [ErrUnavailable].
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// CommandError says which field of a [Command] or [Config] is wrong. Nothing ran. It may be shown to a model.
type CommandError struct {
	Field  string // Such as "path" or "dir".
	Reason string // Such as "is not a program".
}

// Error returns the field and the reason.
func (e *CommandError) Error() string { return e.Field + ": " + e.Reason }

// clip quotes a text from outside for an error.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
