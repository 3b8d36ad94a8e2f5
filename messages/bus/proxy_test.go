package bus_test

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// line is a connection to NATS that can lose a publish or its answer.
type line struct {
	mu      sync.Mutex
	subject string // of the publishes to lose; empty: none
	answer  bool   // lose the answer, not the publish
	deaf    bool   // until the next write
	lost    int
	seen    int // publishes to the subject that went through
}

// lose makes the next publish to a subject, or its answer, disappear.
func (l *line) lose(subject string, answer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subject, l.answer, l.lost, l.seen = subject, answer, 0, 0
}

func (l *line) counts() (lost, seen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.seen
}

// Dial implements nats.CustomDialer.
func (l *line) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &lossy{c, l}, err
}

type lossy struct {
	net.Conn
	line *line
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

// openLossy opens a bus over a line.
func openLossy(t *testing.T, cfg bus.Config) (*bus.Bus, *line, *nats.Conn) {
	t.Helper()
	s, l := bustest.Start(t), &line{}
	opts, err := bus.Options(bus.ConnConfig{})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.NATSURL, append(opts, nats.SetCustomDialer(l))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b, _ := bustest.OpenOver(t, nc, cfg)
	_, other := bustest.Open(t, s, bus.Config{})
	return b, l, other
}
