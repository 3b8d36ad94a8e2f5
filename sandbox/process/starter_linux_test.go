//go:build amd64 || arm64

package process_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// copied is a copy of longshore-sandbox in a folder of its own, and its sum.
func copied(t *testing.T) (path, sum string) {
	t.Helper()
	from, err := smallStarter()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), confine.Name)
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, text, 0o755), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path, sumOf(t, path)
}

// What is not verified as longshore-sandbox of this build is never executed: the executable itself is the child, and says why.
func TestStarterIsVerified(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(path string) (at, sum string, err error) // empty: as they are
		want  string
	}{
		"none was built":    {func(string) (string, string, error) { return "", "-", nil }, "it was built without longshore-sandbox"},
		"none is installed": {func(path string) (string, string, error) { return "", "", os.Remove(path) }, "there is no "},
		"another build": {func(path string) (string, string, error) {
			return "", "", appendTo(path, "x")
		}, "is of another build: install both programs together"},
		"others may write": {func(path string) (string, string, error) {
			return "", "", os.Chmod(path, 0o775)
		}, "may be written by other users: chmod go-w"},
		"of another user": {func(path string) (string, string, error) {
			if os.Geteuid() != 0 {
				return "", "", errors.ErrUnsupported
			}
			return "", "", os.Chown(path, unprivileged, unprivileged)
		}, "belongs to another user than root or the worker's"},
		"a link": {func(path string) (string, string, error) {
			return path + "-link", "", os.Symlink(path, path+"-link")
		}, "too many levels of symbolic links"},
		"a folder": {func(path string) (string, string, error) {
			return filepath.Dir(path), "", nil
		}, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path, sum := copied(t)
			at, other, err := test.spoil(path)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip("left out: only root can give a file to another user")
			}
			if err != nil {
				t.Fatal(err)
			}
			if at != "" {
				path = at
			}
			if other != "" {
				sum = strings.Trim(other, "-")
			}
			wantOwnExecutable(t, path, sum, test.want)
		})
	}
}

// A program with the right sum that does not confine itself fails the self-test.
func TestStarterThatDoesNotConfine(t *testing.T) {
	path, _ := copied(t)
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	wantOwnExecutable(t, path, sumOf(t, path), "the sandbox is not available")
}

func wantOwnExecutable(t *testing.T, path, sum, why string) {
	t.Helper()
	n, err := process.NewWith(t.Context(), process.Config{}, path, sum)
	if err != nil {
		t.Fatal(err)
	}
	if by := n.StartedBy(); !strings.HasPrefix(by, "this executable (") || !strings.Contains(by, why) {
		t.Errorf("started by %s, want %q", by, why)
	}
	if r, err := n.Run(t.Context(), process.Command{Path: "echo", Args: []string{"x"}}); err != nil || string(r.Stdout) != "x\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

// The file that was verified is the one that is executed, whatever has its name later.
func TestStarterIsReplaced(t *testing.T) {
	path, sum := copied(t)
	n, err := process.NewWith(t.Context(), process.Config{}, path, sum)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("#!/bin/sh\ntouch "+path+"-ran\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if r, err := n.Run(t.Context(), process.Command{Path: "echo", Args: []string{"x"}}); err != nil || string(r.Stdout) != "x\n" || n.StartedBy() != path {
		t.Errorf("%+v, %v, by %s", r, err, n.StartedBy())
	}
	if _, err := os.Stat(path + "-ran"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other file ran: %v", err)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
