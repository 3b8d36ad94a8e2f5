package proxy

import (
	"net"
	"sync"
)

// bounded is a listener that accepts only so many connections at once. Others wait in the kernel's queue.
type bounded struct {
	net.Listener

	s    *server
	done <-chan struct{} // of the proxy
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.s.slots <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.s.slots
		return nil, err
	}
	return &counted{Conn: c, s: b.s}, nil
}

// counted is a connection of the process, whose bytes are counted.
type counted struct {
	net.Conn

	s    *server
	once sync.Once
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.s.left.Add(-int64(n)) < 0 {
		return 0, errBytes
	}
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	if c.s.left.Add(-int64(len(p))) < 0 {
		return 0, errBytes
	}
	return c.Conn.Write(p)
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.s.slots })
	return c.Conn.Close()
}

// CloseWrite says that no more is sent.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends one direction of a connection that has two, and otherwise both.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
