package outbound_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/tools/outbound"
)

// anywhere lets every address be dialled.
func anywhere(string, netip.AddrPort) error { return nil }

func client(body int64) *outbound.Client { return outbound.New(anywhere, body) }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// raw is a server that handles each connection by itself, and counts them.
func raw(t *testing.T, handle func(net.Conn)) (url string, n *atomic.Int64) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n = new(atomic.Int64)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			all.Go(func() {
				defer func() { _ = c.Close() }()
				handle(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return "http://" + l.Addr().String(), n
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// fails makes a request that must fail, and returns why.
func fails(t *testing.T, c *outbound.Client, req *http.Request) *outbound.Error {
	t.Helper()
	resp, err := c.Do(req)
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		t.Fatalf("response %+v, error %v", resp, err)
	}
	return e
}

// A body is read up to its bound, which counts after decompression, and no further.
func TestBodiesAreBounded(t *testing.T) {
	const bound = 1 << 16
	var written atomic.Int64
	var small bytes.Buffer // 16 MiB in 16 KiB
	z := gzip.NewWriter(&small)
	if _, err := z.Write(make([]byte, 16<<20)); err != nil || z.Close() != nil || small.Len() > bound {
		t.Fatal(err, small.Len())
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := map[string]int{"/empty": 0, "/exact": bound, "/one-more": bound + 1}[r.URL.Path]
		switch r.URL.Path {
		case "/endless":
			for {
				k, err := w.Write(make([]byte, 1<<15))
				if written.Add(int64(k)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(small.Bytes())
		default:
			_, _ = w.Write(make([]byte, n))
		}
	})
	for path, want := range map[string]struct {
		n   int
		cut bool
	}{"/empty": {0, false}, "/exact": {bound, false}, "/one-more": {bound, true}, "/endless": {bound, true}, "/bomb": {bound, true}} {
		r, err := client(bound).Do(request(t, http.MethodGet, url+path, ""))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if len(r.Body) != want.n || r.Truncated != want.cut || cap(r.Body) > 4*bound {
			t.Errorf("%s: %d bytes with room for %d, cut %v", path, len(r.Body), cap(r.Body), r.Truncated)
		}
	}
	if n := written.Load(); n > 64<<20 {
		t.Errorf("the endless body was %d bytes long", n)
	}
}

// Only what was asked for is decompressed.
func TestEncodings(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "gzip" {
			t.Errorf("asked for %q", got)
		}
		w.Header().Set("Content-Encoding", r.URL.Query().Get("e"))
		_, _ = io.WriteString(w, "x")
	})
	for _, encoding := range []string{"br", "zstd", "deflate", "gzip,gzip", strings.Repeat("x", 1000)} {
		e := fails(t, client(10), request(t, http.MethodGet, url+"/?e="+encoding, ""))
		if !e.Sent || e.Brief || !strings.Contains(e.Reason, "which was not asked for") || len(e.Reason) > 300 {
			t.Errorf("%s: %+v", encoding, e)
		}
	}
	if r, err := client(10).Do(request(t, http.MethodGet, url+"/?e=identity", "")); err != nil || string(r.Body) != "x" {
		t.Errorf("identity: %+v, %v", r, err)
	}
	e := fails(t, client(10), request(t, http.MethodGet, url+"/?e=gzip", ""))
	if !e.Sent || !strings.Contains(e.Reason, "broke off after 0 bytes") {
		t.Errorf("not gzip: %+v", e)
	}
}

// A redirect is an answer as any other; no cookie is kept, and no connection.
func TestNothingIsFollowedOrKept(t *testing.T) {
	var mu sync.Mutex
	from := map[string]bool{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		if r.URL.Path != "/" || r.Header.Get("Cookie") != "" {
			t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Cookie"))
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	c := client(1000)
	for range 3 {
		r, err := c.Do(request(t, http.MethodGet, url, ""))
		if err != nil || r.Status != http.StatusFound || r.Header.Get("Location") != "/elsewhere" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if len(from) != 3 {
		t.Errorf("%d connections for 3 requests", len(from))
	}
}

// A request whose connection breaks is not sent again, though its key says that it could be: the caller decides. The first request of each
// client is answered, so that a connection is there that could be used again.
func TestRequestsAreSentOnce(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		var n atomic.Int64
		url, _ := raw(t, func(c net.Conn) {
			for in := bufio.NewReader(c); ; {
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, req.Body); err != nil || n.Add(1) > 1 {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		c := client(10)
		for i := range 2 {
			req := request(t, method, url, "body")
			req.Header.Set("Idempotency-Key", "key")
			if i == 0 {
				if _, err := c.Do(req); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if e := fails(t, c, req); !e.Sent || !e.Brief {
				t.Errorf("%s: %+v", method, e)
			}
		}
		if n.Load() != 2 {
			t.Errorf("%s: 2 requests arrived %d times", method, n.Load())
		}
	}
}

// An error says whether the request may have arrived and whether another attempt may help, and shows no address.
func TestErrors(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	_ = l.Close()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	short, _ := raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
	})
	nonsense, _ := raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "220 mail.example.com ESMTP\r\n\r\n")
	})
	for name, tc := range map[string]struct {
		client      *outbound.Client
		url         string
		sent, brief bool
		want        string
	}{
		"nothing listens": {client(10), closed, false, true, "no connection: "},
		"not allowed": {
			outbound.New(func(string, netip.AddrPort) error { return outbound.ErrAddress }, 10), plain, false, false, outbound.ErrAddress.Error(),
		},
		"an unknown certificate": {client(10), secure.URL, false, false, "the certificate of the host is not valid: "},
		"no TLS":                 {client(10), strings.Replace(plain, "http:", "https:", 1), false, false, "the host does not speak TLS on that port"},
		"a short body":           {client(10), short, true, true, "the server answered 200, but its body broke off after 5 bytes: unexpected EOF"},
		"another protocol":       {client(10), nonsense, true, false, "no response: "},
	} {
		e := fails(t, tc.client, request(t, http.MethodPost, tc.url, "body"))
		if e.Sent != tc.sent || e.Brief != tc.brief || !strings.HasPrefix(e.Reason, tc.want) || strings.Contains(e.Reason, "127.0.0.1") && !strings.Contains(tc.want, "certificate") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if e := fails(t, outbound.New(func(string, netip.AddrPort) error { return outbound.ErrAddress }, 10), request(t, http.MethodGet, plain, "")); !errors.Is(e, outbound.ErrAddress) {
		t.Errorf("%v is no ErrAddress", e)
	}
}

// The end of a request's context ends the exchange wherever it is, and is the error.
func TestContext(t *testing.T) {
	silent := func(head string) string {
		url, _ := raw(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, head)
			_, _ = c.Read(make([]byte, 1)) // until the client is gone
		})
		return url
	}
	enough := errors.New("enough")
	for name, url := range map[string]string{"before the head": silent(""), "in the head": silent("HTTP/1.1 200 OK\r\nX-A: "), "in the body": silent("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, enough)
		began := time.Now()
		if _, err := client(10).Do(request(t, http.MethodGet, url, "").WithContext(ctx)); !errors.Is(err, enough) || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(began))
		}
		cancel()
	}
}

// Many requests at once do not see each other.
func TestConcurrentRequests(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	})
	c := client(100)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			r, err := c.Do(request(t, http.MethodPost, fmt.Sprintf("%s/%d", url, i), fmt.Sprint("n", i)))
			if err != nil || string(r.Body) != fmt.Sprintf("/%d n%d", i, i) {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		})
	}
	all.Wait()
}
