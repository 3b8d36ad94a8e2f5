package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/term"

	"github.com/longshore-run/longshore/dispatcher/cli/ptytest"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
)

// pty is a terminal of a test.
type pty struct {
	*ptytest.PTY
	t             *testing.T
	width, height int
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	return &pty{PTY: ptytest.Open(t), t: t, width: 80, height: 24}
}

func (p *pty) state() *term.State {
	p.t.Helper()
	raw, err := p.Slave.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var s *term.State
	if cerr := raw.Control(func(fd uintptr) { s, err = term.GetState(int(fd)) }); cerr != nil || err != nil {
		p.t.Fatal(cerr, err)
	}
	return s
}

// shows returns what a terminal of a size shows after it was sent something, with control sequences for colors alone.
func shows(t *testing.T, width, height int, sent string) string {
	t.Helper()
	e := vt.NewEmulator(width, height)
	answers := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, e); answers <- err }() // to questions about the terminal
	if _, err := e.WriteString(sent); err != nil {
		t.Fatal(err)
	}
	picture := e.Render()
	if err := e.InputPipe().(io.Closer).Close(); err != nil { // the emulator's own Close must not be called during a read
		t.Fatal(err)
	}
	<-answers
	return picture
}

// waitFor waits until the terminal shows something.
func (p *pty) waitFor(what string, is func(picture string) bool) {
	p.t.Helper()
	p.Wait("picture with "+what, func(all string) bool {
		return is(shows(p.t, p.width, p.height, all))
	})
}

// resize changes the size and says so, as a terminal does to its foreground process.
func (p *pty) resize(width, height int) {
	p.t.Helper()
	p.width, p.height = width, height
	p.Resize(uint16(width), uint16(height))
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		p.t.Fatal(err)
	}
}

// waitForLines waits until so many lines were shown.
func (p *pty) waitForLines(n int) {
	p.t.Helper()
	p.Wait(strconv.Itoa(n)+" lines", func(all string) bool { return strings.Count(all, "\n") >= n })
}

func has(text string) (string, func(string) bool) {
	return text, func(picture string) bool { return strings.Contains(picture, text) }
}

func (p *pty) top(ctx context.Context, f *fleet) chan error {
	root := withCommands(f.connect, report.Options{Terminal: true, Color: true})
	root.SetIn(p.Slave)
	root.SetOut(p.Slave)
	root.SetErr(p.Slave)
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
		if looks%5 == 0 { // it may not follow yet
			f.fail(t, "broken"+strconv.Itoa(looks))
		}
		looks++
		return strings.Contains(picture, `model_failed: no \x1b[2Jluck`)
	})
	p.Press("p")
	p.waitFor(has("PAUSED"))
	p.Press("p\t")
	p.waitFor(has("\x1b[7m> WORKERS"))
	p.Press("\x1b[B\x1b[C")
	p.waitFor(has("\x1b[7m> LANES"))
	p.resize(40, 6)
	p.waitFor("six lines", func(picture string) bool {
		lines := strings.Split(picture, "\n")
		return len(lines) == 6 && strings.Contains(lines[0], "longshore top") && strings.Contains(lines[5], "APPROVALS") && strings.Contains(lines[5], "…")
	})
	p.Press("q")
	p.ends(done, before)
}

// A terminal that does not say its size is taken for one of 80 columns and 24 lines.
func TestTopOnATerminalWithoutASize(t *testing.T) {
	f, p := newFleet(t), newPTY(t)
	p.Resize(0, 0)
	before := p.state()
	done := p.top(t.Context(), f)
	p.waitFor(has("WORKERS"))
	p.waitFor(has("q quit · p pause"))
	p.Press("q")
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
	p.Press("\x03")
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
	all := p.Close()
	for _, mode := range regexp.MustCompile("\x1b\\[\\?([0-9]+)h").FindAllStringSubmatch(all, -1) {
		on, off := "\x1b[?"+mode[1]+"h", "\x1b[?"+mode[1]+"l"
		if mode[1] == "25" || mode[1] == "7" { // the cursor is shown, and long lines are wrapped
			on, off = off, on
		}
		if strings.LastIndex(all, on) > strings.LastIndex(all, off) {
			p.t.Errorf("the terminal is left with mode %s", mode[1])
		}
	}
	if picture := shows(p.t, p.width, p.height, "before"+all); !strings.HasPrefix(picture, "before") || strings.Contains(picture, "WORKERS") {
		p.t.Errorf("after it the terminal shows %q", picture)
	}
}
