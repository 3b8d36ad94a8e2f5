package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// A body without a length of its own, such as the lines of a batch, must come faster than this in the long run.
	minBodyRate = 1 << 10 // bytes a second
	// What is left of a body when its request has been answered is read for so long, so that the client reads the answer
	// before the connection is closed.
	lingerTimeout = time.Second
	// A body of a request that takes none.
	maxDrained = 64 << 10
)

// incoming is the body of a request. Until its end has been read, every read has a deadline, so that a client that
// announces a body and sends none, or a byte now and then, does not hold its connection. A failure is the client's.
type incoming struct {
	body io.ReadCloser
	rc   *http.ResponseController
	long bool          // the request continues after its body: no deadline for reading may end it then
	flow bool          // of any length: what has come earns time for the rest
	most time.Duration // that a read may take
	left time.Duration // that reads may still take together, where the body flows
	done bool          // its end has been read
	err  error         // why it cannot be read, a problem; nil: it can
}

// receive sets the deadline for the body of a request.
func receive(r *http.Request, rc *http.ResponseController, op *operation, within time.Duration) (*incoming, error) {
	b := &incoming{body: r.Body, rc: rc, long: op.long(), flow: op.takes != "", most: within, left: within}
	if r.Body == nil || r.Body == http.NoBody {
		return b, b.end()
	}
	return b, b.deadline(within)
}

// Read implements io.Reader.
func (b *incoming) Read(p []byte) (int, error) {
	if b.flow {
		if err := b.deadline(b.left); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	n, err := b.body.Read(p)
	if b.flow {
		b.left = min(b.left-time.Since(begun)+time.Duration(n)*time.Second/minBodyRate, b.most)
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		if err := b.end(); err != nil {
			return n, err
		}
		return n, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.err = problemf(http.StatusRequestTimeout, messages.CodeInvalidInput, "the body did not come in time")
	case errors.Is(err, io.ErrUnexpectedEOF):
		b.err = problemf(http.StatusBadRequest, messages.CodeInvalidInput, "the body was cut")
	default:
		b.err = problemf(http.StatusBadRequest, messages.CodeInvalidInput, "the body cannot be read: "+strict.Clip(err.Error(), 128))
	}
	return n, b.err
}

// problemOf is the public form of an error. A body that cannot be read also ends the request's context, so what was done
// meanwhile with the lines before fails, and the client gets the error of the body.
func (q *query) problemOf(err error) *messages.Problem {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && q.body != nil && q.body.err != nil {
		return problemOf(q.body.err)
	}
	return p
}

// Close implements io.Closer.
func (b *incoming) Close() error { return b.body.Close() }

// end notes that all has been read.
func (b *incoming) end() error {
	b.done = true
	if !b.long {
		return nil
	}
	return b.set(time.Time{})
}

// drain reads a body that means nothing, for otherwise it would be in the way of what the request waits for.
func (b *incoming) drain(w http.ResponseWriter) error {
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, b, maxDrained))
	return err
}

// answered lets a request that is refused before its body was read end soon: its connection is not used again.
func (b *incoming) answered(w http.ResponseWriter, r *http.Request) {
	if b.done {
		return
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	_ = b.deadline(lingerTimeout) // without it the one that was set holds
}

func (b *incoming) deadline(within time.Duration) error { return b.set(time.Now().Add(within)) }

func (b *incoming) set(at time.Time) error {
	if err := b.rc.SetReadDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("read the body: %w", err) // the connection is gone
	}
	return nil
}
