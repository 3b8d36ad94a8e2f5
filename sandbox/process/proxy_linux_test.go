//go:build amd64 || arm64

package process_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/sandbox/process"
)

// proxy lets a program reach what a proxy in the worker allows, and nothing else.
func (a *arena) proxy(t *testing.T) {
	listed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of the listed host") }))
	defer listed.Close()
	address := strings.TrimPrefix(listed.URL, "http://")
	served := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != address {
			http.Error(w, "not on the list", http.StatusForbidden)
			return
		}
		resp, err := http.Get(r.URL.String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(w, resp.Body)
	})}
	defer served.Close()
	c, _ := a.command("connect", address, "127.0.0.1:3128", "10.0.0.1:80", "127.0.0.1:80")
	c.Proxy = served.Serve
	if a.mode == "landlock" {
		_, err := a.Run(t.Context(), c)
		if u, ok := errors.AsType[*process.UnavailableError](err); !ok || u.Missing != process.LayerNamespaces {
			t.Errorf("got %v", err)
		}
		return
	}
	got := decode(t, a.run(t, c))
	if got["127.0.0.1:3128"] != "ok" {
		t.Errorf("the proxy: %v", got)
	}
	delete(got, "127.0.0.1:3128")
	wantBlocked(t, got, "EACCES", "ENETUNREACH")

	c, _ = a.command("sockets")
	c.Proxy = served.Serve
	got = decode(t, a.run(t, c))
	if got["tcp4"] != "ok" {
		t.Errorf("%v", got)
	}
	delete(got, "tcp4")
	wantBlocked(t, got, "EPERM") // UDP, and so DNS, among them

	for url, want := range map[string]string{listed.URL: "200 of the listed host", "http://example.com": "403 not on the list"} {
		script := `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$1" >&3; cat <&3`
		r := a.run(t, process.Command{Path: "bash", Args: []string{"-c", script, "bash", url}, Proxy: served.Serve})
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(r.Stdout))), nil)
		if err != nil {
			t.Errorf("%s: %v: %+v %s", url, err, r, r.Stderr)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if got := strings.Fields(resp.Status)[0] + " " + strings.TrimSpace(string(body)); err != nil || got != want {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}

	ended := make(chan struct{})
	a.run(t, process.Command{Path: "true", Proxy: func(l net.Listener) error {
		defer close(ended)
		_, err := l.Accept() // until the program has ended
		return err
	}})
	select {
	case <-ended:
	default:
		t.Error("Run did not wait for the proxy")
	}
}
