// Package processtest is for tests that start their own program as another user.
package processtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Copy writes the program of the test to a folder, where every user may run it, and returns its path.
func Copy(tb testing.TB, dir, name string) string {
	tb.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, name)
	// A child that is forked while it is written would hold it open for writing, and it could not be started: text file busy.
	syscall.ForkLock.RLock()
	err = errors.Join(os.WriteFile(path, program, 0o600), os.Chmod(path, 0o755)) //nolint:gosec // another user runs it
	syscall.ForkLock.RUnlock()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}
