package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	busevents "github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/observability"
)

// bodyTimeout is that of the dispatchers under attack.
const bodyTimeout = time.Second

// attacked serves the API of the fleet once more, as a dispatcher does, with deadlines that a test can wait for.
func (h *hall) attacked(cfg api.Config) string {
	h.t.Helper()
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		h.t.Fatal(err)
	}
	b, err := bus.Open(h.t.Context(), nc, bus.Config{})
	if err != nil {
		h.t.Fatal(err)
	}
	cfg.Hub, cfg.Runs, cfg.BodyTimeout = busevents.New(b).NewHub(), runlogs.New(b, runlogs.Config{}), bodyTimeout
	if cfg.Client, err = dispatcher.New(h.t.Context(), nc); err != nil {
		h.t.Fatal(err)
	}
	front := api.New(cfg)
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = cfg.Hub.Run(ctx) })
	at, wait, err := observability.Serve(ctx, "127.0.0.1:0", front, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		front.Drain()
		stop()
		_ = wait()
		running.Wait()
		nc.Close()
	})
	return at.String()
}

// attack is what a client sends over a connection of its own.
type attack struct {
	send    string
	trickle string // sent again and again, 20 times a second
	want    []int  // statuses, one of which answers; none: the connection may also be closed without an answer
	detail  string // in the answer
}

