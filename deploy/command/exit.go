package command

import (
	"context"
	"errors"
	"io"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// exitCode prints an error once, in one line, and returns how the process ends.
func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	if _, ok := errors.AsType[*settings.Error](err); ok {
		err = &render.UsageError{Err: err}
	}
	return render.Exit(ctx, err, stderr)
}

func usageError(text string) error { return &render.UsageError{Err: errors.New(text)} }
