package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/tools/outbound"
)

// slack is how much longer than a call the head of a response may take, so that it is the call that ends.
const slack = 5 * time.Second

// unsentError is a request that never left: it had no effect.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }

func (e *unsentError) Unwrap() error { return e.err }

// dialHTTP makes the client of a server with streamable HTTP. It connects when it is first used.
func (s *server) dialHTTP(ctx context.Context) transport {
	g := &gate{auth: s.auth, most: s.cfg.Bytes, transport: guarded(s.auth.chosen)}
	g.transport.ResponseHeaderTimeout = time.Duration(s.cfg.Timeout) + slack
	t := &remote{inner: &sdk.StreamableClientTransport{
		Endpoint: s.cfg.URL, MaxEventSize: s.cfg.Bytes, MaxRetries: 3,
		HTTPClient: &http.Client{Transport: g, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}}
	stop := context.AfterFunc(ctx, t.end)
	return transport{Transport: t, conn: t.end, done: func() {
		stop()
		g.transport.CloseIdleConnections()
	}}
}

// guarded dials the chosen host alone. An operator who names an address means it, wherever it leads, except to where clouds keep
// credentials of machines.
func guarded(chosen hosts.List) *http.Transport {
	return egress.Transport(outbound.Guard(chosen, chosen))
}

// remote remembers the connection of its transport, which the library can only close once nothing is under way.
type remote struct {
	inner *sdk.StreamableClientTransport

	mu     sync.Mutex
	conn   sdk.Connection
	closed bool
}

// Connect implements sdk.Transport.
func (r *remote) Connect(ctx context.Context) (sdk.Connection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errAway
	}
	var err error
	r.conn, err = r.inner.Connect(ctx)
	return r.conn, err
}

// end breaks the connection. The server is told, for a moment at most.
func (r *remote) end() {
	r.mu.Lock()
	conn := r.conn
	r.closed = true
	r.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// gate is what each request passes: it goes to the one endpoint, with its authorization, and what comes back is bounded.
type gate struct {
	auth      *authorizer
	most      int
	transport *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.once(req, false)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || g.auth.oauth == nil || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	_ = resp.Body.Close() // the token was withdrawn: it was not served, and is asked once more with a new one
	return g.once(req, true)
}

func (g *gate) once(req *http.Request, fresh bool) (*http.Response, error) {
	if hosts.Endpoint(req.URL) != g.auth.endpoint {
		return nil, &unsentError{fmt.Errorf("%s is not the server's", hosts.Endpoint(req.URL))}
	}
	var sent atomic.Bool
	out := req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}))
	if req.GetBody != nil {
		var err error
		if out.Body, err = req.GetBody(); err != nil {
			return nil, &unsentError{err}
		}
	}
	if err := g.auth.authorize(out, fresh); err != nil {
		return nil, &unsentError{err}
	}
	resp, err := g.transport.RoundTrip(out)
	if err != nil {
		if !sent.Load() {
			err = &unsentError{err}
		}
		return nil, err
	}
	resp.Body = &bounded{inner: resp.Body, left: g.most}
	return resp, nil
}

// bounded is a body of which so much is read. That of a stream that stays open is bounded as a whole too: the library opens
// another.
type bounded struct {
	inner io.ReadCloser
	left  int
}

var errLong = errors.New("the server sent more than one answer may have")

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.inner.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.inner.Close() }

// carries reports whether a secret may be sent to an address: over https, or to the machine itself.
func carries(u *url.URL) bool { return u.Scheme == "https" || loopback(u.Hostname()) }
