//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// program is what is to be started, in the form that the kernel takes: a child of a fork can make nothing.
type program struct {
	path   *byte
	args   []*byte
	env    []*byte
	limits []limit
}

type limit struct {
	resource uintptr
	value    syscall.Rlimit
}

func prepare(s Setup) (*program, error) {
	p := new(program)
	var err error
	if p.path, err = syscall.BytePtrFromString(s.Path); err != nil {
		return nil, step("start program", err)
	}
	if p.args, err = syscall.SlicePtrFromStrings(s.Args); err != nil {
		return nil, step("start program", err)
	}
	if p.env, err = syscall.SlicePtrFromStrings(s.Env); err != nil {
		return nil, step("start program", err)
	}
	for _, r := range s.Rlimits {
		p.limits = append(p.limits, limit{uintptr(r.Resource), syscall.Rlimit{Cur: r.Soft, Max: r.Max}})
	}
	return p, nil
}

// become sets the limits and becomes the program. It returns if that fails.
func (p *program) become() error { return syscall.Errno(p.exec()) }

// exec sets the limits, last, for what was done before may need more, and becomes the program. It returns the number of the
// error if that fails.
//
//go:nosplit
//go:norace
func (p *program) exec() uint32 {
	for i := range p.limits {
		l := &p.limits[i]
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, l.resource, uintptr(unsafe.Pointer(&l.value)), 0, 0, 0); errno != 0 {
			return uint32(errno)
		}
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(p.path)), uintptr(unsafe.Pointer(&p.args[0])), uintptr(unsafe.Pointer(&p.env[0])))
	return uint32(errno)
}

// supervise is the first process of a process namespace: it starts the program, reaps what loses its parent, and ends with the
// program; the kernel then ends what is left in the namespace. So is it when the parent is gone.
func (p *program) supervise() {
	pid, err := p.fork()
	if err != nil {
		fail(step("start program", err))
	}
	go obey()
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		got, err := syscall.Wait4(-1, &status, 0, &used)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			fail(step("wait for program", err))
		case got != pid:
			continue
		}
		end := Ended{Code: status.ExitStatus(), CPU: used.Utime.Nano() + used.Stime.Nano(), Memory: used.Maxrss << 10}
		if status.Signaled() {
			end.Signal = int(status.Signal())
		}
		must(send(KindEnded, end))
		syscall.Exit(0)
	}
}

// obey does what the parent says while the program runs.
func obey() {
	for {
		kind, err := receive(nil)
		if err != nil {
			syscall.Exit(FailedCode) // the parent is gone
		}
		if kind == KindTerminate {
			_ = syscall.Kill(-1, syscall.SIGTERM) // all but this process; there may be none left
		}
	}
}

// fork starts the program in a session of its own. The library's fork cannot set limits in between, and they would also bind this
// process.
func (p *program) fork() (pid int, err error) {
	var failed [2]int
	if err := syscall.Pipe2(failed[:], syscall.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer syscall.Close(failed[0])
	pid, errno := p.forkTo(failed[1])
	_ = syscall.Close(failed[1])
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, os.NewSyscallError("fork", errno)
	}
	var code [4]byte
	for {
		n, err := syscall.Read(failed[0], code[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err == nil && n == len(code) {
			return 0, syscall.Errno(*(*uint32)(unsafe.Pointer(&code)))
		}
		return pid, nil // the program runs: its end of the pipe is closed
	}
}

// forkTo forks. Its child has a copy of the memory and this thread alone: it may make system calls and nothing else.
//
//go:nosplit
//go:norace
func (p *program) forkTo(failed int) (int, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	code := uint32(0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0); errno != 0 {
		code = uint32(errno)
	} else {
		code = p.exec()
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(failed), uintptr(unsafe.Pointer(&code)), 4)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, FailedCode, 0, 0)
	}
}
