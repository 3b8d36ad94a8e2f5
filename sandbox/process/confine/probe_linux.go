//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// try tries to break out of what confines this process, and returns the outcome of each attempt.
func (p *Probe) try(s Setup) Tried {
	t := Tried{PID: os.Getpid()}
	t.Read = attempt(open(p.Canary, syscall.O_RDONLY))
	t.Write = attempt(open(p.Canary, syscall.O_WRONLY))
	t.Kill = attempt(syscall.Kill(p.Parent, 0))
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = syscall.Close(fd)
	}
	t.Socket = attempt(err)
	t.Ring = attempt(call(sysIOUringSetup, 0, 0))
	if s.Limits {
		tryLimits(&t, s.Rlimits)
	}
	return t
}

// tryLimits tries to use more than the limits allow.
func tryLimits(t *Tried, limits []Rlimit) {
	for _, l := range limits {
		value := syscall.Rlimit{Cur: l.Soft, Max: l.Max}
		_ = call(syscall.SYS_PRLIMIT64, 0, uintptr(l.Resource), uintptr(unsafe.Pointer(&value)), 0) // the attempts show whether it did
	}
	var opened []int
	var err error
	for err == nil && len(opened) < 1<<10 {
		var fd int
		if fd, err = syscall.Dup(ControlFD); err == nil {
			opened = append(opened, fd)
		}
	}
	t.Files = attempt(err)
	for _, fd := range opened {
		_ = syscall.Close(fd)
	}
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		for {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	t.Fork = attempt(errno)
}

func open(path string, flags int) error {
	fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

func attempt(err error) syscall.Errno {
	errno, ok := errors.AsType[syscall.Errno](err)
	if err != nil && !ok {
		return syscall.EINVAL
	}
	return errno
}
