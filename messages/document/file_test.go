//go:build unix

package document_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/document"
)

const limit = 1 << 10

// A name from outside may be anything. Reading it ends at once, and says what it is.
func TestReadTakesRegularFilesAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"good": "content", "full": strings.Repeat("x", limit), "large": strings.Repeat("x", limit+1)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo("pipe", 0o600), os.Mkdir("folder", 0o700), os.Symlink("good", "link"), os.Symlink("pipe", "pipelink"), os.Symlink("gone", "dangling")); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sock") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for name, want := range map[string]string{
		"good":      "",
		"full":      "",
		"link":      "",
		"large":     "read large: larger than 1024 bytes, which is the limit",
		"pipe":      "pipe is a pipe: name a regular file, so that reading it ends",
		"pipelink":  "pipelink is a pipe: name a regular file, so that reading it ends",
		"folder":    "folder is a folder: name a file",
		"/dev/zero": "/dev/zero is a device: name a regular file, so that reading it ends",
		socket:      socket + " is a socket: name a regular file, so that reading it ends",
		"gone":      "open gone: no such file or directory: check the name and that this process may read it",
		"dangling":  "open dangling: no such file or directory: check the name and that this process may read it",
	} {
		done := make(chan error, 1)
		go func() {
			_, err := document.Read(name, limit)
			done <- err
		}()
		select {
		case err := <-done:
			if got := text(err); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			if special := strings.Contains(want, "regular") || strings.Contains(want, "folder"); errors.Is(err, document.ErrNotRegular) != special {
				t.Errorf("%s: %v is not told apart", name, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("reading %s does not end", name)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
