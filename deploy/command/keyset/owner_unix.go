//go:build unix

package keyset

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file to the owner of the one that it is about to replace: root may rotate the keys of a process that is not root.
func keepOwner(f *os.File, was fs.FileInfo) error {
	if is, ok := was.Sys().(*syscall.Stat_t); ok && int(is.Uid) != os.Geteuid() {
		return f.Chown(int(is.Uid), int(is.Gid))
	}
	return nil
}
