package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Servers are a NATS server and a Redis-compatible store in this process. Safe for concurrent use.
type Servers struct {
	// NATSURL is nats://host:port, or empty with NoListen. It stays the same over restarts.
	NATSURL string
	// RedisURL is redis://host:port/0, or empty with NoRedis. It stays the same over restarts.
	RedisURL string

	// Fixed once Start has returned.
	config    Config // with the ports that were picked
	store     *store
	clock     func()     // stops the clock of redis
	mu        sync.Mutex // guards what follows, and is held while a server starts or stops
	nats      *server.Server
	redis     *miniredis.Miniredis
	isStopped bool
}

// Start returns once both servers accept connections. The ctx is only looked at before each of them starts: neither can
// be interrupted while it reads its store, and the end of ctx does not stop them; Stop does.
// An address that is taken and a Dir that is in use are errors that name them.
func Start(ctx context.Context, config Config) (*Servers, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start embedded servers: %w", err)
	}
	st, err := openStore(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("start embedded servers: %w", err)
	}
	s := &Servers{config: config, store: st}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("start embedded servers: %w", errors.Join(err, s.Stop()))
	}
	return s, nil
}

func (s *Servers) start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var converted []string
	if s.config.Key != "" {
		var err error
		if converted, err = clearStreams(s.store.dir); err != nil {
			return err
		}
	}
	if err := s.StartNATS(); err != nil {
		return err
	}
	if err := s.removeUnused(ctx, converted); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.config.NoRedis {
		return nil
	}
	return s.StartRedis()
}

// Dir is the folder that holds the data; the caller may keep folders of its own in it.
func (s *Servers) Dir() string { return s.store.dir }

// Conn connects to NATS without the network, ready to reconnect forever after StopNATS and StartNATS, and with
// nothing buffered meanwhile: a message that its caller has given up on must not be sent later.
// The caller closes it, before Stop.
func (s *Servers) Conn(opts ...nats.Option) (*nats.Conn, error) {
	house := []nats.Option{nats.InProcessServer(pipe{s}), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1)}
	nc, err := nats.Connect("", append(house, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to embedded nats: %w", err)
	}
	return nc, nil
}

// Stop ends both servers and waits for them. It removes the store if Start made a temporary one. Calling it again
// does nothing.
func (s *Servers) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStopped {
		return nil
	}
	s.isStopped = true
	s.stopRedis()
	s.stopNATS()
	if err := s.store.close(); err != nil {
		return fmt.Errorf("stop embedded servers: %w", err)
	}
	return nil
}

// errStopped is returned by a start after Stop: another process may own the store by now.
var errStopped = errors.New("servers are stopped")

// pipe lets a connection find the server that runs now, which is another one after a restart.
type pipe struct{ s *Servers }

// InProcessConn fails while NATS is stopped.
func (p pipe) InProcessConn() (net.Conn, error) {
	p.s.mu.Lock()
	ns := p.s.nats
	p.s.mu.Unlock()
	if ns == nil {
		return nil, os.ErrClosed
	}
	return ns.InProcessConn()
}
