package bustest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
)

// Line is a connection to NATS that can lose a publish or its answer.
type Line struct {
	mu      sync.Mutex
	subject string // of the publishes to lose; empty: none
	answer  bool   // lose the answer, not the publish
	deaf    bool   // until the next write
	lost    int
	seen    int // publishes to the subject that went through
}

// Lose makes the next publish to a subject, or its answer, disappear.
func (l *Line) Lose(subject string, answer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subject, l.answer, l.lost, l.seen = subject, answer, 0, 0
}

// Counts are how many publishes to the subject, or answers, were lost, and how many publishes went through.
func (l *Line) Counts() (lost, seen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.seen
}

// dialWait is far more than a server on this machine needs.
const dialWait = 10 * time.Second

// Dial implements nats.CustomDialer.
func (l *Line) Dial(network, address string) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, dialWait) //nolint:noctx // nats.CustomDialer has no context
	return &lossy{c, l}, err
}

type lossy struct {
	net.Conn
	line *Line
}

// Write loses all of a write that publishes to the subject: the client writes each lone request at once.
func (c *lossy) Write(p []byte) (int, error) {
	l := c.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = false
	if l.subject != "" && bytes.Contains(p, []byte("PUB "+l.subject+" ")) {
		switch {
		case l.lost > 0:
			l.seen++
		case l.answer:
			l.lost++
			l.seen++
			l.deaf = true
		default:
			l.lost++
			return len(p), nil
		}
	}
	return c.Conn.Write(p)
}

// Read loses what comes while the line is deaf: nothing but the answer is on its way then.
func (c *lossy) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		c.line.mu.Lock()
		deaf := c.line.deaf
		c.line.mu.Unlock()
		if !deaf || err != nil {
			return n, err
		}
	}
}

// OpenLossy opens a bus over a line.
func OpenLossy(tb testing.TB, cfg bus.Config) (*bus.Bus, *Line, *nats.Conn) {
	tb.Helper()
	s, l := Start(tb), &Line{}
	opts, err := bus.Options(bus.ConnConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	nc, err := nats.Connect(s.NATSURL, append(opts, nats.SetCustomDialer(l))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	b, _ := OpenOver(tb, nc, cfg)
	_, other := Open(tb, s, bus.Config{})
	return b, l, other
}
