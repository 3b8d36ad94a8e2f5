package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/sandbox/proxy"
)

// lookups counts the questions to name servers: the tests use addresses alone, and every name is one that must not be looked up.
var lookups = &questions{}

type questions struct {
	mu sync.Mutex
	n  int
}

func (q *questions) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		lookups.mu.Lock()
		defer lookups.mu.Unlock()
		lookups.n++
		return nil, errors.New("there is no name server")
	}}
	os.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // asked, it would refuse every call
	goleak.VerifyTestMain(m)
}

// running is a proxy that a test uses.
type running struct {
	at   string
	stop func()

	mu  sync.Mutex
	got []proxy.Request
}

// start serves a proxy that lets these endpoints through.
func start(t *testing.T, cfg proxy.Config, allowed ...string) *running {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{at: l.Addr().String()}
	cfg.Allow = func(endpoint, _ string) error {
		if !slices.Contains(allowed, endpoint) {
			return fmt.Errorf("the host %s is not granted", endpoint)
		}
		return nil
	}
	if cfg.Guard == nil {
		cfg.Guard = func(string, netip.AddrPort) error { return nil }
	}
	cfg.Report = func(q proxy.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, q)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		proxy.Serve(ctx, l, cfg)
	}()
	r.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(r.stop)
	return r
}

// reported are the requests of a proxy that has ended.
func (r *running) reported() []proxy.Request {
	r.stop()
	return r.got
}

// client asks the proxy for everything.
func (r *running) client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.at})}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// dial opens a connection to the proxy and sends a text.
func (r *running) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// status is that of the answer to what was sent.
func status(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return resp.StatusCode, string(body)
}

func serve(t *testing.T, h http.HandlerFunc) (endpoint string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func get(t *testing.T, c *http.Client, address string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Proxy-Authorization", "secret")
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// Attack 79: a host off the list is refused with 403, and its name is never looked up, so that a question to a name server carries
// nothing away.
func TestAttack79HostsOffTheList(t *testing.T) {
	r := start(t, proxy.Config{}, "api.example.com:443")
	before := lookups.count()
	for text, want := range map[string]string{
		"CONNECT secret.evil.example:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n":             "the host secret.evil.example:443 is not granted",
		"CONNECT api.example.com:22 HTTP/1.1\r\nHost: api.example.com:22\r\n\r\n":               "the host api.example.com:22 is not granted",
		"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n":                                "the host 169.254.169.254:80 is not granted",
		"CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n":                                         "the host [::1]:443 is not granted",
		"CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\nHost: x\r\n\r\n":                              "the host cannot be read",
		"GET http://secret.evil.example/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n":             "the host secret.evil.example:80 is not granted",
		"GET http://api.example.com@secret.evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n":           "the host cannot be read",
		"GET https://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n":                "this is a proxy",
		"GET / HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n":                                   "this is a proxy",
		"GET http://2130706433/ HTTP/1.1\r\nHost: x\r\n\r\n":                                    "the host 2130706433:80 is not granted",
		"GET http://１２７.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n":                                     "the host 127.0.0.1:80 is not granted",
		"GET ftp://api.example.com:443/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n":              "this is a proxy",
		"CONNECT api.example.com.secret.evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n":           "is not granted",
		"GET http:opaque HTTP/1.1\r\nHost: api.example.com\r\n\r\n":                             "this is a proxy",
		"OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\n\r\n":                                   "this is a proxy",
		"PROPFIND http://10.0.0.1:8080/ HTTP/1.1\r\nHost: x\r\n\r\n":                            "the host 10.0.0.1:8080 is not granted",
		"CONNECT API.example.com.:444 HTTP/1.1\r\nHost: x\r\n\r\n":                              "the host api.example.com:444 is not granted",
		"POST http://secret.evil.example:443/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n": "the host secret.evil.example:443 is not granted",
	} {
		code, body := status(t, r.dial(t, text))
		if code != http.StatusForbidden || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s", text, code, body)
		}
	}
	if n := lookups.count() - before; n != 0 {
		t.Errorf("a name server was asked %d times", n)
	}
	got := r.reported()
	if len(got) != 18 || slices.ContainsFunc(got, func(q proxy.Request) bool { return q.Refused == "" }) {
		t.Errorf("%d are reported: %+v", len(got), got)
	}
}

// A host on the list whose name leads to an address that must not be reached is refused where it is dialled.
func TestAddressesAreJudgedWhereTheyAreDialled(t *testing.T) {
	endpoint := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the host was reached") })
	r := start(t, proxy.Config{Guard: func(string, netip.AddrPort) error { return errors.New("not public") }}, endpoint)
	for _, text := range []string{"CONNECT " + endpoint + " HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://" + endpoint + "/ HTTP/1.1\r\nHost: x\r\n\r\n"} {
		code, body := status(t, r.dial(t, text))
		if code != http.StatusForbidden || !strings.Contains(body, "an address that must not be reached") {
			t.Errorf("%q: %d %s", text, code, body)
		}
	}
	for _, q := range r.reported() {
		if q.Endpoint != endpoint || q.Refused == "" {
			t.Errorf("reported %+v", q)
		}
	}
}

// A listed host is reached: over a tunnel, and by plain requests whose headers of the connection end at the proxy.
func TestListedHostsAreReached(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Keep-Alive", "x")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s %s %s %q", r.Method, r.Host, body, r.Header.Get("Proxy-Authorization"))
	}
	plain := serve(t, echo)
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	t.Cleanup(secure.Close)
	r := start(t, proxy.Config{}, plain, strings.TrimPrefix(secure.URL, "https://"))
	c := r.client(t)
	if code, body, err := get(t, c, "http://"+plain+"/"); err != nil || code != http.StatusCreated || body != "GET "+plain+`  ""` {
		t.Errorf("%d %s %v", code, body, err)
	}
	own, ok := secure.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	own.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: r.at})
	if code, body, err := get(t, &http.Client{Transport: own}, secure.URL); err != nil || code != http.StatusCreated || !strings.HasPrefix(body, "GET ") {
		t.Errorf("%d %s %v", code, body, err)
	}
	own.CloseIdleConnections()
	got := r.reported()
	if len(got) != 2 || got[0] != (proxy.Request{Method: "GET", Endpoint: plain}) || got[1].Method != http.MethodConnect || got[1].Refused != "" || got[1].Failed {
		t.Errorf("reported %+v", got)
	}
}

