//go:build amd64 || arm64

package confine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func init() { //nolint:gochecknoinits // the packages of the whole program would be initialised first, for each sandboxed process
	if len(os.Args) == 1 && os.Args[0] == Name {
		run()
	}
}

// run is the whole life of the child.
func run() {
	runtime.LockOSThread() // what confines is of a thread, and the program inherits that of this one
	var s Setup
	kind, err := receive(&s)
	if err != nil || kind != KindSetup {
		syscall.Exit(FailedCode) // started by hand, or the parent is gone
	}
	if err := s.confine(); err != nil {
		fail(err)
	}
	if s.Probe != nil {
		must(send(KindTried, s.Probe.try(s)))
		syscall.Exit(0)
	}
	p, err := prepare(s)
	if err != nil {
		fail(err)
	}
	must(send(KindReady, nil))
	if kind, err := receive(nil); err != nil || kind != KindGo {
		syscall.Exit(FailedCode)
	}
	if s.Namespaces {
		p.supervise()
	}
	fail(step("start program", p.become()))
}

// confine applies the layers, from the outermost to the innermost.
func (s *Setup) confine() error {
	// The program gets no file but its three; some are of this process's own runtime, so it keeps them.
	if err := call(sysCloseRange, ControlFD, math.MaxInt32, closeRangeCloexec); err != nil {
		return step("close files", err)
	}
	if os.Geteuid() == 0 {
		return step("drop privileges", errors.New("programs are never run as user 0: run the worker as another user"))
	}
	syscall.Umask(0o022)
	if s.Namespaces {
		if err := s.enter(); err != nil {
			return err
		}
	}
	if err := s.chdir(); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return step("set no_new_privs", err)
	}
	if s.Landlock {
		if err := s.restrict(); err != nil {
			return err
		}
	}
	if len(s.Filter) > 0 {
		return step("load the filter of system calls", load(s.Filter))
	}
	return nil
}

// chdir enters the working directory, and follows no link on the way.
func (s *Setup) chdir() error {
	at, fd, resolve := s.Temp, atFDCWD, uint64(0)
	if s.Namespaces {
		at = TempAt
	}
	if s.Workspace != "" {
		fd, at, resolve = WorkspaceFD, s.Dir, resolveBeneath|resolveNoSymlinks|resolveNoMagiclinks
		if at == "" {
			at = "."
		}
		if s.Namespaces { // the descriptor is of a mount that is gone
			root, err := syscall.Open(WorkspaceAt, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
			if err != nil {
				return step("open workspace", err)
			}
			defer syscall.Close(root)
			fd = root
		}
	}
	dir, err := openat2(fd, at, resolve)
	if err != nil {
		return step(StepDir, err)
	}
	defer syscall.Close(dir)
	return step(StepDir, syscall.Fchdir(dir))
}

// load applies a filter to this thread and the program that is started from it.
func load(filter []byte) error {
	const size = int(unsafe.Sizeof(syscall.SockFilter{}))
	instructions := make([]syscall.SockFilter, len(filter)/size)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&instructions[0])), len(instructions)*size), filter)
	program := syscall.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	if _, _, errno := syscall.Syscall(sysSeccomp, seccompSetModeFilter, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// stepError is a step that failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{name, err}
}

// fail reports what failed and ends the child.
func fail(err error) {
	f := Failed{Text: err.Error()}
	if s, ok := errors.AsType[*stepError](err); ok {
		f.Step, f.Text = s.step, s.err.Error()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		f.Errno = int(errno)
	}
	_ = send(KindFailed, f) // the parent may be gone
	syscall.Exit(FailedCode)
}

// must ends the child if its parent is gone.
func must(err error) {
	if err != nil {
		syscall.Exit(FailedCode)
	}
}

// receive reads a frame.
func receive(into any) (Kind, error) {
	var header [HeaderSize]byte
	if err := readFull(header[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > MaxFrame {
		return 0, syscall.EMSGSIZE
	}
	payload := make([]byte, size)
	if err := readFull(payload); err != nil {
		return 0, err
	}
	if into == nil || size == 0 {
		return Kind(header[0]), nil
	}
	return Kind(header[0]), json.Unmarshal(payload, into)
}

func readFull(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(ControlFD, b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		default:
			b = b[n:]
		}
	}
	return nil
}

// send writes a frame, with descriptors if there are some.
func send(kind Kind, payload any, fds ...int) error {
	frame := append(make([]byte, 0, HeaderSize), byte(kind), 0, 0, 0, 0)
	if payload != nil {
		text, err := json.Marshal(payload)
		if err != nil {
			return err
		}
		frame = append(frame, text...)
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-HeaderSize))
	if len(fds) > 0 {
		return syscall.Sendmsg(ControlFD, frame, syscall.UnixRights(fds...), nil, 0)
	}
	for len(frame) > 0 {
		n, err := syscall.Write(ControlFD, frame)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		frame = frame[n:]
	}
	return nil
}
