package embeddedtest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// Relay opens a way to a TCP server that a test can meddle with, and returns its address. Opened is called for each connection and returns
// what is called with each piece of what the server sends there: it may change the piece, or wait until ctx is done, which is at the
// test's end. When it returns false the connection breaks in place of the piece.
func Relay(tb testing.TB, server string, opened func(ctx context.Context) func(piece []byte) bool) (addr string) {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(tb.Context()))
	var all sync.WaitGroup
	tb.Cleanup(func() {
		end()
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := new(net.Dialer).DialContext(ctx, "tcp", server)
			if err != nil {
				_ = down.Close()
				continue
			}
			hangUp := func() { _, _ = down.Close(), up.Close() }
			stop := context.AfterFunc(ctx, hangUp)
			all.Go(func() {
				defer hangUp()
				_, _ = io.Copy(up, down)
			})
			all.Go(func() {
				defer stop()
				defer hangUp()
				pass := opened(ctx)
				for piece := make([]byte, 64<<10); ; {
					n, err := up.Read(piece)
					if n > 0 && !pass(piece[:n]) {
						return
					}
					if _, werr := down.Write(piece[:n]); err != nil || werr != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}
