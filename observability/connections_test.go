package observability_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/longshore-run/longshore/observability"
)

// dial opens a connection and asks for something over it, which reports whether the server took it.
func dial(t *testing.T, from, to string) (conn net.Conn, taken bool) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Fatalf("neither answered nor closed: %v", err)
	}
	if err != nil {
		return conn, false
	}
	_ = resp.Body.Close()
	return conn, true
}

// More connections than a server may hold are closed at once, and a slot that is free again is given to the next.
func TestConnectionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		limits observability.Connections
		from   []string // of each connection
		taken  []bool
	}{
		"in all":      {observability.Connections{Most: 2}, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, []bool{true, true, false}},
		"per address": {observability.Connections{PerAddress: 1}, []string{"127.0.0.1", "127.0.0.1", "127.0.0.2"}, []bool{true, false, true}},
		"by default":  {observability.Connections{}, []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, []bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			addr, wait, err := observability.ServeWith(ctx, "127.0.0.1:0", http.NotFoundHandler(), observability.ServeConfig{Connections: c.limits})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				cancel()
				if err := wait(); err != nil {
					t.Error(err)
				}
			}()
			var first net.Conn
			for i, from := range c.from {
				conn, taken := dial(t, from, addr.String())
				if taken != c.taken[i] {
					t.Fatalf("connection %d of %s: taken %v", i, from, taken)
				}
				if i == 0 {
					first = conn
				}
			}
			_ = first.Close()
			for end := time.Now().Add(30 * time.Second); ; { // the server notices in its own time
				if _, taken := dial(t, c.from[0], addr.String()); taken {
					return
				}
				if time.Now().After(end) {
					t.Fatal("the place of a connection that was closed is not free")
				}
			}
		})
	}
}
