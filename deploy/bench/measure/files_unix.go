//go:build unix

package measure

import (
	"fmt"
	"syscall"
)

// RaiseFiles lets this process open as many files as it may.
func RaiseFiles() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("get the limit of files: %w", err)
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("raise the limit of files: %w", err)
	}
	return nil
}

// MayOpen is how many connections this process can hold, with some to spare for the rest.
func MayOpen() int {
	const spare = 256
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<20 {
		return 1 << 20
	}
	return max(1, int(l.Cur)-spare)
}
