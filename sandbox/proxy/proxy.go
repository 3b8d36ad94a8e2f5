// Package proxy is the only way out of a sandboxed process that may reach hosts. It speaks HTTP: CONNECT for anything that is
// encrypted, and plain requests. [Serve] judges a host before it looks up its name, and judges the very address again where it
// dials; a refused host is answered with 403. It sees names and addresses, not what goes through a tunnel: list only hosts that
// may see whatever the process knows.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages/egress"
)

// Config of a proxy. Zero limits are the defaults.
type Config struct {
	// Allow returns an error, fit for the process, if a host with its port, as hosts.Endpoint writes it, must not be reached.
	// The port of the scheme is "443" for a tunnel and "80" for a plain request. It asks no name server. Required.
	Allow func(endpoint, schemePort string) error
	Guard egress.Guard // judges an address before it is dialled. Required
	// Report is called with each request when it ends, refused ones included, before Serve returns. It may be called from many
	// goroutines at once. It may be nil.
	Report func(Request)

	Connections int           // open at once; further ones wait. Default 32
	Bytes       int64         // of all connections, in both directions together; then they break. Default 64 MiB
	Idle        time.Duration // without a byte in either direction. Default 30 s
	Total       time.Duration // of one request or tunnel. Default 10 min
}

// Request is what came of a request to the proxy.
type Request struct {
	Method   string
	Endpoint string // host and port; empty if the process named none
	Refused  string // why it was refused; empty: it was let through
	Failed   bool   // it was let through, and the host did not answer
}

// Defaults of Config, and bounds that are not configured.
const (
	defaultConnections = 32
	defaultBytes       = 64 << 20
	defaultIdle        = 30 * time.Second
	defaultTotal       = 10 * time.Minute

	headTimeout = 10 * time.Second
	maxHead     = 64 << 10
)

// errBytes is what a connection ends with when the bytes of the proxy are used up.
var errBytes = errors.New("the bytes that the process may send and receive are used up")

// errGuard means that the guard refused an address.
var errGuard = errors.New("the host resolves to an address that must not be reached")

// server is one proxy.
type server struct {
	cfg       Config
	transport *http.Transport
	slots     chan struct{} // of connections
	left      atomic.Int64  // bytes
	working   sync.WaitGroup
}

// Serve accepts connections until ctx is done or the listener is closed. It closes the listener and every connection, and returns
// when all that it started has ended.
func Serve(ctx context.Context, l net.Listener, cfg Config) {
	cfg.Connections = cmp.Or(cfg.Connections, defaultConnections)
	cfg.Bytes = cmp.Or(cfg.Bytes, defaultBytes)
	cfg.Idle = cmp.Or(cfg.Idle, defaultIdle)
	cfg.Total = cmp.Or(cfg.Total, defaultTotal)
	s := &server{cfg: cfg, slots: make(chan struct{}, cfg.Connections)}
	s.left.Store(cfg.Bytes)
	s.transport = egress.Transport(func(endpoint string, at netip.AddrPort) error {
		if cfg.Guard(endpoint, at) != nil {
			return errGuard
		}
		return nil
	})
	s.transport.DisableKeepAlives, s.transport.DisableCompression = true, true
	s.transport.ForceAttemptHTTP2 = false
	s.transport.ResponseHeaderTimeout = cfg.Idle
	ctx, end := context.WithCancel(ctx)
	defer end()
	web := &http.Server{
		Handler: s, DisableGeneralOptionsHandler: true, ReadHeaderTimeout: headTimeout, IdleTimeout: cfg.Idle, MaxHeaderBytes: maxHead,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.working.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.working.Done()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		defer end()
		_ = web.Serve(&bounded{l, s, ctx.Done()})
	})
	accepting.Go(func() {
		<-ctx.Done()
		_ = web.Close()
	})
	<-ctx.Done()
	accepting.Wait() // no connection is new from here on
	_ = l.Close()    // where the server had not begun
	s.working.Wait()
}
