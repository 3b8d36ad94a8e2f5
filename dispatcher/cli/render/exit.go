package render

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1   // a run failed, or an error
	ExitUsage  = 2   // the command line or the environment asks for something impossible
	ExitSignal = 130 // SIGINT or SIGTERM
)

// Exit prints the error of a command once, in one line, and returns the code with which the process ends.
func Exit(ctx context.Context, err error, stderr io.Writer) int {
	var (
		ended  *Interrupted
		usage  *UsageError
		failed *RunFailed
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &failed): // its report is the message
		return ExitFailed
	case errors.As(err, &ended):
		fmt.Fprintln(stderr, err)
		return ExitSignal
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "Interrupted.")
		return ExitSignal
	case errors.As(err, &usage), errors.Is(err, dispatcher.ErrUnknownAgent):
		fmt.Fprintln(stderr, "longshore:", err)
		return ExitUsage
	default:
		fmt.Fprintln(stderr, "longshore:", err)
		if p, ok := errors.AsType[*messages.Problem](err); ok && p.Code == messages.CodeUnauthenticated {
			fmt.Fprintln(stderr, "Set LONGSHORE_API_KEY to a key of this fleet: `longshore keys api create` makes one.")
		}
		return ExitFailed
	}
}
