// Package outbound makes one HTTP exchange for a tool. It is guarded where it dials, the response is bounded after
// decompression, and an error says whether anything was sent. It follows no redirect, keeps no cookie or connection, asks
// no proxy, and never sends a request twice. Deadlines are those of the request's context, and one for the head of the response.
package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/strict"
)

// headTimeout is how long the head of a response may take after the request was sent.
const headTimeout = 10 * time.Second

// Client makes exchanges. Safe for concurrent use.
type Client struct {
	transport http.RoundTripper
	body      int64
}

// New returns a Client that reads so many bytes of a body, after decompression.
func New(may egress.Guard, body int64) *Client {
	t := egress.Transport(may)
	// Each request dials anew: the guard judges each, and the transport has no stale connection that it would send one again for.
	t.DisableKeepAlives = true
	t.ResponseHeaderTimeout = headTimeout
	return &Client{t, body}
}

// Over returns a Client that makes its exchanges with a transport of the caller's, which dials and guards as it likes.
func Over(transport http.RoundTripper, body int64) *Client { return &Client{transport, body} }

// Response is what a server answered.
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte
	Truncated bool // the body was longer
}

// Error is an exchange that did not come to its end. The text is fit for a model: it shows no address that a name has led to.
type Error struct {
	Reason string
	Sent   bool // the server may have got the request
	Brief  bool // the same request may succeed soon

	err error
}

func (e *Error) Error() string { return e.Reason }

func (e *Error) Unwrap() error { return e.err }

// Do sends a request and reads the response. The error is an *Error, or the cause of the request's context.
func (c *Client) Do(req *http.Request) (*Response, error) {
	ctx := req.Context()
	var sent atomic.Bool
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}))
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, broken(ctx, err, sent.Load())
	}
	defer func() { _ = resp.Body.Close() }()
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, &Error{Reason: fmt.Sprintf("the server answered %d in the encoding %q, which was not asked for", resp.StatusCode, strict.Clip(e, 64)), Sent: true}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.body+1))
	if err != nil {
		return nil, cut(ctx, err, resp.StatusCode, len(body))
	}
	r := &Response{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if int64(len(body)) > c.body {
		r.Body, r.Truncated = body[:c.body], true
	}
	return r, nil
}

// broken says why there is no response.
func broken(ctx context.Context, err error, sent bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &Error{Sent: sent, Brief: true, err: err}
	switch {
	case errors.Is(err, ErrAddress):
		e.Reason, e.Brief = ErrAddress.Error(), false
	case isA[*net.DNSError](err):
		dns, _ := errors.AsType[*net.DNSError](err)
		e.Reason, e.Brief = "the name of the host cannot be resolved", !dns.IsNotFound
	case isA[*tls.CertificateVerificationError](err):
		cert, _ := errors.AsType[*tls.CertificateVerificationError](err)
		e.Reason, e.Brief = "the certificate of the host is not valid: "+strict.Clip(cert.Err.Error(), 256), false
	case isA[tls.RecordHeaderError](err):
		e.Reason, e.Brief = "the host does not speak TLS on that port", false
	case !sent:
		e.Reason = "no connection: " + Plain(err)
	default:
		// A response that no client can read is the same the next time; a connection that broke is not.
		e.Reason, e.Brief = "no response: "+Plain(err), isA[net.Error](err) || errors.Is(err, io.EOF)
	}
	return e
}

// cut says why a body ended early.
func cut(ctx context.Context, err error, status, n int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{
		Reason: fmt.Sprintf("the server answered %d, but its body broke off after %d bytes: %s", status, n, Plain(err)),
		Sent:   true, Brief: isA[net.Error](err) || errors.Is(err, io.ErrUnexpectedEOF), err: err,
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Plain is the text of an error of an exchange without addresses, fit for a model.
func Plain(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return strict.Clip(err.Error(), 256)
}
