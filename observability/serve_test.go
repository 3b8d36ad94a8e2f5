package observability_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/observability"
)

func get(t *testing.T, addr net.Addr, path string) (int, string, error) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addr, wait, err := observability.Serve(ctx, "127.0.0.1:0", observability.Handler(observability.NewMetrics(""), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, body, err := get(t, addr, "/healthz"); status != http.StatusOK || body != "ok" || err != nil {
		t.Errorf("got %d %q %v", status, body, err)
	}
	cancel()
	for range 2 {
		if err := wait(); err != nil {
			t.Errorf("wait: %v", err)
		}
	}
	if _, _, err := get(t, addr, "/healthz"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it still listens: %v", err)
	}
}

func TestServeLetsRequestsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-leave
		if r.Context().Err() != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	addr, wait, err := observability.Serve(ctx, "127.0.0.1:0", slow, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan int, 1)
	go func() {
		status, _, _ := get(t, addr, "/")
		answer <- status
	}()
	<-entered
	cancel()
	waited := make(chan error, 1)
	go func() { waited <- wait() }()
	select {
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(leave)
	if status := <-answer; status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

func TestServeWhenItHasEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr, wait, err := observability.Serve(ctx, "127.0.0.1:0", http.NotFoundHandler(), nil)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil {
		t.Error(err)
	}
	if _, _, err := get(t, addr, "/"); err == nil {
		t.Error("it still listens")
	}
}

func TestServeRefusesAddresses(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for addr, want := range map[string]string{
		taken.Addr().String(): "another process has the port",
		"127.0.0.1:99999":     "invalid port",
		"nowhere":             "missing port",
	} {
		_, _, err := observability.Serve(t.Context(), addr, http.NotFoundHandler(), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "serve metrics and health: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
