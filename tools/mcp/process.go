package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// What a process may say on its standard error before lines are only counted.
const (
	saidLine  = 64 << 10 // bytes of a line that are read at once: half a secret is not known as one
	saidRate  = 5        // lines a second
	saidBurst = 50
)

// dial starts the process of a server, or makes the client of one with an address.
func (s *server) dial(ctx context.Context) (transport, error) {
	if s.cfg.URL != "" {
		return s.dialHTTP(ctx), nil
	}
	return s.start(ctx)
}

// start starts a process. It ends when the connection is broken: it is told to by the end of its input, then by signals to
// its process group.
func (s *server) start(ctx context.Context) (transport, error) {
	cmd := exec.Command(s.cfg.Command[0], s.cfg.Command[1:]...) //nolint:gosec,noctx // the operator's; ctx would kill one process and not its group
	cmd.Dir = s.deps.Dir
	if s.cfg.Dir != "" {
		if cmd.Dir = s.cfg.Dir; !filepath.IsAbs(cmd.Dir) {
			cmd.Dir = filepath.Join(s.deps.Dir, cmd.Dir)
		}
	}
	var err error
	if cmd.Env, err = s.environ(); err != nil {
		return transport{}, err
	}
	group(cmd)
	p := &process{cmd: cmd, exited: make(chan struct{}), heard: make(chan struct{})}
	var ours [3]*os.File
	var theirs []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	for i, to := range []func(*os.File){func(f *os.File) { cmd.Stdin = f }, func(f *os.File) { cmd.Stdout = f }, func(f *os.File) { cmd.Stderr = f }} {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(theirs, ours[:]...)...)
			return transport{}, fmt.Errorf("start process: %w", err)
		}
		if i == 0 {
			r, w = w, r
		}
		ours[i], theirs = r, append(theirs, w)
		to(w)
	}
	err = cmd.Start()
	closeAll(theirs...)
	if err != nil {
		closeAll(ours[:]...)
		return transport{}, fmt.Errorf("start process: %w", err)
	}
	l := newLines(ours[1], ours[0], s.cfg.Bytes)
	go p.wait(l)
	go func() {
		defer close(p.heard)
		s.hear(ctx, ours[2])
	}()
	return transport{Transport: l, conn: func() { _ = l.Close() }, done: func() {
		p.end()
		closeAll(ours[2])
		<-p.heard
	}}, nil
}

// environ is all that a process gets to know of the worker's environment.
func (s *server) environ() ([]string, error) {
	vars := map[string]string{"PATH": s.deps.Path, "HOME": s.deps.Home}
	maps.Copy(vars, s.cfg.Env)
	for name, credential := range s.cfg.Secrets {
		secret, err := s.deps.Credentials.Secret(credential)
		if err != nil {
			return nil, fmt.Errorf("secrets: %w", err)
		}
		vars[name] = secret
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out, nil
}

// hear logs the standard error of a process until it is closed. Once the server works, only for those who look for it: it may
// say what it was asked.
func (s *server) hear(ctx context.Context, from io.Reader) {
	r, limit, lost := bufio.NewReaderSize(from, saidLine), rate.NewLimiter(saidRate, saidBurst), 0
	for cut := false; ; {
		part, more, err := r.ReadLine()
		if err != nil {
			return
		}
		rest := cut // of a line whose beginning was logged
		if cut = more; rest || len(part) == 0 {
			continue
		}
		if !limit.Allow() {
			lost++
			continue
		}
		level := slog.LevelInfo
		if s.present() != nil {
			level = slog.LevelDebug
		}
		s.log.LogAttrs(ctx, level, "said by an MCP server", slog.String("text", s.clean(string(part))), slog.Int("lines_left_out", lost))
		lost = 0
	}
}

// process is a process with its group.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone; others of its group may be left
	heard  chan struct{} // closed when its standard error is closed
}

// wait reaps the process. What it wrote last is read before the connection breaks, unless a child holds it open.
func (p *process) wait(l *lines) {
	_ = p.cmd.Wait() // how it ended is of no use: nothing told it to
	close(p.exited)
	time.AfterFunc(grace, func() { _ = l.Close() })
}

// end waits for the process after its input was closed, helps it to end, and kills what is left of its group.
func (p *process) end() {
	for _, stage := range []func(*exec.Cmd) error{nil, terminate, kill} {
		if stage != nil {
			if err := stage(p.cmd); err != nil && !errors.Is(err, os.ErrProcessDone) {
				continue
			}
		}
		select {
		case <-p.exited:
			_ = kill(p.cmd) // its children
			return
		case <-time.After(grace):
		}
	}
	<-p.exited
}
