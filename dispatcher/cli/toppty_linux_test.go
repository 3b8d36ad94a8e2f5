package cli_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/term"

	"github.com/longshore-run/longshore/dispatcher/cli"
)

// pty is a terminal of a test.
type pty struct {
	t             *testing.T
	master, slave *os.File
	shown         safeBuffer
	done          chan struct{}
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, master: master, done: make(chan struct{})}
	var n, unlock uint32
	p.ioctl(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	p.ioctl(syscall.TIOCGPTN, unsafe.Pointer(&n))
	p.resize(80, 24)
	p.slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		buf := make([]byte, 64<<10)
		for {
			n, err := master.Read(buf)
			_, _ = p.shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.slave.Close()
		master.Close()
		<-p.done
	})
	return p
}

func (p *pty) ioctl(what uintptr, arg unsafe.Pointer) {
	p.t.Helper()
	raw, err := p.master.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, what, uintptr(arg)); errno != 0 {
			p.t.Fatal(errno)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) resize(width, height uint16) {
	p.t.Helper()
	size := [4]uint16{height, width}
	p.ioctl(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func (p *pty) state() *term.State {
	p.t.Helper()
	raw, err := p.slave.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var s *term.State
	if cerr := raw.Control(func(fd uintptr) { s, err = term.GetState(int(fd)) }); cerr != nil || err != nil {
		p.t.Fatal(cerr, err)
	}
	return s
}

func (p *pty) press(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// waitFor waits until the newest picture satisfies the test.
func (p *pty) waitFor(what string, is func(picture string) bool) {
	p.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		all := p.shown.String()
		last := strings.LastIndex(all, "\x1b[J") // before the last line of a picture
		first := strings.LastIndex(all[:max(last, 0)], "\x1b[H")
		if last >= 0 && first >= 0 && is(all[first:]) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("no picture with %s: %q", what, all[max(0, len(all)-4000):])
		}
	}
}

// waitForLines waits until so many lines were shown.
func (p *pty) waitForLines(n int) {
	p.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for strings.Count(p.shown.String(), "\n") < n {
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("not %d lines: %q", n, p.shown.String())
		}
	}
}

func has(text string) (string, func(string) bool) {
	return text, func(picture string) bool { return strings.Contains(picture, text) }
}

func (p *pty) top(ctx context.Context, f *fleet) chan error {
	root := withCommands(f.connect, cli.Options{Terminal: true, Color: true})
	root.SetIn(p.slave)
	root.SetOut(p.slave)
	root.SetErr(p.slave)
	root.SetArgs([]string{"top", "--interval", "200ms"})
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	return done
}

func TestTopOnATerminal(t *testing.T) {
	f, p := newFleet(t), newPTY(t)
	before := p.state()
	done := p.top(t.Context(), f)
	p.waitFor(has("WORKERS"))
	looks := 0
	p.waitFor("a failure", func(picture string) bool {
		if looks%50 == 0 { // it may not follow yet
			f.fail(t, "broken"+strconv.Itoa(looks))
		}
		looks++
		return strings.Contains(picture, `model_failed: no \x1b[2Jluck`)
	})
	p.press("p")
	p.waitFor(has("PAUSED"))
	p.press("p\t")
	p.waitFor(has("\x1b[7m> WORKERS"))
	p.resize(40, 6)
	p.waitFor("six lines", func(picture string) bool { return strings.Count(picture, "\r\n") == 5 })
	p.press("q")
	p.ends(done, before)
}

// The end of the context is that of SIGINT and SIGTERM.
func TestTopGivesTheTerminalBack(t *testing.T) {
	f, p := newFleet(t), newPTY(t)
	before := p.state()
	ctx, cancel := context.WithCancel(t.Context())
	done := p.top(ctx, f)
	p.waitFor(has("WORKERS"))
	cancel()
	p.ends(done, before)
}

func TestTopEndsWithControlC(t *testing.T) {
	f, p := newFleet(t), newPTY(t)
	before := p.state()
	done := p.top(t.Context(), f)
	p.waitFor(has("WORKERS"))
	p.press("\x03")
	p.ends(done, before)
}

func (p *pty) ends(done <-chan error, before *term.State) {
	p.t.Helper()
	select {
	case err := <-done:
		if err != nil {
			p.t.Error(err)
		}
	case <-time.After(patience):
		p.t.Fatal("it does not end")
	}
	if was, is := fmt.Sprintf("%+v", before), fmt.Sprintf("%+v", p.state()); was != is {
		p.t.Errorf("the terminal was %s, and is %s", was, is)
	}
	p.slave.Close()
	<-p.done // all that was written has been read
	if all := p.shown.String(); !strings.HasPrefix(all, "\x1b[?1049h") || !strings.HasSuffix(all, "\x1b[?25h\x1b[?1049l") {
		p.t.Errorf("the terminal is left as %q … %q", all[:min(20, len(all))], all[max(0, len(all)-20):])
	}
}
