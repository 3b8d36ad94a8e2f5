//go:build amd64 || arm64

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// waitDelay is how long output is read on after the program ended: another process may hold the pipe.
const waitDelay = time.Second

// run starts a program and waits for its end.
func (n *Native) run(ctx context.Context, c Command, s *confine.Setup) (result Result, err error) {
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	p, err := n.place(c, s)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	streams, err := openStreams(c.Stdin)
	if err != nil {
		return Result{}, err
	}
	defer streams.close()
	ch, err := n.start(launch{setup: s, files: streams.theirs, workspace: p.workspace, cgroup: p.group.folder()})
	streams.closeTheirs()
	if err != nil {
		return Result{}, err
	}
	r := &running{ctx: ctx, command: c, setup: s, limits: c.Limits.or(n.cfg.Limits), child: ch, streams: streams, place: p}
	result, err = r.untilEnd()
	result.Layers = n.layers
	return result, errors.Join(err, ch.close())
}

// place is where a program works: what is opened before it starts and removed after it ended.
type place struct {
	workspace *os.File // nil: none
	temp      string   // empty: in the sandbox
	group     *group   // nil: none
}

func (n *Native) place(c Command, s *confine.Setup) (p *place, err error) {
	p = new(place)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
			p = nil
		}
	}()
	if c.Workspace != nil {
		if err := p.open(c, s); err != nil {
			return p, err
		}
	}
	if !s.Namespaces {
		if p.temp, err = os.MkdirTemp(n.cfg.Temp, "longshore-"); err != nil {
			return p, fmt.Errorf("make temporary folder: %w", err)
		}
		s.Temp = p.temp
		for i, pair := range s.Env { // where namespaces have it, unless the command says otherwise
			if pair == "HOME="+confine.TempAt || pair == "TMPDIR="+confine.TempAt {
				s.Env[i] = strings.TrimSuffix(pair, confine.TempAt) + p.temp
			}
		}
	}
	p.group, err = n.newGroup(c.Limits.or(n.cfg.Limits))
	return p, err
}

// open opens the workspace's folder, and finds its path.
func (p *place) open(c Command, s *confine.Setup) (err error) {
	if p.workspace, err = c.Workspace.Folder(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(p.workspace.Fd()), &st); err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	s.Device, s.Inode = uint64(st.Dev), st.Ino //nolint:unconvert // other types on other systems
	if s.Workspace, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", p.workspace.Fd())); err != nil {
		return fmt.Errorf("open workspace: %w", bare(err))
	}
	return nil
}

func (p *place) close() error {
	var errs []error
	if p.workspace != nil {
		errs = append(errs, p.workspace.Close())
	}
	if p.temp != "" {
		errs = append(errs, removeTemp(p.temp))
	}
	return errors.Join(append(errs, p.group.close())...)
}

// running is a program that runs. One goroutine owns it.
type running struct {
	ctx     context.Context //nolint:containedctx // of one call of run
	command Command
	setup   *confine.Setup
	limits  Limits
	child   *child
	streams *streams
	place   *place

	result    Result
	ended     *confine.Ended // of a supervised program
	began     time.Time
	refused   error // the program was not started
	workerRSS int64 // KiB
	over      bool  // it had too much memory when that was last measured: what is shared is counted twice if a process ends meanwhile
}

// untilEnd begins the program, follows it, and returns when everything that belongs to it has ended.
func (r *running) untilEnd() (Result, error) {
	serving, err := r.begin()
	if err != nil {
		r.child.kill()
		_, _ = r.child.reap() // how it ended is of no use
		serving.end()
		return Result{}, err
	}
	state, err := r.follow()
	serving.end()
	if err != nil {
		return Result{}, err
	}
	if r.refused != nil {
		return Result{}, r.refused
	}
	r.settle(state)
	return r.result, nil
}

// begin waits until the child is confined, starts the proxy, asks Begin and starts the program.
func (r *running) begin() (*serving, error) {
	stop := context.AfterFunc(r.ctx, func() { _ = r.child.control.SetReadDeadline(time.Unix(1, 0)) })
	_, listener, err := r.child.ready()
	stopped := !stop()
	serving, serveErr := r.serve(listener)
	switch {
	case stopped:
		return serving, fmt.Errorf("start program: %w", context.Cause(r.ctx))
	case err != nil || serveErr != nil:
		return serving, errors.Join(err, serveErr)
	}
	if r.command.Begin != nil {
		if err := r.command.Begin(); err != nil {
			return serving, err
		}
	}
	// The child shared the worker's memory until it was executed, and the kernel counts that as the most that it had: only what is more
	// than that is the program's. The program of a supervisor is counted by itself.
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		return serving, fmt.Errorf("start program: %w", err)
	}
	r.began, r.workerRSS = time.Now(), own.Maxrss
	return serving, r.child.send(confine.KindGo, nil)
}

// serving is a proxy that serves.
type serving struct {
	listener net.Listener
	done     chan struct{}
}

func (r *running) serve(file *os.File) (*serving, error) {
	if file == nil {
		return nil, nil
	}
	l, err := net.FileListener(file)
	err = errors.Join(err, file.Close())
	if err != nil {
		return nil, fmt.Errorf("take listener: %w", err)
	}
	s := &serving{listener: l, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = r.command.Proxy(l) // it ends because the listener is closed; if it ends before, the program has no network
	}()
	return s, nil
}

