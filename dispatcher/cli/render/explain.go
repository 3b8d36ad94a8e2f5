package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// lineError is an error whose text is fit for a terminal.
type lineError struct {
	text string
	err  error
}

// Worded is an error with a text that is fit for a terminal.
func Worded(text string, err error) error { return &lineError{text, err} }

func (e *lineError) Error() string { return e.text }
func (e *lineError) Unwrap() error { return e.err }

// OneLine is the error on one line without control characters.
func OneLine(err error) error {
	if text := Visible(err.Error()); text != err.Error() {
		return Worded(text, err)
	}
	return err
}

// Explain is an error of the client about a run, on one line that says what to do next.
func Explain(err error, run messages.Ref) error {
	if err == nil {
		return nil
	}
	say := func(format string, args ...any) error {
		return Worded(Visible(fmt.Sprintf(format, args...)), err)
	}
	var (
		field   *messages.FieldError
		limited *dispatcher.RateLimitError
	)
	switch {
	case errors.As(err, &limited):
		return say("%v: nothing was submitted; try again in %s", err, limited.Wait)
	case errors.Is(err, dispatcher.ErrRemoved):
		return say("run %s of tenant %s: %s", run.Run, run.Tenant, control.RunRemoved)
	case errors.Is(err, dispatcher.ErrNotFound):
		return say("no run %s of tenant %s: `%s` shows those of the last day; --tenant names another tenant", run.Run, run.Tenant, Command("list", messages.Ref{Tenant: run.Tenant}))
	case errors.Is(err, dispatcher.ErrDecided), errors.Is(err, dispatcher.ErrNotSteered):
		return say("run %s: %v", run.Run, err)
	case errors.Is(err, dispatcher.ErrConflict):
		return say("the id %s belongs to another task: choose another --id, or leave it out to get a new one", run.Run)
	case errors.Is(err, dispatcher.ErrNotBegun):
		return say("run %s has not started: no worker has claimed it yet", run.Run)
	case errors.Is(err, dispatcher.ErrEnded):
		return say("run %s has already ended: see `%s`", run.Run, Command("result", run))
	case errors.Is(err, dispatcher.ErrNotEnded):
		return say("run %s has not ended: wait for it with `%s --wait`, or follow it with `%s`", run.Run, Command("result", run), Command("watch", run))
	case errors.Is(err, dispatcher.ErrUnreachable):
		return OneLine(err)
	case errors.Is(err, dispatcher.ErrUnavailable):
		return say("no dispatcher answers: start one with `longshore dispatcher`, or a whole fleet with `longshore dev`")
	case errors.Is(err, dispatcher.ErrUnknownAgent):
		return say("%s: store it with `longshore agents apply`, or leave out --agent for the agent %q", UnknownAgent(err), messages.DefaultAgent)
	case errors.As(err, &field):
		return say("refused: %s: %s", flagOf(field.Field), field.Reason)
	case errors.Is(err, context.DeadlineExceeded):
		return say("run %s: no answer in time: is the fleet up? Ask again with `%s`", run.Run, Command("status", run))
	default:
		return OneLine(err)
	}
}

// UnknownAgent is the text of an ErrUnknownAgent. What a dispatcher answers says by itself that the agent is unknown.
func UnknownAgent(err error) string {
	return strings.TrimPrefix(err.Error(), dispatcher.ErrUnknownAgent.Error()+": ")
}

// Command is how to call a command for a run.
func Command(name string, run messages.Ref) string {
	s := "longshore " + name
	if run.Run != "" {
		s += " " + run.Run
	}
	if run.Tenant != messages.DefaultTenant {
		s += " --tenant " + run.Tenant
	}
	return s
}
