package anthropic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/wire"
)

// maxErrorBody is how much of an error page is read.
const maxErrorBody = 64 << 10

// Bounds of the wait for the end of a complete answer: a connection is used again only after its end.
const (
	drainTime  = 250 * time.Millisecond
	drainBytes = 64 << 10
)

// exchange is one call. It is used by one goroutine.
type exchange struct {
	provider *Provider
	ctx      context.Context //nolint:containedctx // of the one request that it stands for
	begin    func() error    // of the request; nil: nothing is asked
	dog      *watchdog
	names    names

	sent      time.Time     // of the request
	wait      time.Duration // for the next piece
	status    int
	requestID string
	body      io.ReadCloser
	size      int64 // of body, so far
	done      bool  // the reply is complete
	err       error // of Do: the client loses it when the watchdog ended the request
}

// Do implements the client's HTTPClient. Everything but a 2xx is an *model.Error, as is a request without an answer.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	var resp *http.Response
	resp, x.err = x.send(req)
	return resp, x.err
}

func (x *exchange) send(req *http.Request) (*http.Response, error) {
	p := x.provider
	wire.Begin(req, x.begin)
	x.sent = time.Now()
	x.dog.arm(p.config.StartTimeout, errNoHeaders)
	resp, err := p.http.Do(req) //nolint:gosec // the operator's endpoint, and redirects are not followed
	x.dog.stop()
	if err != nil {
		return nil, x.unreachable(err)
	}
	x.status, x.requestID = resp.StatusCode, p.secrets.Clip(requestID(resp.Header), wire.MaxRequestID)
	x.body = resp.Body
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	x.dog.arm(p.config.IdleTimeout, errIdle)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of it tells enough
	x.dog.stop()
	return nil, x.refusal(resp, body)
}

// Read reads the answer within the bounds of size and time.
func (x *exchange) Read(b []byte) (int, error) {
	limit := x.provider.config.MaxReply
	if x.size >= limit {
		return 0, tooLarge("the reply", limit)
	}
	x.wait = x.provider.config.IdleTimeout
	if x.size == 0 { // servers send headers at once, and then read the prompt
		x.wait = max(x.wait, x.provider.config.StartTimeout-time.Since(x.sent))
	}
	x.dog.arm(x.wait, errIdle)
	n, err := x.body.Read(b[:min(int64(len(b)), limit-x.size)])
	x.dog.stop()
	x.size += int64(n)
	return n, err
}

// close waits up to 250 ms for the end of a complete reply.
func (x *exchange) close() {
	if x.body == nil {
		return
	}
	if x.done {
		x.dog.arm(drainTime, errDrained)
		_, _ = io.CopyN(io.Discard, x.body, drainBytes) // the reply is complete already
	}
	x.dog.stop()
	_ = x.body.Close() // nothing to lose
}

// unreachable is the error of a request that got no answer.
func (x *exchange) unreachable(err error) error {
	if errors.Is(context.Cause(x.ctx), errNoHeaders) {
		return &model.Error{
			Class: model.Timeout, Detail: "no answer within " + x.provider.config.StartTimeout.String(),
			Hint: "check that the endpoint is up; a slow one needs a longer LONGSHORE_MODEL_START_TIMEOUT",
		}
	}
	return &model.Error{
		Class: model.Network, Detail: err.Error(),
		Hint: "check that the endpoint is up and that its base URL (ANTHROPIC_BASE_URL) is right",
	}
}
