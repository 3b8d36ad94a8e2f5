package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// lineError is an error whose text is fit for a terminal.
type lineError struct {
	text string
	err  error
}

func (e *lineError) Error() string { return e.text }
func (e *lineError) Unwrap() error { return e.err }

// oneLine is the error on one line without control characters.
func oneLine(err error) error {
	if text := visible(err.Error()); text != err.Error() {
		return &lineError{text, err}
	}
	return err
}

// explain is an error of the client about a run, on one line that says what to do next.
func explain(err error, run messages.Ref) error {
	if err == nil {
		return nil
	}
	say := func(format string, args ...any) error {
		return &lineError{visible(fmt.Sprintf(format, args...)), err}
	}
	var (
		field   *messages.FieldError
		limited *dispatcher.RateLimitError
	)
	switch {
	case errors.As(err, &limited):
		return say("%v: nothing was submitted, come again in %s", err, limited.Wait)
	case errors.Is(err, dispatcher.ErrRemoved):
		return say("run %s of tenant %s: %s", run.Run, run.Tenant, messages.RunRemoved)
	case errors.Is(err, dispatcher.ErrNotFound):
		return say("no run %s of tenant %s: `%s` shows those of the last day; --tenant names another tenant", run.Run, run.Tenant, command("list", messages.Ref{Tenant: run.Tenant}))
	case errors.Is(err, dispatcher.ErrDecided), errors.Is(err, dispatcher.ErrNotSteered):
		return say("run %s: %v", run.Run, err)
	case errors.Is(err, dispatcher.ErrConflict):
		return say("the id %s is taken by another task: choose another --id, or leave it out to get a new one", run.Run)
	case errors.Is(err, dispatcher.ErrNotBegun):
		return say("run %s has not begun: no worker has taken it up yet", run.Run)
	case errors.Is(err, dispatcher.ErrEnded):
		return say("run %s has ended already: see `%s`", run.Run, command("result", run))
	case errors.Is(err, dispatcher.ErrNotEnded):
		return say("run %s has not ended: wait for it with `%s --wait`, or follow it with `%s`", run.Run, command("result", run), command("watch", run))
	case errors.Is(err, dispatcher.ErrUnreachable):
		return oneLine(err)
	case errors.Is(err, dispatcher.ErrUnavailable):
		return say("no dispatcher answers: start one with `longshore dispatcher`, or a whole fleet with `longshore dev`")
	case errors.Is(err, dispatcher.ErrUnknownAgent):
		return say("%s: store it with `longshore agents apply`, or leave out --agent for the agent %q", unknownAgent(err), messages.DefaultAgent)
	case errors.As(err, &field):
		return say("refused: %s: %s", flagOf(field.Field), field.Reason)
	case errors.Is(err, context.DeadlineExceeded):
		return say("run %s: no answer in time: is the fleet up? Ask again with `%s`", run.Run, command("status", run))
	default:
		return oneLine(err)
	}
}

// unknownAgent is the text of an ErrUnknownAgent. What a dispatcher answers says by itself that the agent is unknown.
func unknownAgent(err error) string {
	return strings.TrimPrefix(err.Error(), dispatcher.ErrUnknownAgent.Error()+": ")
}

// command is how to call a command for a run.
func command(name string, run messages.Ref) string {
	s := "longshore " + name
	if run.Run != "" {
		s += " " + run.Run
	}
	if run.Tenant != messages.DefaultTenant {
		s += " --tenant " + run.Tenant
	}
	return s
}
