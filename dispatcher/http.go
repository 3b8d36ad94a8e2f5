package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// ErrOverHTTP means that a client over HTTP cannot do this: it needs a connection to NATS.
var ErrOverHTTP = errors.New("not over HTTP (LONGSHORE_URL): this needs a connection to NATS (NATS_URL)")

// ErrUnreachable is an ErrUnavailable of a client over HTTP: at its address nothing answers. The error names the address.
var ErrUnreachable error = unreachableError{}

type unreachableError struct{}

func (unreachableError) Error() string { return ErrUnavailable.Error() }

func (unreachableError) Is(target error) bool { return target == ErrUnavailable }

// remote is a dispatcher that is asked over HTTP.
type remote struct {
	base string // without a slash at its end
	key  string
	http *http.Client
}

const (
	// What is read of an answer that is neither a stream nor a page: a result with its transcript.
	maxAnswer = 64 << 20
	// What is read of a problem.
	maxProblem = 64 << 10
)

// NewHTTP is a client of a dispatcher's HTTP API, at an address such as https://longshore.example.com, with an API key or
// a JWT; empty: none. It connects to nothing before it is used. The tenant "default" is that of the key.
//
// Recent is ErrOverHTTP, and so is RetryBatch with settings of its own; Follow asks for new events every second. Watch comes back by
// itself when a stream is cut; a run that does not exist is ErrNotFound at once.
func NewHTTP(address, key string) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, &messages.FieldError{Field: "address", Reason: "must be one such as https://longshore.example.com"}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, &messages.FieldError{Field: "address", Reason: "must have no user, query or fragment; a key has its own place"}
	case strings.ContainsAny(key, " \r\n\t,"):
		return nil, &messages.FieldError{Field: "key", Reason: "has spaces or commas"}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		DialContext:         (&net.Dialer{Timeout: requestTimeout}).DialContext,
		TLSHandshakeTimeout: requestTimeout,
	}
	r := &remote{base: strings.TrimRight(u.String(), "/"), key: key, http: &http.Client{
		Transport: transport,
		CheckRedirect: func(to *http.Request, _ []*http.Request) error { // a key is for one address
			return fmt.Errorf("it redirects to %s://%s: use that address", to.URL.Scheme, to.URL.Host)
		},
	}}
	return &Client{remote: r}, nil
}

// Close lets go of idle connections of a client over HTTP. One over NATS does not own its connection.
func (c *Client) Close() {
	if c.remote != nil {
		c.remote.http.CloseIdleConnections()
	}
}

// call is a request over HTTP.
type call struct {
	method, path string
	query        url.Values
	tenant       string
	header       map[string]string
	body         []byte
	stream       io.Reader // instead of body
	length       int64     // of the stream, where it is known
	media        string    // of the body; default JSON
	accept       string
}

// do makes a request. The answer's status is one of success; its body must be closed.
func (r *remote) do(ctx context.Context, c call) (*http.Response, error) {
	body := c.stream
	if body == nil && c.body != nil {
		body = bytes.NewReader(c.body)
	}
	to := r.base + c.path
	if len(c.query) > 0 {
		to += "?" + c.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.method, to, body)
	if err != nil {
		return nil, fmt.Errorf("ask the dispatcher: %w", err)
	}
	if c.length > 0 {
		req.ContentLength = c.length
	}
	if c.tenant != "" {
		req.Header.Set(control.HeaderTenant, c.tenant)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	if req.Header.Get(control.HeaderTenant) == messages.DefaultTenant {
		req.Header.Del(control.HeaderTenant) // the tenant of the key, whose own one need not be named
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	if body != nil {
		media := c.media
		if media == "" {
			media = "application/json"
		}
		req.Header.Set("Content-Type", media)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, r.unreachable(ctx, err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, refusal(r.base, resp)
}

// unreachable is the error of a request without an answer. It has no key in it: that is a header.
func (r *remote) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if where, ok := errors.AsType[*url.Error](err); ok {
		err = where.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, r.base, err)
}

// refusal is the error of an answer whose status is not one of success.
func refusal(base string, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p messages.Problem
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || strict.DecodePeer(text, &p) != nil || p.Code == "" {
		return fmt.Errorf("%s answers %d: is it a dispatcher's address?", base, resp.StatusCode)
	}
	return &p
}

// json makes a request whose answer is one JSON value.
func (r *remote) json(ctx context.Context, c call) (json.RawMessage, error) {
	resp, err := r.do(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, r.unreachable(ctx, err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("the answer of %s is longer than %d bytes", r.base, maxAnswer)
	default:
		return data, nil
	}
}

// ask makes the request of an operation over HTTP.
func (r *remote) ask(ctx context.Context, o *control.Operation, request json.RawMessage) (json.RawMessage, error) {
	if o.Subject == control.SubjectFile || o.Subject == control.SubjectWorkspaceFile { // its answer is the file itself
		return r.filePart(ctx, request)
	}
	if o.ID == "" {
		return nil, fmt.Errorf("%w: %s", ErrOverHTTP, o.Name())
	}
	parts, err := o.Parts(request)
	if err != nil {
		return nil, err
	}
	c := call{method: o.Method, path: o.Path, query: parts.Query, header: parts.Header, body: parts.Body}
	for name, value := range parts.Path {
		c.path = strings.ReplaceAll(c.path, "{"+name+"}", url.PathEscape(value))
	}
	return r.json(ctx, c)
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}
