//go:build amd64 || arm64

package process

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// readyWithin is how long a child may take to confine itself. It takes some milliseconds.
const readyWithin = 20 * time.Second

// child is a started child: first the one that confines itself, then the program, or its supervisor.
type child struct {
	process    *os.Process
	control    *net.UnixConn
	namespaces bool
}

// launch is what a child is started with.
type launch struct {
	setup     *confine.Setup
	files     [3]*os.File
	workspace *os.File // nil: none
	cgroup    *os.File // nil: none
}

// start starts a child, which waits on its control socket. The caller must stay on its thread until the child has ended: the
// kernel kills the child when the thread ends that started it.
func (n *Native) start(l launch) (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start sandboxed process: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	err = errors.Join(err, ours.Close())
	if err != nil {
		return nil, fmt.Errorf("start sandboxed process: %w", err)
	}
	control, _ := conn.(*net.UnixConn) // of a Unix socket
	attr := &os.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GOGC=off", "GOTRACEBACK=none"},
		Files: []*os.File{l.files[0], l.files[1], l.files[2], theirs, l.workspace},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	if n.starter.file != nil {
		attr.Files = append(attr.Files, n.starter.file)
	}
	if l.setup.Namespaces {
		// Package syscall shares the memory until the child executes, but not with a new user namespace, because it may have to write
		// that one's maps meanwhile. Here they are written later (see brief), and a copy of a worker's memory costs milliseconds.
		attr.Sys.Cloneflags = unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
			unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
		attr.Sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	}
	if l.cgroup != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(l.cgroup.Fd())
	}
	p, err := os.StartProcess(n.starter.path, []string{confine.Name}, attr)
	if err != nil {
		missing := always // what the kernel refuses now it may have granted before
		if l.setup.Namespaces {
			missing = LayerNamespaces
		}
		_ = control.Close()
		return nil, &UnavailableError{Missing: missing, Reasons: []string{"start sandboxed process: " + bare(err).Error()}}
	}
	c := &child{process: p, control: control, namespaces: l.setup.Namespaces}
	if err := c.brief(l.setup); err != nil {
		c.kill()
		_, _ = c.reap()
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// brief tells the child what to do. In namespaces it first gives the child its user: written from here and after the start, for
// the files in /proc of a child of a hidden process belong to root until it is another program.
func (c *child) brief(s *confine.Setup) error {
	if s.Namespaces {
		for _, file := range [][2]string{
			{"setgroups", "deny"},
			{"uid_map", fmt.Sprintf("%d %d 1", confine.ID, os.Geteuid())},
			{"gid_map", fmt.Sprintf("%d %d 1", confine.ID, os.Getegid())},
		} {
			path := filepath.Join("/proc", strconv.Itoa(c.process.Pid), file[0])
			if err := os.WriteFile(path, []byte(file[1]), 0); err != nil {
				return fmt.Errorf("map user: %s: %w", file[0], bare(err))
			}
		}
	}
	return c.send(confine.KindSetup, s)
}

func (c *child) send(kind confine.Kind, payload any) error {
	frame := append(make([]byte, 0, confine.HeaderSize), byte(kind), 0, 0, 0, 0)
	if payload != nil {
		text, err := json.Marshal(payload)
		if err != nil {
			return fmt.Errorf("tell sandboxed process: %w", err)
		}
		frame = append(frame, text...)
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-confine.HeaderSize))
	if _, err := c.control.Write(frame); err != nil {
		return fmt.Errorf("tell sandboxed process: %w", err)
	}
	return nil
}

// report is a frame of the child.
type report struct {
	kind    confine.Kind
	payload []byte
	file    *os.File // of a listener
}

// hear reads a frame; its error is io.EOF when the child ended, or became the program.
func (c *child) hear() (report, error) {
	header, rights := make([]byte, confine.HeaderSize), make([]byte, unix.CmsgSpace(4))
	n, oob, _, _, err := c.control.ReadMsgUnix(header, rights)
	if err != nil {
		return report{}, err
	}
	var r report
	if oob > 0 {
		if r.file, err = received(rights[:oob]); err != nil {
			return report{}, err
		}
	}
	if n == 0 {
		return r, io.EOF
	}
	if _, err := io.ReadFull(c.control, header[n:]); err != nil {
		return r, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > confine.MaxFrame {
		return r, errors.New("a report of the sandboxed process is too long")
	}
	r.kind, r.payload = confine.Kind(header[0]), make([]byte, size)
	_, err = io.ReadFull(c.control, r.payload)
	return r, err
}

func received(rights []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("take listener: %w", err)
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
			unix.CloseOnExec(fds[0])
			return os.NewFile(uintptr(fds[0]), "proxy"), nil
		}
	}
	return nil, errors.New("take listener: the sandboxed process sent something else")
}

// ready waits until the child is confined, or has tried what a self-test asks for.
func (c *child) ready() (last report, listener *os.File, err error) {
	if err := c.control.SetReadDeadline(time.Now().Add(readyWithin)); err != nil {
		return last, nil, err
	}
	for {
		r, err := c.hear()
		switch {
		case errors.Is(err, io.EOF):
			return r, listener, errGone
		case err != nil:
			return r, listener, fmt.Errorf("hear sandboxed process: %w", err)
		}
		switch r.kind {
		case confine.KindListener:
			listener = r.file
		case confine.KindFailed:
			var f confine.Failed
			if err := json.Unmarshal(r.payload, &f); err != nil {
				return r, listener, fmt.Errorf("hear sandboxed process: %w", err)
			}
			return r, listener, failed(f)
		default:
			return r, listener, c.control.SetReadDeadline(time.Time{})
		}
	}
}

// terminate asks the program and its children to end.
func (c *child) terminate() {
	if c.namespaces {
		_ = c.send(confine.KindTerminate, nil) // it may have ended
		return
	}
	_ = unix.Kill(-c.process.Pid, unix.SIGTERM)
}

// kill ends the program and all that it started. It may be called until reap is.
func (c *child) kill() {
	if c.namespaces {
		_ = c.process.Kill() // the first process of its namespace: the kernel ends the others
		return
	}
	_ = unix.Kill(-c.process.Pid, unix.SIGKILL) // no process could leave the group
}

// ended waits for the child's end and leaves it unreaped: until then no other process or group can have its number.
func (c *child) ended() {
	for {
		if err := unix.Waitid(unix.P_PID, c.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reap takes the child's end, after ending what it left behind. Then kill must no longer be called.
func (c *child) reap() (*os.ProcessState, error) {
	c.ended()
	c.kill()
	state, err := c.process.Wait()
	if err != nil {
		return nil, fmt.Errorf("wait for sandboxed process: %w", err)
	}
	for !c.namespaces { // of a worker that is the first process of a container: its grandchildren became its children
		if _, err := unix.Wait4(-c.process.Pid, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return state, nil
}

func (c *child) close() error {
	if err := c.control.Close(); err != nil {
		return fmt.Errorf("close control socket: %w", err)
	}
	return nil
}

// bare is an error of package os without the path.
func bare(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	if se, ok := errors.AsType[*os.SyscallError](err); ok {
		return se.Err
	}
	return err
}
