package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Control sequences of a screen.
const (
	screenOpen  = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the other screen, without a cursor, and lines are not wrapped
	screenClose = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenTop   = "\x1b[H"
	screenRest  = "\x1b[J"
	lineRest    = "\x1b[K"
)

const defaultHeight = 24

// topScreen is the whole of a terminal. A nil one has no keys and no size.
type topScreen struct {
	out           io.Writer
	in            *os.File    // nil: it has no keys
	state         *term.State // of in, as it was
	options       Options
	width, height int

	typed chan int
	done  chan struct{} // closed when nobody wants keys
	ended chan struct{} // closed when nobody reads keys
}

// openTopScreen takes the terminal. The caller closes it.
func openTopScreen(in io.Reader, out io.Writer, options Options) (*topScreen, error) {
	s := &topScreen{out: out, options: options, typed: make(chan int), done: make(chan struct{}), ended: make(chan struct{})}
	s.width, s.height = s.size()
	if f, ok := in.(*os.File); ok && isTerminal(f) {
		if err := control(f, func(fd int) (err error) { s.state, err = term.MakeRaw(fd); return err }); err != nil {
			return nil, fmt.Errorf("read keys of the terminal: %w", err)
		}
		s.in = f
		go s.read()
	} else {
		close(s.ended)
	}
	if err := write(out, screenOpen); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close gives the terminal back as it was. A read of a terminal that cannot be interrupted ends with the process.
func (s *topScreen) close() {
	_ = write(s.out, screenClose) // who cannot be shown this sees it
	close(s.done)
	if s.in == nil {
		return
	}
	if s.in.SetReadDeadline(time.Now()) == nil {
		<-s.ended
		_ = s.in.SetReadDeadline(time.Time{})
	}
	_ = control(s.in, func(fd int) error { return term.Restore(fd, s.state) })
}

// keys are those that are typed; nil without a screen.
func (s *topScreen) keys() <-chan int {
	if s == nil {
		return nil
	}
	return s.typed
}

// read hands on keys until nobody wants them.
func (s *topScreen) read() {
	defer close(s.ended)
	buf := make([]byte, 64)
	for {
		n, err := s.in.Read(buf)
		for _, key := range keysOf(buf[:n]) {
			select {
			case s.typed <- key:
			case <-s.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// keysOf are the keys in what a terminal sent. A terminal that is gone sends the end of input, which is no key.
func keysOf(sent []byte) []int {
	var out []int
	for text := string(sent); text != ""; {
		key, size := keyNone, 1
		for name, k := range map[string]int{
			"q": keyQuit, "Q": keyQuit, "\x03": keyQuit, "\x04": keyQuit, "p": keyPause, " ": keyPause, "\t": keyNext, "\x1b[C": keyNext, "\x1b[Z": keyPrevious,
			"\x1b[D": keyPrevious, "k": keyUp, "\x1b[A": keyUp, "j": keyDown, "\x1b[B": keyDown, "\x1bOA": keyUp, "\x1bOB": keyDown, "\x1bOC": keyNext, "\x1bOD": keyPrevious,
		} {
			if strings.HasPrefix(text, name) {
				key, size = k, len(name)
				break
			}
		}
		if text = text[size:]; key != keyNone {
			out = append(out, key)
		}
	}
	return out
}

// resized reports whether the terminal has another size now.
func (s *topScreen) resized() bool {
	if s == nil {
		return false
	}
	width, height := s.size()
	changed := width != s.width || height != s.height
	s.width, s.height = width, height
	return changed
}

func (s *topScreen) size() (width, height int) {
	width, height = s.options.Width(), defaultHeight
	if f, ok := s.out.(*os.File); ok {
		_ = control(f, func(fd int) error {
			w, h, err := term.GetSize(fd)
			if err == nil && w > 0 && h > 0 {
				width, height = w, h
			}
			return err
		})
	}
	return width, height
}

// draw shows the model.
func (s *topScreen) draw(m *topModel, now time.Time) error {
	return write(s.out, frame(m.render(s.width, s.height, s.options.Color, now)))
}

// frame writes lines over those that are shown. Each is erased before it is written: after a line of the whole width the
// cursor stands on its last column, and to erase from there would take that away.
func frame(lines []string) string {
	var b strings.Builder
	b.WriteString(screenTop)
	for i, line := range lines {
		switch i {
		case 0:
			b.WriteString(lineRest)
		case len(lines) - 1:
			b.WriteString("\r\n" + screenRest) // and what the picture before had below
		default:
			b.WriteString("\r\n" + lineRest)
		}
		b.WriteString(line)
	}
	return b.String()
}

func isTerminal(f *os.File) bool {
	is := false
	_ = control(f, func(fd int) error { is = term.IsTerminal(fd); return nil })
	return is
}

// control does something with the descriptor of a file and leaves its reads interruptible, which File.Fd would not.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = do(int(fd)) })
	if failed != nil {
		return failed
	}
	return err
}