// A redirect is the process's to follow, and its host is judged like any other.
func TestRedirectsAreNotFollowed(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
	})
	r := start(t, proxy.Config{}, endpoint)
	if code, _, err := get(t, r.client(t), "http://"+endpoint); err != nil || code != http.StatusFound {
		t.Errorf("%d %v", code, err)
	}
}

// The bytes of all connections together are bounded, in both directions.
func TestBytesAreBounded(t *testing.T) {
	const most = 1 << 20
	var sent sync.WaitGroup
	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		defer sent.Done()
		for {
			if _, err := w.Write(make([]byte, 1<<15)); err != nil {
				return
			}
		}
	})
	r := start(t, proxy.Config{Bytes: most}, endpoint)
	_, body, err := get(t, r.client(t), "http://"+endpoint)
	if err == nil || len(body) > most || len(body) < most/2 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if _, _, err := get(t, r.client(t), "http://"+endpoint); err == nil {
		t.Error("another connection has bytes of its own")
	}
	sent.Wait()
	if got := r.reported(); len(got) != 1 || !got[0].Failed {
		t.Errorf("reported %+v", got)
	}
}

// A tunnel without a byte, one that lasts too long, and a host that never answers, end.
func TestSilenceEnds(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it accepts nothing: the kernel does
	silent := l.Addr().String()
	for name, cfg := range map[string]proxy.Config{"idle": {Idle: 50 * time.Millisecond}, "total": {Total: 50 * time.Millisecond}} {
		r := start(t, cfg, silent)
		c := r.dial(t, "CONNECT "+silent+" HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") {
			t.Errorf("%s: a tunnel ends with %q, %v", name, all, err)
		}
		c = r.dial(t, "GET http://"+silent+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if all, err := io.ReadAll(c); isTimeout(err) || len(all) > 0 && !strings.HasPrefix(string(all), "HTTP/1.1 502 ") {
			t.Errorf("%s: a request ends with %q, %v", name, all, err)
		}
		if got := r.reported(); len(got) != 2 || !got[1].Failed {
			t.Errorf("%s: reported %+v", name, got)
		}
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// The end of the proxy ends every connection, also one in the middle of a tunnel, and waits for it.
func TestTheEndEndsEverything(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := start(t, proxy.Config{}, l.Addr().String())
	c := r.dial(t, "CONNECT "+l.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 "))); err != nil {
		t.Fatal(err)
	}
	waiting := r.dial(t, "GET ") // the beginning of a head
	if got := r.reported(); len(got) != 1 || got[0].Refused != "" {
		t.Errorf("reported %+v", got)
	}
	for _, c := range []net.Conn{c, waiting} {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c); isTimeout(err) {
			t.Error("a connection is still open")
		}
	}
}

// Only so many connections are open at once; another one waits for its turn.
func TestConnectionsAreBounded(t *testing.T) {
	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	r := start(t, proxy.Config{Connections: 1}, endpoint)
	first := r.dial(t, "CONNECT "+endpoint+" HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.ReadFull(first, make([]byte, len("HTTP/1.1 200 "))); err != nil {
		t.Fatal(err)
	}
	second := r.dial(t, "GET http://"+endpoint+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = second.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := second.Read(make([]byte, 1)); !isTimeout(err) {
		t.Fatalf("the second was answered while the first was open: %v", err)
	}
	_ = first.Close()
	_ = second.SetReadDeadline(time.Now().Add(20 * time.Second))
	if code, body := status(t, second); code != http.StatusOK || body != "ok" {
		t.Errorf("%d %s", code, body)
	}
}

// A listener that is closed ends the proxy.
func TestAClosedListenerEndsIt(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		proxy.Serve(context.Background(), l, proxy.Config{})
	}()
	_ = l.Close()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the proxy still runs")
	}
}
