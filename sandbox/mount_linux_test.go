package sandbox_test

import "syscall"

// mountTemp mounts an empty file system, which only root may.
func mountTemp(at string) error {
	return syscall.Mount("longshore-test", at, "tmpfs", 0, "size=1m")
}

func unmount(at string) error { return syscall.Unmount(at, 0) }
