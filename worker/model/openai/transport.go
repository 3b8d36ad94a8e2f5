package openai

import (
	"bytes"
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

// normaliser lies between the client and the network. What Do returns is always a stream in canonical form, and
// every error is an *model.Error or the end of the request's context.
type normaliser struct {
	client       *http.Client
	secrets      wire.Redactor
	startTimeout time.Duration
	idleTimeout  time.Duration
	maxLine      int
	maxReply     int64
}

// Do implements the client's HTTPDoer.
func (n *normaliser) Do(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	ctx, cancel := context.WithCancelCause(req.Context())
	dog := newWatchdog(cancel)
	resp, err := n.send(ctx, req, x, dog)
	if err != nil {
		dog.stop()
		cancel(nil)
		return nil, err
	}
	resp.Body = newBody(ctx, n, x, resp.Body, dog, cancel)
	return resp, nil
}

// send makes the request and turns everything but a 2xx into an error.
func (n *normaliser) send(ctx context.Context, req *http.Request, x *exchange, dog *watchdog) (*http.Response, error) {
	out := req.Clone(ctx)
	if err := rewrite(out, x); err != nil {
		return nil, &model.Error{Class: model.InvalidRequest, Detail: n.secrets.Clean(err.Error())}
	}
	wire.Begin(out, x.begin)
	x.sent = time.Now()
	dog.arm(n.startTimeout, errNoHeaders)
	resp, err := n.client.Do(out) //nolint:gosec // the operator's endpoint, and redirects are not followed
	dog.stop()
	if err != nil {
		return nil, n.unreachable(ctx, err)
	}
	x.status, x.requestID = resp.StatusCode, n.secrets.Clip(requestID(resp.Header), wire.MaxRequestID)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	dog.arm(n.idleTimeout, errIdle)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of it tells enough
	dog.stop()
	return nil, n.refusal(resp, body, x)
}

// rewrite patches the request's body.
func rewrite(req *http.Request, x *exchange) error {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	if raw, err = patch(raw, &x.edit); err != nil {
		return err
	}
	req.Body = io.NopCloser(bytes.NewReader(raw))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	req.ContentLength = int64(len(raw))
	req.Header.Set("User-Agent", "longshore")
	return nil
}

// unreachable is the error of a request that got no answer.
func (n *normaliser) unreachable(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errNoHeaders) {
		return &model.Error{
			Class: model.Timeout, Detail: "no answer within " + n.startTimeout.String(),
			Hint: "check that the endpoint is up; a slow one needs a longer LONGSHORE_MODEL_START_TIMEOUT",
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &model.Error{
		Class: model.Network, Detail: n.secrets.Clean(err.Error()),
		Hint: "check that the endpoint is up and that its base URL (OPENAI_BASE_URL) is right",
	}
}
