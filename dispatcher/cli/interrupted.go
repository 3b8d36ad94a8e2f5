package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Interrupted says that a person ended a command before the end of what it followed. Its text says what becomes of that.
type Interrupted struct { //nolint:errname // it is what the person did, not what went wrong
	text string
	err  error
	run  messages.Ref // that goes on, if it is one
}

func (e *Interrupted) Error() string { return e.text }

// Unwrap returns why the command ended.
func (e *Interrupted) Unwrap() error { return e.err }

// detached says that a run goes on without being followed.
func detached(run messages.Ref, err error) *Interrupted {
	return &Interrupted{
		text: fmt.Sprintf("Detached; run %s is still running. Follow: %s. Stop: %s.", run.Run, command("watch", run), command("cancel", run)),
		err:  err, run: run,
	}
}

// interrupted reports whether a person ended ctx; a time that ran out is another thing.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// givenUp says that the fleet in this process ended together with what it was doing.
func givenUp(what string, err error) *Interrupted {
	return &Interrupted{text: "Interrupted; " + what + " was given up together with the fleet in this process.", err: err}
}

// mostNamed is how many runs a message names.
const mostNamed = 5

// detachedAll is one error for those of all runs that a person no longer follows; nil if there is none.
func detachedAll(errs []error) *Interrupted {
	var all []*Interrupted
	for _, err := range errs {
		if d, ok := errors.AsType[*Interrupted](err); ok {
			all = append(all, d)
		}
	}
	if len(all) < 2 {
		if len(all) == 1 {
			return all[0]
		}
		return nil
	}
	ids := make([]string, 0, mostNamed)
	for _, d := range all[:min(len(all), mostNamed)] {
		ids = append(ids, d.run.Run)
	}
	named := strings.Join(ids, ", ")
	if more := len(all) - len(ids); more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	of := messages.Ref{Tenant: all[0].run.Tenant}
	return &Interrupted{
		text: fmt.Sprintf("Detached; runs %s are still running. Follow one: %s. Stop one: %s.", named, commandFor("watch", of), commandFor("cancel", of)),
		err:  all[0].err,
	}
}

// commandFor is how to call a command for a run that is to be filled in.
func commandFor(name string, of messages.Ref) string {
	return command(name, messages.Ref{Tenant: of.Tenant, Run: "ID"})
}
