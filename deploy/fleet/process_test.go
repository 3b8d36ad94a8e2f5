//go:build unix

package fleet_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child of the test. It is killed when the test ends.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output is read
	out  bytes.Buffer  // standard output; read it after done

	mu    sync.Mutex
	lines []string // of the error output
	more  chan struct{}
}

// spawn starts a program with an environment of its own. Nothing of the test's environment reaches it but where
// programs and temporary files are.
func spawn(t *testing.T, name string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, done: make(chan struct{}), more: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "LONGSHORE_ENCRYPTION=off"}, env...)
	p.cmd.Stdout = &p.out
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.read(stderr)
		_ = p.cmd.Wait() // the exit code tells
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, strings.Join(p.log(), "\n"))
		}
	})
	return p
}

func (p *process) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			p.mu.Lock()
			p.lines = append(p.lines, strings.TrimSuffix(line, "\n"))
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// log is the error output so far.
func (p *process) log() []string {
	lines, _ := p.seen()
	return lines
}

func (p *process) seen() ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.lines), p.more
}

// line waits for a line of the error output that contains all parts.
func (p *process) line(parts ...string) string {
	p.t.Helper()
	deadline := time.After(patience)
	for at := 0; ; {
		lines, more := p.seen()
		for ; at < len(lines); at++ {
			if containsAll(lines[at], parts) {
				return lines[at]
			}
		}
		select {
		case <-more:
		case <-p.done:
			if lines, _ := p.seen(); at == len(lines) {
				p.t.Fatalf("%s ended with %d before it said %q", p.name, p.code(), parts)
			}
		case <-deadline:
			p.t.Fatalf("%s does not say %q", p.name, parts)
		}
	}
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// kill ends the process as a crash does, and waits for its end.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %s: %v", p.name, err)
	}
	<-p.done
}

// wait waits for the end of the process and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code()
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
		return 0
	}
}

func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }
