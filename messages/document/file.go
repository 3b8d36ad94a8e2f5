// Package document reads the files that people name: agents, schedules, suites, prices, tasks, scripts, keys. Call Read
// for the content of a file, and Only or All for the YAML in it.
//
// A name is an input from outside. Open and Read take regular files alone, never wait for the writer of a pipe, and
// hold no more in memory than the caller's limit. Their errors name the file and say what to do.
package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is wrapped by the errors of Open and Read about a folder, a pipe, a device or a socket.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file, or a link to one, for reading. The caller closes it.
func Open(name string) (*os.File, error) {
	// Opening a device may have effects, and opening a pipe waits for its writer. So look first.
	info, err := os.Stat(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	if err := regular(name, info.Mode()); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may stand there by now
	if err != nil {
		return nil, unreadable(name, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info.Mode())
	}
	if err != nil {
		_ = f.Close() // it was only looked at
		return nil, err
	}
	return f, nil
}

// Read returns the content of a regular file, or of a link to one, of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := Bounded(f, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// Bounded reads all of a stream of at most limit bytes. It waits as long as r does.
func Bounded(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("larger than %d bytes, which is the limit", limit)
	default:
		return data, nil
	}
}

func regular(name string, mode fs.FileMode) error {
	kind := "no regular file"
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return &notRegularError{name: name, kind: kind}
}

type notRegularError struct{ name, kind string }

func (e *notRegularError) Error() string {
	if e.kind == "a folder" {
		return e.name + " is a folder: name a file"
	}
	return e.name + " is " + e.kind + ": name a regular file, so that reading it ends"
}

func (e *notRegularError) Is(target error) bool { return target == ErrNotRegular }

func unreadable(name string, err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the name of the system call
	}
	return fmt.Errorf("open %s: %w: check the name and that this process may read it", name, err)
}
