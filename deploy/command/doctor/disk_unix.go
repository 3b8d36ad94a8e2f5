//go:build linux || darwin

package doctor

import (
	"fmt"
	"syscall"
)

// freeSpace is what this user may still write where a folder is, and the size of that disk, in bytes.
func freeSpace(dir string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("check the disk: %w", err)
	}
	block := uint64(s.Bsize)
	return s.Bavail * block, s.Blocks * block, nil
}