func (h *hall) attacks() map[string]attack {
	const host = "Host: localhost\r\n"
	all := map[string]attack{}
	// A body that was announced does not come, or a byte now and then, or is no body.
	for name, path := range map[string]string{
		"a task": "POST /v1/tasks", "a task, waited for": "POST /v1/tasks?wait=60s", "run-lite": "POST /run-lite", "a batch": "POST /v1/batches",
		"events": "GET /v1/tasks/waits/events", "logs": "GET /v1/tasks/waits/logs?follow=true", "results": "GET /v1/batches/waits/results",
		"a cancel": "POST /v1/tasks/waits/cancel", "a list": "GET /v1/tasks", "not a path": "POST /v1/nothing",
		"a wrong method": "PUT /v1/tasks", "a web page's": "POST /v1/tasks",
	} {
		head := path + " HTTP/1.1\r\n" + host
		if strings.Contains(name, "web page") {
			head += "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n"
		}
		silent := []int{408, 400, 403, 404, 405, 200, 413}
		all[name+": no body"] = attack{send: head + "Content-Length: 100\r\n\r\n", want: silent}
		all[name+": half a body"] = attack{send: head + "Content-Length: 100\r\n\r\n{\"input\":", want: silent}
		all[name+": a slow body"] = attack{send: head + "Content-Length: 100000\r\n\r\n", trickle: " ", want: silent}
		all[name+": a chunk that does not come"] = attack{send: head + "Transfer-Encoding: chunked\r\n\r\n40\r\n", want: silent}
		all[name+": slow chunks"] = attack{send: head + "Transfer-Encoding: chunked\r\n\r\n", trickle: "1\r\n \r\n", want: silent}
		all[name+": chunks that are none"] = attack{send: head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", want: silent}
	}
	all["headers that do not end"] = attack{send: "GET / HTTP/1.1\r\n", trickle: "A: b\r\n"}
	all["nothing"] = attack{}
	timedOut := []int{http.StatusRequestTimeout}
	all["a body that does not come"] = attack{send: "POST /v1/tasks HTTP/1.1\r\n" + host + "Content-Length: 9\r\n\r\n{", want: timedOut, detail: `"retryable":false`}
	const batch = "POST /v1/batches?skipInvalid=true HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n"
	const lines = "{\"custom_id\":\"1\",\"input\":\"wait\"}\n{\"none\n{\"custom_id\":\"2\",\"input\":\"wait\"}\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(lines), lines)
	all["a batch that stalls after a report"] = attack{send: batch + chunk, want: []int{200}, detail: `"status":408,"detail":"the body did not come in time","code":"invalid_input","retryable":false`}
	all["a batch that stalls in its end"] = attack{send: batch + chunk + "0\r\n", want: []int{400, 200}, detail: `"code":"invalid_input","retryable":false`}
	all["a bad chunk"] = attack{
		send: "POST /v1/tasks HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", want: []int{400}, detail: `"retryable":false`,
	}
	return all
}

// strike carries out an attack and waits until the server has closed the connection.
func strike(ctx context.Context, addr string, a attack) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, a.send); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	closed := make(chan struct{})
	var slowly sync.WaitGroup
	defer slowly.Wait()
	defer close(closed)
	if a.trickle != "" {
		slowly.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					if _, err := io.WriteString(conn, a.trickle); err != nil {
						return
					}
				case <-closed:
					return
				}
			}
		})
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	switch {
	case err != nil && isTimeout(err):
		return errors.New("neither an answer nor an end")
	case err != nil && len(a.want) == 0:
		return nil
	case err != nil && a.trickle != "" && !errors.Is(err, io.EOF): // the reset of the connection went before the answer
		return nil
	case err != nil:
		return fmt.Errorf("no answer: %w", err)
	}
	defer func() { // the connection first, for a stream does not end
		_ = conn.Close()
		_ = resp.Body.Close()
	}()
	body, err := io.ReadAll(resp.Body)
	if isTimeout(err) {
		return fmt.Errorf("the answer does not end: %s %.200s", resp.Status, body)
	}
	if len(a.want) > 0 && !slices.Contains(a.want, resp.StatusCode) || !strings.Contains(string(body), a.detail) {
		return fmt.Errorf("%s: %.300s", resp.Status, body)
	}
	if _, err := io.Copy(io.Discard, in); isTimeout(err) {
		return fmt.Errorf("%s, and the connection stays open", resp.Status)
	}
	return nil
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// Whatever a client sends or leaves out, its connection ends, and with it what the server held for it.
func TestAttacks(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"waits","input":"wait"}`, 202, nil)
	addr := h.attacked(api.Config{})
	var all sync.WaitGroup // not tests of their own: most of the time they wait, and go's tests would wait for each other
	defer all.Wait()
	for name, a := range h.attacks() {
		all.Go(func() {
			if err := strike(t.Context(), addr, a); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A thousand clients that announce bodies and send none are rid of soon: neither goroutines nor descriptors stay.
func TestSilentClientsAreNotHeld(t *testing.T) {
	h := open(t)
	addr := h.attacked(api.Config{})
	if err := strike(t.Context(), addr, attack{send: "GET /v1/tasks HTTP/1.0\r\nHost: localhost\r\n\r\n", want: []int{200}}); err != nil {
		t.Fatal(err) // what the first request starts is started
	}
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	var paths []string
	for _, path := range []string{"/v1/tasks", "/run-lite", "/v1/batches", "/v1/tasks?wait=60s"} {
		paths = append(paths, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
	}
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 1000 {
		group.Go(func() error { return strike(ctx, addr, attack{send: paths[i%len(paths)], want: []int{408}}) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; {
		g, d := runtime.NumGoroutine(), openDescriptors(t)
		if g < goroutines+50 && d < descriptors+50 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines and %d descriptors, before it were %d and %d", g, d, goroutines, descriptors)
		}
		runtime.Gosched()
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) { // not Linux: its goroutines say the same
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// What waits for long still does: the deadline of the body ends with the body.
func TestLongRequestsOutliveTheDeadlineOfTheBody(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"waits","input":"wait"}`, 202, nil)
	addr := h.attacked(api.Config{KeepAlive: bodyTimeout / 4, LiteTimeout: 2 * bodyTimeout})
	body := `{"input":"wait"}`
	for name, c := range map[string]struct {
		send string
		want int
	}{
		"events":      {"GET /v1/tasks/waits/events HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		"with a body": {"GET /v1/tasks/waits/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 200},
		"a wait":      {fmt.Sprintf("POST /v1/tasks?wait=2s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body), 202},
		"run-lite":    {fmt.Sprintf("POST /run-lite HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body), 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { // the connection first, for a stream does not end
				_ = conn.Close()
				_ = resp.Body.Close()
			}()
			if resp.StatusCode != c.want {
				t.Fatalf("%s after %v", resp.Status, time.Since(begun))
			}
			for lines := bufio.NewScanner(resp.Body); c.want == 200 && time.Since(begun) < 2*bodyTimeout; {
				if !lines.Scan() {
					t.Fatalf("it ended after %v: %v", time.Since(begun), lines.Err())
				}
			}
			if took := time.Since(begun); took < 2*bodyTimeout-10*time.Millisecond {
				t.Errorf("it ended after %v", took)
			}
		})
	}
}