func (s *serving) end() {
	if s != nil {
		_ = s.listener.Close()
		<-s.done
	}
}

// follow takes the program's output and ends it when it may not continue.
func (r *running) follow() (*os.ProcessState, error) {
	exited, reports := make(chan struct{}), make(chan report, 1)
	go func() {
		defer close(exited)
		r.child.ended()
	}()
	go func() {
		defer close(reports)
		if last, err := r.child.hear(); err == nil {
			reports <- last
		}
	}()
	wall := time.NewTimer(r.limits.Wall)
	defer wall.Stop()
	disk := time.NewTimer(diskEvery)
	defer disk.Stop()
	memory := time.NewTimer(memoryEvery)
	defer memory.Stop()
	if r.place.group != nil {
		memory.Stop()
	}
	output, canceled := r.streams.read(), r.ctx.Done()
	var state *os.ProcessState
	var err error
	for output != nil || state == nil && err == nil {
		select {
		case part, ok := <-output:
			if !ok {
				output = nil
				continue
			}
			r.take(part, state == nil)
		case <-wall.C:
			if r.result.Reason == Timeout {
				r.kill(state == nil, Timeout)
				continue
			}
			r.result.Reason = earlier(r.result.Reason, Timeout)
			if state == nil {
				r.child.terminate()
			}
			wall.Reset(r.limits.Grace)
		case <-canceled:
			canceled = nil
			r.kill(state == nil, Canceled)
		case <-disk.C:
			began := time.Now()
			if r.overfull() {
				r.kill(state == nil, DiskLimit)
				continue
			}
			disk.Reset(max(diskEvery, 20*time.Since(began)))
		case <-memory.C:
			began := time.Now()
			over := state == nil && r.oversized()
			if over && r.over {
				r.kill(true, MemoryLimit)
				continue
			}
			r.over = over
			memory.Reset(max(memoryEvery, memoryShare*time.Since(began)))
		case <-exited:
			exited = nil
			for last := range reports { // ends with the child
				r.heard(last)
			}
			state, err = r.child.reap()
			r.streams.endWithin(waitDelay)
		}
	}
	if r.overfull() {
		r.result.Reason = earlier(r.result.Reason, DiskLimit)
	}
	return state, err
}

// kill ends the program for a reason, unless it has ended.
func (r *running) kill(runs bool, why Reason) {
	r.result.Reason = earlier(r.result.Reason, why)
	if runs {
		r.child.kill()
	}
}

// earlier returns the reason that came first.
func earlier(a, b Reason) Reason {
	if a != "" {
		return a
	}
	return b
}

// take keeps output, and ends the program when it is too much.
func (r *running) take(p part, runs bool) {
	room := r.limits.Output - int64(len(r.result.Stdout)) - int64(len(r.result.Stderr))
	text := p.text
	if int64(len(text)) > room {
		text = text[:room]
		r.result.Truncated = true
		r.kill(runs, OutputLimit)
	}
	if len(text) == 0 {
		return
	}
	if p.stream == Stderr {
		r.result.Stderr = append(r.result.Stderr, text...)
	} else {
		r.result.Stdout = append(r.result.Stdout, text...)
	}
	if r.command.Output != nil {
		r.command.Output(p.stream, text)
	}
}

// heard takes what the child said after it was told to start the program.
func (r *running) heard(last report) {
	switch last.kind {
	case confine.KindFailed:
		var f confine.Failed
		if err := json.Unmarshal(last.payload, &f); err != nil {
			r.refused = fmt.Errorf("hear sandboxed process: %w", err)
			return
		}
		r.refused = notStarted(r.command.Path, f)
	case confine.KindEnded:
		var e confine.Ended
		if err := json.Unmarshal(last.payload, &e); err == nil {
			r.ended = &e
		}
	default:
	}
}

// settle says how the program ended.
func (r *running) settle(state *os.ProcessState) {
	end := confine.Ended{Code: state.ExitCode(), CPU: (state.UserTime() + state.SystemTime()).Nanoseconds()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Signal = int(status.Signal())
	}
	if used, ok := state.SysUsage().(*syscall.Rusage); ok && used.Maxrss > r.workerRSS {
		end.Memory = used.Maxrss << 10
	}
	if r.ended != nil {
		end = *r.ended
	}
	r.result.ExitCode = end.Code
	if end.Signal != 0 {
		r.result.ExitCode, r.result.Signal = -1, unix.SignalName(unix.Signal(end.Signal))
	}
	r.result.Usage = Usage{Wall: time.Since(r.began), CPU: time.Duration(end.CPU), Memory: end.Memory}
	why := Exited
	switch {
	case r.place.group.outOfMemory():
		why = MemoryLimit
	case end.Signal == int(unix.SIGXCPU), end.Signal == int(unix.SIGKILL) && time.Duration(end.CPU) >= r.limits.CPU:
		why = CPULimit
	case end.Signal == int(unix.SIGXFSZ):
		why = FileLimit
	case end.Signal == int(unix.SIGSYS):
		why = Violation
	}
	r.result.Reason = earlier(r.result.Reason, why)
}
