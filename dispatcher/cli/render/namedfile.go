package render

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
)

// FromInput as the name of a file or the text of a task means that it is on the standard input.
const FromInput = "-"

// MaxTask bounds a file with a task as JSON, in bytes.
const MaxTask = 2 * messages.MaxInput

// ReadFile reads the file of an argument or a flag, or the standard input for "-": limit bytes at most. What is wrong
// with the file is an *UsageError.
func ReadFile(cmd *cobra.Command, name string, limit int64) ([]byte, error) {
	if name == FromInput {
		return ReadInput(cmd.Context(), cmd.InOrStdin(), limit)
	}
	data, err := document.Read(name, limit)
	return data, FileError(err)
}

// FileError adds to an error about a file the way that a pipe may take.
func FileError(err error) error {
	if errors.Is(err, document.ErrNotRegular) {
		err = fmt.Errorf("%w, or give - and pipe the content to the standard input", err)
	}
	return Misuse(err)
}

// ReadInput reads the standard input until it ends or ctx does.
func ReadInput(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	// Nothing can interrupt a read from a terminal. When ctx ends first, the command ends, and the read with it.
	go func() {
		data, err := document.Bounded(in, limit)
		done <- read{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("read the standard input: %w", context.Cause(ctx))
	case r := <-done:
		if r.err != nil {
			return nil, Usagef("read the standard input: %w", r.err)
		}
		return r.data, nil
	}
}
