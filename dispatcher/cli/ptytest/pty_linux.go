package ptytest

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// patience is how long Wait waits.
const patience = 30 * time.Second

// PTY is a terminal of 80 columns and 24 lines. It ends with the test.
type PTY struct {
	// Slave is what a program is given as its input and output.
	Slave *os.File

	tb     testing.TB
	master *os.File
	done   chan struct{}

	mu    sync.Mutex
	shown []byte
	more  chan struct{} // closed when more was shown
}

// Open opens a terminal. It fails the test on any error, as all methods do.
func Open(tb testing.TB) *PTY {
	tb.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		tb.Fatal(err)
	}
	p := &PTY{tb: tb, master: master, done: make(chan struct{}), more: make(chan struct{})}
	var n, unlock uint32
	p.ioctl(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	p.ioctl(syscall.TIOCGPTN, unsafe.Pointer(&n))
	p.Resize(80, 24)
	p.Slave, err = os.OpenFile("/dev/pts/"+strconv.FormatUint(uint64(n), 10), os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		tb.Fatal(err)
	}
	go p.read()
	tb.Cleanup(func() {
		_ = p.Slave.Close()
		_ = master.Close()
		<-p.done
	})
	return p
}

func (p *PTY) read() {
	defer close(p.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.shown = append(p.shown, buf[:n]...)
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *PTY) ioctl(what uintptr, arg unsafe.Pointer) {
	p.tb.Helper()
	raw, err := p.master.SyscallConn()
	if err != nil {
		p.tb.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, what, uintptr(arg)); errno != 0 {
			p.tb.Fatal(errno)
		}
	})
	if err != nil {
		p.tb.Fatal(err)
	}
}

// Resize changes its size in columns and lines.
func (p *PTY) Resize(width, height uint16) {
	p.tb.Helper()
	size := [4]uint16{height, width}
	p.ioctl(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// Press types keys, as the bytes that a terminal sends: "\x03" is Ctrl-C.
func (p *PTY) Press(keys string) {
	p.tb.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.tb.Fatal(err)
	}
}

// Shown returns all that was written to the terminal so far.
func (p *PTY) Shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.shown)
}

// Wait waits until what was shown satisfies is, which it calls whenever more was shown.
func (p *PTY) Wait(what string, is func(shown string) bool) {
	p.tb.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		all, more := string(p.shown), p.more
		p.mu.Unlock()
		if is(all) {
			return
		}
		select {
		case <-more:
		case <-deadline:
			p.tb.Fatalf("no %s: %q", what, all[max(0, len(all)-4000):])
		}
	}
}

// Close closes the slave and returns all that was shown, once no program has it open.
func (p *PTY) Close() string {
	p.tb.Helper()
	_ = p.Slave.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.tb.Fatal("a program keeps the terminal open")
	}
	return p.Shown()
}
