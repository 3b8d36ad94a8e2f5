package render

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	is := false
	_ = control(f, func(fd int) error { is = term.IsTerminal(fd); return nil })
	return is
}

// control does something with the descriptor of a file and leaves its reads interruptible, which File.Fd would not.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = do(int(fd)) })
	if failed != nil {
		return failed
	}
	return err
}
