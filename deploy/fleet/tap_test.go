//go:build unix

package fleet_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// tap is a line to NATS that sees every message that the process at its end publishes, and can go dead.
type tap struct {
	url    string
	target string
	judge  func(published) verdict // called by one goroutine at a time
	dead   chan struct{}           // closed when the line has gone dead

	mu   sync.Mutex
	seen []published
	more chan struct{}
}

// published is a message on its way to the server.
type published struct {
	Subject string // with RUNS or TASKS in place of a partition of it
	Body    string // headers included
}

// ofPartition finds what in a subject names a partition.
var ofPartition = regexp.MustCompile(`^part\.\d+\.\d+\.|(\.RUNS|\.TASKS)_\d+`)

// undivided is a subject as it is in a fleet whose streams are not divided.
func undivided(subject string) string {
	return messages.AsPublished(ofPartition.ReplaceAllString(subject, "$1"))
}

// verdict is what becomes of a message.
type verdict int

const (
	pass      verdict = iota
	defers            // keep it until another message releases it
	releases          // let it pass, and then what was kept
	cutBefore         // the line goes dead, and the message is lost
	cutAfter          // the message arrives, and the line goes dead before its answer
)

// newTap opens a line to a server. A nil judge lets everything pass.
func newTap(t *testing.T, natsURL string, judge func(published) verdict) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if judge == nil {
		judge = func(published) verdict { return pass }
	}
	p := &tap{
		url: "nats://" + l.Addr().String(), target: strings.TrimPrefix(natsURL, "nats://"), judge: judge,
		dead: make(chan struct{}), more: make(chan struct{}),
	}
	var wg sync.WaitGroup
	var open []net.Conn
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			open = append(open, client, server)
			p.mu.Unlock()
			wg.Go(func() { p.up(client, server); server.Close() })
			wg.Go(func() { p.down(server, client); client.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range open {
			c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

// down hands on what the server says while the line is alive.
func (p *tap) down(server io.Reader, client io.Writer) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if !p.isDead() {
			_, _ = client.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// up hands on what the client says, message by message.
func (p *tap) up(client io.Reader, server io.Writer) {
	in := bufio.NewReader(client)
	var kept bytes.Buffer
	for {
		frame, msg, err := readFrame(in)
		if err != nil {
			return
		}
		v := pass
		if msg != nil && !p.isDead() {
			v = p.judge(*msg)
			p.note(*msg)
		}
		if v == cutBefore || v == cutAfter {
			close(p.dead)
		}
		switch {
		case v == defers:
			kept.Write(frame)
		case v == cutAfter || !p.isDead():
			_, _ = server.Write(frame)
		}
		if v == releases {
			_, _ = kept.WriteTo(server)
		}
	}
}

func (p *tap) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

func (p *tap) note(m published) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, m)
	close(p.more)
	p.more = make(chan struct{})
}

// readFrame reads one operation of the client; msg is nil for those that publish nothing.
func readFrame(in *bufio.Reader) (frame []byte, msg *published, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	args := strings.Fields(string(line))
	if len(args) < 3 || args[0] != "PUB" && args[0] != "HPUB" {
		return line, nil, nil
	}
	size, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return nil, nil, fmt.Errorf("read %q: %w", line, err)
	}
	body := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, nil, err
	}
	return append(line, body...), &published{undivided(args[1]), string(body[:size])}, nil
}

// all is what was published so far.
func (p *tap) all() []published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.seen)
}

// await waits for a message after the first from that is as wanted.
func (p *tap) await(t *testing.T, from int, want func(published) bool) published {
	t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		seen, more := p.seen, p.more
		p.mu.Unlock()
		for ; from < len(seen); from++ {
			if want(seen[from]) {
				return seen[from]
			}
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatal("the message is not published")
		}
	}
}

// isAppend reports whether a message is an entry of a log with a record of a kind.
func (m published) isAppend(kind string) bool {
	return strings.HasPrefix(m.Subject, "runs.") && strings.Contains(m.Body, `"`+kind+`"`)
}

// isPull reports whether a message asks for tasks.
func (m published) isPull() bool {
	return strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.MSG.NEXT.TASKS.")
}
