//go:build unix

package fleet_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The variables about host names and connections bound the HTTP server of a dispatcher.
func TestHTTPServerSettings(t *testing.T) {
	t.Parallel()
	dev := spawn(t, "dev", []string{
		"LONGSHORE_HTTP_HOSTS=hall.example", "LONGSHORE_HTTP_CONNECTIONS=2", "LONGSHORE_HTTP_CONNECTIONS_PER_ADDRESS=1",
	}, binary, "dev", "--no-worker", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0")
	ready := dev.line("longshore is ready: ")
	api := strings.TrimPrefix(strings.Split(strings.TrimPrefix(ready, "longshore is ready: "), ", ")[0], "http://")
	// ask makes a request over a connection of its own, which stays open; 0 when it was closed without an answer.
	ask := func(from, host, path string) (net.Conn, int) {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
		conn, err := d.DialContext(t.Context(), "tcp", api)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			t.Fatalf("neither answered nor closed: %v", err)
		}
		if err != nil {
			return conn, 0
		}
		_ = resp.Body.Close()
		return conn, resp.StatusCode
	}
	for _, step := range []struct {
		what, from, host, path string
		want                   int
		keep                   bool
	}{
		{"a name that is not listed", "127.0.0.1", "evil.example", "/v1/tasks", http.StatusMisdirectedRequest, false},
		{"its metrics", "127.0.0.1", "evil.example", "/metrics", http.StatusMisdirectedRequest, false},
		{"metrics of a name that is listed", "127.0.0.1", "hall.example", "/metrics", http.StatusOK, false},
		{"probes of any name", "127.0.0.1", "evil.example", "/readyz", http.StatusOK, false},
		{"a name that is listed", "127.0.0.1", "hall.example", "/v1/tasks", http.StatusOK, true},
		{"a second connection of an address", "127.0.0.1", "hall.example", "/v1/tasks", 0, false},
		{"one of another address", "127.0.0.2", "hall.example", "/v1/tasks", http.StatusOK, true},
		{"a third in all", "127.0.0.3", "hall.example", "/v1/tasks", 0, false},
	} {
		var conn net.Conn
		var got int
		for end := time.Now().Add(patience); ; { // the server notices in its own time that the one before was closed
			if conn, got = ask(step.from, step.host, step.path); got == step.want || step.want == 0 || time.Now().After(end) {
				break
			}
			_ = conn.Close()
		}
		if got != step.want {
			t.Errorf("%s: %d, want %d", step.what, got, step.want)
		}
		if !step.keep {
			_ = conn.Close()
		}
	}
}
