package observability

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Limits of a server for probes and scrapes, which are small and quick.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = 30 * time.Second // a scrape over a slow line
	idleTimeout     = 2 * time.Minute  // longer than scrapes are apart
	shutdownTimeout = 5 * time.Second  // what a request in flight has left when the process stops
	maxHeaderBytes  = 16 << 10
)

// Serve listens on a TCP address such as ":9090" and serves h until ctx ends, then lets requests in flight end, for 5
// seconds at most. It returns as soon as it listens: the address is the one it got, also for port 0, and a port that
// is taken is an error.
//
// Wait returns when all has ended: nil after ctx did, an error when the server stopped before. The caller must wait.
// A nil log discards.
func Serve(ctx context.Context, addr string, h http.Handler, log *slog.Logger) (at net.Addr, wait func() error, err error) {
	return ServeWith(ctx, addr, h, ServeConfig{Log: log})
}

// ServeConfig is how a server serves.
type ServeConfig struct {
	Certificate *Certificate // HTTPS alone, TLS 1.2 and newer; nil: HTTP
	Connections Connections
	Log         *slog.Logger // default: discard
}

// ServeWith is Serve with more to choose.
func ServeWith(ctx context.Context, addr string, h http.Handler, cfg ServeConfig) (at net.Addr, wait func() error, err error) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, nil, fmt.Errorf("serve metrics and health: %w (another process has the port: stop it or choose another address)", err)
	case err != nil:
		return nil, nil, fmt.Errorf("serve metrics and health: %w", err)
	}
	s := &server{log: log, listener: cfg.Connections.limit(listener, log)}
	s.http = &http.Server{
		Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong
		// A request in flight ends by the shutdown, not with ctx.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if cfg.Certificate != nil {
		s.http.TLSConfig = cfg.Certificate.config()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	return listener.Addr(), sync.OnceValue(func() error { return <-ended }), nil
}

type server struct {
	log      *slog.Logger
	listener net.Listener
	http     *http.Server
}

func (s *server) run(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() {
		if s.http.TLSConfig != nil {
			stopped <- s.http.ServeTLS(s.listener, "", "")
			return
		}
		stopped <- s.http.Serve(s.listener)
	}()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve metrics and health: %w", err)
	case <-ctx.Done():
	}
	s.shutdown(context.WithoutCancel(ctx))
	if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics and health: %w", err) // it failed just before
	}
	return nil
}

func (s *server) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.WarnContext(ctx, "requests for metrics or health are cut off", "err", err)
		_ = s.http.Close() // they are cut off either way
	}
}