// What cannot be read in a query is refused, not left out: it would widen what the request is about.
func TestQueriesAreReadStrictly(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"kept","input":"wait"}`, 202, nil)
	for query, field := range map[string]string{
		"v1/dead-letters:purge?confirm=true&agent=a;b":              "agent",
		"v1/dead-letters:purge?confirm=true&agent=":                 "agent",
		"v1/dead-letters:purge?confirm=true&agent=%20":              "agent",
		"v1/dead-letters:purge?confirm=true&agent=%zz":              "agent",
		"v1/dead-letters:purge?confirm=true&a%gent=x":               "a%gent",
		"v1/dead-letters:purge?confirm=true&Agent=x":                "Agent",
		"v1/dead-letters:purge?confirm=true&agent=a&agent=b":        "agent",
		"v1/dead-letters:redrive?agent=a;b":                         "agent",
		"v1/tasks:cancel?agent=default&label=team=a%":               "label",
		"v1/tasks:cancel?agent=default&label=":                      "label",
		"v1/tasks:cancel?agent=default&status=,":                    "status",
		"v1/tasks:cancel?agent=default&label=a=b&label=a=c":         "label",
		"v1/tasks:cancel?agent=default&session=x&session=y":         "session",
		"v1/tasks:cancel?agent=default&since=":                      "since",
		"v1/tasks:cancel?agent=default&" + strings.Repeat("x&", 20): "x",
		"v1/batches/b/cancel?agent=x":                               "agent",
	} {
		var p messages.Problem
		h.do("POST", "/"+query, "", http.StatusBadRequest, &p)
		if p.Field != field || p.Retryable {
			t.Errorf("%s: %+v", query, p)
		}
	}
	for query, field := range map[string]string{
		"v1/tasks?status=faild": "status", "v1/tasks?limit=1&limit=2": "limit", "v1/batches/b/results?status=faild": "status",
		"v1/tasks/kept/events?types=": "types", "v1/tasks/kept?x=1": "x",
	} {
		var p messages.Problem
		h.do("GET", "/"+query, "", http.StatusBadRequest, &p)
		if p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
	var state struct{ Status messages.Status }
	if h.do("GET", "/v1/tasks/kept", "", 200, &state); state.Status.Ended() {
		t.Errorf("the run is %s", state.Status)
	}
}

// Without keys, a web page whose name leads here is refused, whatever it says of its origin.
func TestForeignHosts(t *testing.T) {
	h := open(t)
	addr := h.attacked(api.Config{Hosts: []string{"Longshore.example.com", "hall:8420"}})
	for host, want := range map[string]int{
		"evil.example": 421, "evil.example:80": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 421,
		"evil-localhost": 421, "10.1.2.3": 421, "0.0.0.0": 421, "[::]": 421, "[fe80::1]": 421, "127.0.0.1@evil.example": 400, "2130706433": 421,
		"localhost": 200, "LOCALHOST:1": 200, "localhost.": 200, "a.localhost": 200, "127.0.0.1": 200, "127.9.9.9:8420": 200, "[::1]:8420": 200,
		"longshore.example.com": 200, "LONGSHORE.example.com:443": 200, "hall": 200, "hall:1": 200, "[::ffff:127.0.0.1]": 200,
	} {
		origin := ""
		if want == 421 {
			origin = "Origin: http://" + host + "\r\n"
		}
		err := strike(t.Context(), addr, attack{
			send: "GET /v1/tasks HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n" + origin + "\r\n", want: []int{want},
		})
		if err != nil {
			t.Errorf("%q: %v", host, err)
		}
		if want != 421 {
			continue
		}
		body := `{"input":"x"}`
		err = strike(t.Context(), addr, attack{
			send: fmt.Sprintf("POST /v1/tasks HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", host, origin, len(body), body),
			want: []int{421}, detail: "LONGSHORE_HTTP_HOSTS",
		})
		if err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
	if err := strike(t.Context(), h.attacked(api.Config{Hosts: []string{"*"}}), attack{
		send: "GET /v1/tasks HTTP/1.1\r\nConnection: close\r\nHost: any.example\r\n\r\n", want: []int{200},
	}); err != nil {
		t.Error(err)
	}
}
