//go:build amd64 || arm64

package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// starterSum is the SHA-256, in hexadecimal, of the program longshore-sandbox that was built for this executable. Empty: none was.
var starterSum string //nolint:gochecknoglobals // the linker sets it; the Makefile says how

// starter is the executable that is started as the child: longshore-sandbox, which starts in a third of the time, or this executable.
type starter struct {
	path string   // as the new process sees it
	file *os.File // what was verified, which the child gets as starterFD; nil: this executable
	name string   // for people
}

// starterFD is where a child finds the file that it is executed from: the number that it has in this process may be taken there.
const starterFD = confine.WorkspaceFD + 1

// ownExecutable is the starter that is always there. Why says why it is not the small one.
func ownExecutable(why error) starter {
	return starter{path: "/proc/self/exe", name: "this executable (" + why.Error() + ")"}
}

// besideExecutable is where longshore-sandbox stands, if it was installed.
func besideExecutable() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(self), confine.Name)
}

// openStarter opens the program longshore-sandbox and verifies that it is the one of this build. The file stays open and is what is
// executed, so another file of the same name changes nothing; and only root and the user of this process could write to it.
func openStarter(path, sum string) (s starter, err error) {
	if sum == "" {
		return s, errors.New("it was built without longshore-sandbox")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("there is no %s", path)
	}
	if err != nil {
		return s, fmt.Errorf("open %s: %w", path, bare(err))
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return s, fmt.Errorf("open %s: %w", path, bare(err))
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return s, fmt.Errorf("%s is not a regular file", path)
	case !ok || owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return s, fmt.Errorf("%s belongs to another user than root or the worker's", path)
	case info.Mode().Perm()&0o022 != 0:
		return s, fmt.Errorf("%s may be written by other users: chmod go-w", path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return s, fmt.Errorf("read %s: %w", path, bare(err))
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return s, fmt.Errorf("%s is of another build: install both programs together", path)
	}
	return starter{path: "/proc/self/fd/" + strconv.Itoa(starterFD), file: f, name: path}, nil
}
