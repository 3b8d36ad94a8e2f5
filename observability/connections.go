package observability

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	defaultConnections = 40_000
	defaultPerAddress  = 20_000
	// How often a log says that connections are refused.
	tellEvery = time.Minute
	// Of IPv6 a customer has a whole network like this.
	network6 = 64
)

// Connections bound those that a server holds at once. One above a limit is closed before anything is read from it.
type Connections struct {
	Most       int // default 40000; three quarters of the descriptors that the process may have, if that is less
	PerAddress int // default 20000
}

// limit makes a listener that holds no more.
func (c Connections) limit(l net.Listener, log *slog.Logger) net.Listener {
	if c.Most == 0 {
		c.Most = defaultConnections
	}
	if c.PerAddress == 0 {
		c.PerAddress = defaultPerAddress
	}
	if descriptors := mostDescriptors(); descriptors > 0 {
		c.Most = min(c.Most, max(descriptors/4*3, 1))
	}
	return &limited{Listener: l, limits: c, log: log, of: map[netip.Addr]int{}}
}

// limited is a TCP listener that counts.
type limited struct {
	net.Listener

	limits Connections
	log    *slog.Logger

	mu      sync.Mutex
	all     int
	of      map[netip.Addr]int
	refused int // since told
	told    time.Time
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			_ = conn.Close()
			return nil, fmt.Errorf("accept: a connection of type %T", conn)
		}
		from := network(tcp.RemoteAddr())
		if l.take(from) {
			return &counted{TCPConn: tcp, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = tcp.Close()
		l.tell(from)
	}
}

func (l *limited) take(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.limits.Most || l.of[from] >= l.limits.PerAddress {
		l.refused++
		return false
	}
	l.all++
	l.of[from]++
	return true
}

// tell says in the log that connections are refused, now and then.
func (l *limited) tell(from netip.Addr) {
	l.mu.Lock()
	refused, all, own := l.refused, l.all, l.of[from]
	if time.Since(l.told) < tellEvery {
		l.mu.Unlock()
		return
	}
	l.refused, l.told = 0, time.Now()
	l.mu.Unlock()
	l.log.Warn("connections are refused: there are as many as LONGSHORE_HTTP_CONNECTIONS or LONGSHORE_HTTP_CONNECTIONS_PER_ADDRESS allow",
		"refused", refused, "open", all, "remote", from.String(), "of_remote", own)
}

func (l *limited) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[from]--; l.of[from] == 0 {
		delete(l.of, from)
	}
}

// network is what counts as one address.
func network(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr
	}
	p, err := addr.Prefix(network6)
	if err != nil {
		return addr
	}
	return p.Addr()
}

// counted is a connection that gives its slot back.
type counted struct {
	*net.TCPConn

	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
