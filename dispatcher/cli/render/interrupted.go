package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Interrupted says that a person ended a command before the end of what it followed. Its text says what becomes of that.
type Interrupted struct { //nolint:errname // it is what the person did, not what went wrong
	Text string
	Err  error
	Run  messages.Ref // that continues, if it is one
}

func (e *Interrupted) Error() string { return e.Text }

// Unwrap returns why the command ended.
func (e *Interrupted) Unwrap() error { return e.Err }

// Detached says that a run continues without being followed.
func Detached(run messages.Ref, err error) *Interrupted {
	return &Interrupted{
		Text: fmt.Sprintf("Detached; run %s is still running. Follow: %s. Stop: %s.", run.Run, Command("watch", run), Command("cancel", run)),
		Err:  err, Run: run,
	}
}

// WasInterrupted reports whether a person ended ctx; a time that ran out is another thing.
func WasInterrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// GivenUp says that the fleet in this process ended together with what it was doing.
func GivenUp(what string, err error) *Interrupted {
	return &Interrupted{Text: "Interrupted; " + what + " was given up together with the fleet in this process.", Err: err}
}

// mostNamed is how many runs a message names.
const mostNamed = 5

// DetachedAll is one error for those of all runs that a person no longer follows; nil if there is none.
func DetachedAll(errs []error) *Interrupted {
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
		ids = append(ids, d.Run.Run)
	}
	named := strings.Join(ids, ", ")
	if more := len(all) - len(ids); more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	of := messages.Ref{Tenant: all[0].Run.Tenant}
	return &Interrupted{
		Text: fmt.Sprintf("Detached; runs %s are still running. Follow one: %s. Stop one: %s.", named, CommandFor("watch", of), CommandFor("cancel", of)),
		Err:  all[0].Err,
	}
}

// CommandFor is how to call a command for a run that is to be filled in.
func CommandFor(name string, of messages.Ref) string {
	return Command(name, messages.Ref{Tenant: of.Tenant, Run: "ID"})
}
