package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

// Ports of the schemes.
const (
	portHTTP  = "80"
	portHTTPS = "443"
)

// ServeHTTP judges a request and makes it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.working.Add(1) // its connection is counted too, so that this is never the first
	defer s.working.Done()
	done := Request{Method: strict.Clip(r.Method, 32)}
	defer func() {
		if s.cfg.Report != nil {
			s.cfg.Report(done)
		}
	}()
	endpoint, scheme, reason := named(r)
	done.Endpoint = endpoint
	if reason == "" {
		if err := s.cfg.Allow(endpoint, scheme); err != nil {
			reason = err.Error()
		}
	}
	if reason != "" {
		done.Refused = reason
		refuse(w, reason)
		return
	}
	ctx, end := context.WithTimeout(r.Context(), s.cfg.Total)
	defer end()
	var err error
	if r.Method == http.MethodConnect {
		err = s.tunnel(ctx, end, w, endpoint)
	} else {
		err = s.plain(ctx, end, w, r, endpoint)
	}
	switch {
	case errors.Is(err, errGuard):
		done.Refused = errGuard.Error()
	case errors.Is(err, errCut):
		done.Failed = true
		panic(http.ErrAbortHandler) // so that the process sees a body that broke off, and no end of one
	case err != nil:
		done.Failed = true
	}
}

// errCut means that a body broke off after its beginning was passed on.
var errCut = errors.New("the body broke off")

// named is the host that a request is for, and the port of its scheme; reason says why it is for none.
func named(r *http.Request) (endpoint, schemePort, reason string) {
	u := &url.URL{Scheme: "https", Host: r.Host}
	if schemePort = portHTTPS; r.Method != http.MethodConnect {
		u, schemePort = r.URL, portHTTP
		if u.Scheme != "http" || u.Host == "" {
			return "", "", "this is a proxy: ask for http://host/path, or CONNECT to host:port"
		}
	}
	endpoint = hosts.Endpoint(u)
	name, port, err := net.SplitHostPort(endpoint)
	if err != nil || name == "" || port == "" || u.User != nil || len(name) > 253 || strings.ContainsFunc(name, unusual) {
		return "", "", "the host cannot be read"
	}
	return endpoint, schemePort, ""
}

// unusual is a character of no host. A zone of an address begins with %.
func unusual(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("%/@?#\\", r) }

func refuse(w http.ResponseWriter, reason string) {
	w.Header().Set("Connection", "close")
	http.Error(w, "longshore: "+reason, http.StatusForbidden)
}

// unreachable answers a request whose host did not.
func unreachable(w http.ResponseWriter, err error) error {
	if errors.Is(err, errGuard) {
		refuse(w, errGuard.Error())
		return errGuard
	}
	w.Header().Set("Connection", "close")
	http.Error(w, "longshore: the host does not answer", http.StatusBadGateway)
	return err
}

// tunnel connects the process with a host. What they say is theirs.
func (s *server) tunnel(ctx context.Context, end context.CancelFunc, w http.ResponseWriter, endpoint string) error {
	there, err := s.transport.DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return unreachable(w, err)
	}
	defer func() { _ = there.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return errors.New("the connection cannot be taken over")
	}
	here, buffered, err := hijacker.Hijack()
	if err != nil {
		return fmt.Errorf("take over connection: %w", err)
	}
	defer func() { _ = here.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })()
	if err := here.SetDeadline(time.Time{}); err != nil { // the context ends it
		return err
	}
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	idle := time.AfterFunc(s.cfg.Idle, end)
	defer idle.Stop()
	alive := func() { idle.Reset(s.cfg.Idle) }
	var out sync.WaitGroup
	out.Go(func() { pipe(there, buffered.Reader, alive, end) })
	pipe(here, there, alive, end)
	out.Wait()
	return nil
}

// pipe copies until one side ends, and says so to the other. A side that breaks ends the tunnel.
func pipe(to net.Conn, from io.Reader, alive func(), end context.CancelFunc) {
	_, err := io.Copy(to, &watched{from, alive})
	if err != nil || closeWrite(to) != nil {
		end()
	}
}

// watched tells of each piece that is read.
type watched struct {
	io.Reader

	alive func()
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.alive()
	return n, err
}

// plain makes a request that is not encrypted.
func (s *server) plain(ctx context.Context, end context.CancelFunc, w http.ResponseWriter, r *http.Request, endpoint string) error {
	idle := time.AfterFunc(s.cfg.Idle, end)
	defer idle.Stop()
	alive := func() { idle.Reset(s.cfg.Idle) }
	control := http.NewResponseController(w)
	if until, ok := ctx.Deadline(); ok {
		if err := errors.Join(control.SetReadDeadline(until), control.SetWriteDeadline(until)); err != nil {
			return err
		}
	}
	// A write to a process that does not read would otherwise wait for that deadline.
	defer context.AfterFunc(ctx, func() {
		_, _ = control.SetReadDeadline(time.Now()), control.SetWriteDeadline(time.Now())
	})()
	out := r.Clone(ctx)
	out.RequestURI, out.Host, out.URL.Host = "", strings.TrimSuffix(endpoint, ":"+portHTTP), endpoint
	strip(out.Header)
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = struct {
			io.Reader
			io.Closer
		}{&watched{r.Body, alive}, r.Body}
	}
	resp, err := s.transport.RoundTrip(out)
	if err != nil {
		return unreachable(w, err)
	}
	defer func() { _ = resp.Body.Close() }()
	strip(resp.Header)
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(&flushed{w, control}, &watched{resp.Body, alive}); err != nil {
		return errCut
	}
	return nil
}

// strip removes the headers that end at a proxy.
func strip(h http.Header) {
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	} {
		h.Del(name)
	}
}

// flushed passes on each piece at once.
type flushed struct {
	io.Writer

	control *http.ResponseController
}

func (f *flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.control.Flush()
}
