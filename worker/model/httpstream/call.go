package httpstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/worker/model"
)

// MaxErrorBody is how much of a refusal is read, in bytes.
const MaxErrorBody = 64 << 10

// Bounds of the wait for the end of a complete answer: a connection is used again only after its end.
const (
	drainTime  = 250 * time.Millisecond
	drainBytes = 64 << 10
)

// Call is one request and its answer. It is used by one goroutine, and must be closed.
type Call struct {
	Status    int    // of the answer; 0 before it
	RequestID string // the provider's; empty before the answer or without one

	client *Client
	caller context.Context //nolint:containedctx // of the one call that it stands for, as in http.Request
	ctx    context.Context //nolint:containedctx // caller's, ended by the watchdog too
	cancel context.CancelCauseFunc
	begin  func() error
	dog    watchdog

	sent     time.Time     // of the request
	wait     time.Duration // for the next piece
	patience time.Duration // bounds wait; 0: it does not
	body     io.ReadCloser
	size     int64 // of body, so far
	complete bool
}

// Call begins a call. Begin is asked just before the first byte of the request's body leaves, and its error ends the
// call; nil: nothing is asked.
func (c *Client) Call(ctx context.Context, begin func() error) *Call {
	inner, cancel := context.WithCancelCause(ctx)
	return &Call{client: c, caller: ctx, ctx: inner, cancel: cancel, begin: begin, dog: watchdog{cancel: cancel}}
}

// RefusalError is an answer with a status that is neither 2xx nor a redirect.
type RefusalError struct {
	Header http.Header
	Body   []byte // at most MaxErrorBody
	Status int
}

func (r *RefusalError) Error() string { return fmt.Sprintf("HTTP %d", r.Status) }

// Do sends the request, at most once for a call, whose context becomes the request's. Its error is a *RefusalError, which only the leaf can read, or an
// *model.Error. The body of the response is the call itself: see Read.
func (c *Call) Do(req *http.Request) error {
	req = req.WithContext(c.ctx)
	beginLate(req, c.begin)
	c.sent = time.Now()
	c.dog.arm(c.client.config.StartTimeout, errNoHeaders)
	resp, err := c.client.http.Do(req) //nolint:gosec,bodyclose // the operator's endpoint, and redirects are not followed; Close closes it
	c.dog.stop()
	if err != nil {
		return c.unreachable(err)
	}
	c.body = resp.Body
	c.Status = resp.StatusCode
	for _, name := range c.client.config.RequestIDs {
		if id := resp.Header.Get(name); id != "" {
			c.RequestID = c.client.secrets.clip(id, maxRequestID)
			break
		}
	}
	switch {
	case c.Status >= 200 && c.Status < 300:
		return nil
	case c.Status >= 300 && c.Status < 400:
		return c.redirect(resp)
	}
	c.dog.arm(c.client.config.IdleTimeout, errIdle)
	body, _ := io.ReadAll(io.LimitReader(c.body, MaxErrorBody)) // a part of it tells enough
	c.dog.stop()
	return &RefusalError{Header: resp.Header, Body: body, Status: c.Status}
}

// Read reads the answer within the bounds of size and time.
func (c *Call) Read(p []byte) (int, error) {
	limit := c.client.config.MaxReply
	if c.size >= limit {
		return 0, tooLarge("the reply", limit)
	}
	c.wait = c.client.config.IdleTimeout
	switch {
	case c.size == 0: // servers send headers at once, and then read the prompt
		c.wait = max(c.wait, c.client.config.StartTimeout-time.Since(c.sent))
	case c.patience > 0:
		c.wait = min(c.wait, c.patience)
	}
	c.dog.arm(c.wait, errIdle)
	n, err := c.body.Read(p[:min(int64(len(p)), limit-c.size)])
	c.dog.stop()
	c.size += int64(n)
	if err != nil && c.ctx.Err() != nil {
		err = context.Cause(c.ctx) // an end that comes too late is none
	}
	return n, err
}

// Hurry bounds the wait for each further piece, for an answer that lacks only what may be missing.
func (c *Call) Hurry(wait time.Duration) { c.patience = wait }

// Complete says that the reply is whole: Close then waits for the end of the answer, so that the next call can use the
// connection.
func (c *Call) Complete() { c.complete = true }

// Close ends the call. After Complete it waits up to 250 ms for the end of the answer. Only the first call of Close counts.
func (c *Call) Close() error {
	var err error
	if c.body != nil {
		if c.complete {
			c.dog.arm(drainTime, errDrained)
			_, _ = io.CopyN(io.Discard, c.body, drainBytes) // the reply is complete already
		}
		err = c.body.Close()
		c.body = nil
	}
	c.dog.stop()
	c.cancel(nil)
	return err
}

// tooLarge is the error of a part of an answer that is beyond its bound.
func tooLarge(what string, limit int64) *model.Error {
	return &model.Error{Class: model.ReplyTooLarge, Detail: fmt.Sprintf("%s is larger than %d bytes", what, limit)}
}
