package cli_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/ptytest"
)

// pty is a terminal of a test.
type pty struct {
	*ptytest.PTY
	t *testing.T
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	return &pty{ptytest.Open(t), t}
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

// waitFor waits until the newest picture satisfies the test.
func (p *pty) waitFor(what string, is func(picture string) bool) {
	p.t.Helper()
	p.Wait("picture with "+what, func(all string) bool {
		last := strings.LastIndex(all, "\x1b[J") // before the last line of a picture
		first := strings.LastIndex(all[:max(last, 0)], "\x1b[H")
		return last >= 0 && first >= 0 && is(all[first:])
	})
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
	root := withCommands(f.connect, cli.Options{Terminal: true, Color: true})
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
	p.Resize(40, 6)
	p.waitFor("six lines", func(picture string) bool { return strings.Count(picture, "\r\n") == 5 })
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
	if all := p.Close(); !strings.HasPrefix(all, "\x1b[?1049h") || !strings.HasSuffix(all, "\x1b[?25h\x1b[?1049l") {
		p.t.Errorf("the terminal is left as %q … %q", all[:min(20, len(all))], all[max(0, len(all)-20):])
	}
}
