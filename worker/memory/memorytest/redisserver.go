package memorytest

import (
	"bufio"
	"context"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds the start of a redis-server.
const startTimeout = 30 * time.Second

// RedisServer starts a redis-server from the PATH on a free port of the loopback interface, with nothing kept on disk,
// and ends it with the test. It is false when there is none on the PATH.
func RedisServer(tb testing.TB) (Server, bool) {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return Server{}, false
	}
	p := &process{path: path, addr: freeAddr(tb), dir: tb.TempDir()}
	p.start(tb)
	tb.Cleanup(p.stop)
	return Server{
		Name:  "redis-server",
		URL:   "redis://" + p.addr + "/0",
		Start: p.start,
		Stop:  func(testing.TB) { p.stop() },
	}, true
}

// process is one redis-server at a time on the same address.
type process struct {
	path, addr, dir string
	options         []string
	cmd             *exec.Cmd
	ended           chan struct{} // closed when the output has ended
}

func (p *process) start(tb testing.TB) {
	tb.Helper()
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		tb.Fatal(err)
	}
	// The test's context ends before its cleanups, and they still need the server.
	ctx := context.WithoutCancel(tb.Context())
	args := append([]string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", p.dir}, p.options...)
	p.run(ctx, tb, "Ready to accept connections", args...)
}

// run starts the program and waits until its output says that it is ready.
func (p *process) run(ctx context.Context, tb testing.TB, isReady string, args ...string) {
	tb.Helper()
	p.cmd = exec.CommandContext(ctx, p.path, args...) //nolint:gosec // found on the PATH
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ready := make(chan struct{})
	p.ended = make(chan struct{})
	go readOutput(out, isReady, ready, p.ended) // stop waits for it
	select {
	case <-ready:
		return
	case <-p.ended:
	case <-time.After(startTimeout):
	}
	p.stop()
	tb.Fatalf("redis-server on %s is not ready", p.addr)
}

// readOutput closes ready when the server says that it is, and ended at the end of the output.
func readOutput(out io.Reader, says string, ready, ended chan<- struct{}) {
	defer close(ended)
	isReady := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !isReady && strings.Contains(lines.Text(), says) {
			isReady = true
			close(ready)
		}
	}
}

func (p *process) stop() {
	if p.cmd == nil {
		return
	}
	// A killed process ends with an error, and so does one that has ended already: both are what is wanted.
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait()
	p.cmd = nil
}

// freeAddr is an address that was free a moment ago.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	return addr
}
