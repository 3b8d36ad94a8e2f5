package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
)

// maxTask bounds a file with a task as JSON, in bytes.
const maxTask = 2 * messages.MaxInput

// ReadFile reads the file of an argument or a flag, or the standard input for "-": limit bytes at most. What is wrong
// with the file is an *UsageError.
func ReadFile(cmd *cobra.Command, name string, limit int64) ([]byte, error) {
	if name == fromInput {
		return readInput(cmd.Context(), cmd.InOrStdin(), limit)
	}
	data, err := document.Read(name, limit)
	return data, fileError(err)
}

// ReadTask reads a file with a task as JSON, or the standard input for "-". What is wrong with the file is an
// *UsageError.
func ReadTask(cmd *cobra.Command, name string) ([]byte, error) { return ReadFile(cmd, name, maxTask) }

// fileError adds to an error about a file the way that a pipe may take.
func fileError(err error) error {
	if errors.Is(err, document.ErrNotRegular) {
		err = fmt.Errorf("%w, or give - and pipe the content to the standard input", err)
	}
	return usage(err)
}

// readInput reads the standard input until it ends or ctx does.
func readInput(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
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
			return nil, usagef("read the standard input: %w", r.err)
		}
		return r.data, nil
	}
}
