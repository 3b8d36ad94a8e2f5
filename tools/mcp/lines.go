package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/longshore-run/longshore/messages/strict"
)

// What a server may send without being asked is bounded: each message counts as its size and something for the handling.
const (
	floodRate  = 256 << 10 // bytes a second
	floodBurst = 4 << 20
	floodEach  = 256
)

// writeTimeout is how long a process may leave a message unread.
const writeTimeout = 10 * time.Second

var errFlood = errors.New("the server sends more than it was asked for, and faster than anything reads")

// lines is a connection of one JSON-RPC message a line, as a process speaks it. It does what the library's does, and bounds
// how much is read, how fast it comes and how long a write may take. How deep a message may be nested the library bounds.
type lines struct {
	in    *bufio.Reader
	from  *os.File
	to    *os.File
	most  int
	flood *rate.Limiter

	writing sync.Mutex
	once    sync.Once
}

var (
	_ sdk.Connection = (*lines)(nil)
	_ sdk.Transport  = (*lines)(nil)
)

func newLines(from, to *os.File, most int) *lines {
	return &lines{in: bufio.NewReaderSize(from, 64<<10), from: from, to: to, most: most, flood: rate.NewLimiter(floodRate, floodBurst)}
}

// Connect implements sdk.Transport.
func (l *lines) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID implements sdk.Connection.
func (l *lines) SessionID() string { return "" }

// Read implements sdk.Connection. Only one goroutine reads.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		data, err := readLine(l.in, l.most)
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			if !l.flood.AllowN(time.Now(), floodEach) {
				return nil, errFlood
			}
			continue
		}
		msg, err := message(data)
		if err != nil {
			return nil, err
		}
		cost := floodEach
		if _, asks := msg.(*jsonrpc.Request); asks {
			cost += len(data)
		}
		if !l.flood.AllowN(time.Now(), min(cost, floodBurst)) {
			return nil, errFlood
		}
		return msg, nil
	}
}

// message reads one message. A batch is none.
func message(data []byte) (jsonrpc.Message, error) {
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, fmt.Errorf("the server wrote what is no message of JSON-RPC: %s", strict.Shown(string(data[:min(len(data), 200)])))
	}
	return msg, nil
}

// readLine reads up to a line break, which may be missing at the end.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(whole)+len(part) > most {
			return nil, fmt.Errorf("the server sent a message of more than %d bytes", most)
		}
		whole = append(whole, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(whole) > 0:
			return whole, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// Write implements sdk.Connection. A write that ctx leaves continues to the end of its message; one that takes too long breaks
// the connection.
func (l *lines) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		l.writing.Lock()
		defer l.writing.Unlock()
		err := l.to.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err == nil {
			_, err = l.to.Write(append(data, '\n'))
		}
		if err != nil {
			_ = l.Close() // the rest of the message would be read as the next one
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements sdk.Connection.
func (l *lines) Close() error {
	l.once.Do(func() {
		_ = l.to.Close()
		_ = l.from.Close()
	})
	return nil
}
