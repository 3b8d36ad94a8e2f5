//go:build amd64 || arm64

package confine

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// try tries to break out of what confines this process, and returns what became of each attempt.
func (p *Probe) try(s Setup) Tried {
	t := Tried{PID: os.Getpid()}
	t.Read = attempt(open(p.Canary, unix.O_RDONLY))
	t.Write = attempt(open(p.Canary, unix.O_WRONLY))
	t.Kill = attempt(unix.Kill(p.Parent, 0))
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	t.Socket = attempt(err)
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
	t.Ring = attempt(errno)
	if s.Limits {
		tryLimits(&t, s.Rlimits)
	}
	return t
}

// tryLimits tries to use more than the limits allow.
func tryLimits(t *Tried, limits []Rlimit) {
	for _, l := range limits {
		_ = unix.Prlimit(0, l.Resource, &unix.Rlimit{Cur: l.Soft, Max: l.Max}, nil) // the attempts show whether it did
	}
	var opened []int
	var err error
	for err == nil && len(opened) < 1<<10 {
		var fd int
		if fd, err = unix.Dup(ControlFD); err == nil {
			opened = append(opened, fd)
		}
	}
	t.Files = attempt(err)
	for _, fd := range opened {
		_ = unix.Close(fd)
	}
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		for {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	t.Fork = attempt(errno)
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func attempt(err error) string {
	errno, ok := err.(syscall.Errno) //nolint:errorlint // as the kernel returned it
	switch {
	case err == nil || ok && errno == 0:
		return ""
	case ok:
		return unix.ErrnoName(errno)
	default:
		return err.Error()
	}
}
