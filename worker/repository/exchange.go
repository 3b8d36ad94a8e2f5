package repository

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/outbound"
	"github.com/longshore-run/longshore/worker/repository/pack"
)

const (
	service      = "git-upload-pack"
	refsPath     = "/info/refs"
	maxRedirects = 3
	maxOffer     = 64 << 10 // bytes of what a server says that it can
)

// exchange is one fetch over HTTP: a request that asks what the server can, and one for the commit.
type exchange struct {
	client *Client
	tenant string
	url    *url.URL // of the repository; where its host has redirected to, after offer
	secret bool     // a credential was sent
}

func wrongURL(format string, args ...any) error {
	return &messages.FieldError{Field: "url", Reason: fmt.Sprintf(format, args...)}
}

func passing(format string, args ...any) error {
	return &firstfiles.FetchError{Field: "url", Reason: fmt.Sprintf(format, args...)}
}

// fetch reads the pack of a commit.
func (x *exchange) fetch(ctx context.Context, id pack.ID, spool pack.Spool, l pack.Limits) (*pack.Objects, error) {
	can, err := x.offer(ctx)
	if err != nil {
		return nil, err
	}
	body, done, err := x.send(ctx, http.MethodPost, x.url.JoinPath(service), request(id, can, x.client.agent()))
	if err != nil {
		return nil, err
	}
	defer done()
	// As many bytes on the wire as unpacked: what does not compress has a few more, and those of its frames.
	lines := &lineReader{in: &bounded{body, l.Bytes + l.Bytes/8 + maxOffer}}
	r, err := begin(lines)
	if err != nil {
		return nil, x.refused(err, id)
	}
	objects, err := pack.Read(ctx, r, spool, l)
	if err != nil {
		return nil, x.refused(err, id)
	}
	return objects, nil
}

func (c *Client) agent() string { return "longshore/" + c.cfg.Version }

// offer asks what the server can.
func (x *exchange) offer(ctx context.Context) (*offer, error) {
	at := x.url.JoinPath(refsPath)
	at.RawQuery = "service=" + service
	body, done, err := x.send(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	can, err := readOffer(&lineReader{in: &bounded{body, maxOffer}})
	return can, x.refused(err, pack.ID{})
}

// send makes a request and returns the body of a good response, which done closes. A GET follows redirects of the same host, and the
// repository is where they lead from then on.
func (x *exchange) send(ctx context.Context, method string, at *url.URL, body []byte) (_ io.Reader, done func(), err error) {
	for range maxRedirects + 1 {
		r, err := x.once(ctx, method, at, body)
		if err != nil {
			return nil, nil, err
		}
		to, err := x.judge(r.Response, method, at)
		switch {
		case err != nil:
			r.close()
			return nil, nil, err
		case to == nil:
			return r, r.close, nil
		}
		r.close()
		at = to
	}
	return nil, nil, wrongURL("the server redirects more than %d times", maxRedirects)
}

// once makes one request.
func (x *exchange) once(ctx context.Context, method string, at *url.URL, body []byte) (*response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err == nil {
		req.Header.Set("User-Agent", x.client.agent())
		req.Header.Set("Git-Protocol", "version=2")
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-"+service+"-request")
		}
		err = x.authorize(req)
	}
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("make a request to a repository: %w", err)
	}
	resp, err := x.client.transport.RoundTrip(req) //nolint:bodyclose // response.close does
	if err == nil {
		idle := x.client.cfg.Idle
		timer := time.AfterFunc(idle, func() { cancel(passing("the server was silent for %v", idle)) })
		return &response{resp, func() error { return context.Cause(ctx) }, cancel, timer, idle}, nil
	}
	defer cancel(nil)
	untrusted, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isUntrusted:
		return nil, wrongURL("the certificate of the server is not trusted: %q. For a CA of your own the operator names its certificate in LONGSHORE_GIT_CA", outbound.Plain(untrusted.Err))
	case errors.Is(err, outbound.ErrAddress):
		return nil, wrongURL("%v in LONGSHORE_GIT_HOSTS", outbound.ErrAddress)
	default:
		return nil, passing("no response: %s", outbound.Plain(err))
	}
}

// authorize adds the first credential that is for the tenant and the host.
func (x *exchange) authorize(req *http.Request) error {
	for _, c := range x.client.cfg.Credentials {
		if c.Tenant != "" && c.Tenant != x.tenant {
			continue
		}
		err := x.client.cfg.Store.AddPassword(c.Name, req)
		if err == nil {
			x.secret = true
		}
		if err == nil || !errors.Is(err, credential.ErrHost) {
			return err
		}
	}
	return nil
}

// judge says what a response means: an error, another address to ask, or neither.
func (x *exchange) judge(resp *http.Response, method string, at *url.URL) (to *url.URL, err error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/x-"+service+"-") {
			return nil, wrongURL("the server answers with a page that is not of a git repository: check the URL")
		}
		return nil, nil
	case code >= 300 && code < 400 && method == http.MethodGet:
		return x.redirected(resp, at)
	case code == http.StatusTooManyRequests || code >= 500:
		return nil, passing("the server answers %d", code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		return nil, wrongURL("the server answers %d: there is no such repository, or the worker has no credential for it. The operator gives it one in LONGSHORE_GIT_CREDENTIALS", code)
	default:
		return nil, wrongURL("the server answers %d", code)
	}
}

// redirected is where a server sends the first request to, if that is on the same host.
func (x *exchange) redirected(resp *http.Response, at *url.URL) (*url.URL, error) {
	to, err := at.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, wrongURL("the server answers %d, and does not say where to go", resp.StatusCode)
	}
	if to.Scheme != at.Scheme || hosts.Endpoint(to) != hosts.Endpoint(at) || to.User != nil {
		return nil, wrongURL("the server redirects to %s://%s, and another host is not followed: if that is right, name it in the URL",
			strict.Shown(to.Scheme), strict.Shown(hosts.Endpoint(to)))
	}
	base, ok := strings.CutSuffix(to.Path, refsPath)
	if !ok || to.RawQuery != at.RawQuery {
		return nil, wrongURL("the server redirects to a page that is not a git repository: check the URL, or whether the worker has a credential for it")
	}
	moved := *to
	moved.Path, moved.RawPath, moved.RawQuery, moved.Fragment = base, "", "", ""
	x.url = &moved
	return to, nil
}

// refused is an error of the exchange, or of what the server says in place of an answer.
func (x *exchange) refused(err error, id pack.ID) error {
	said, ok := errors.AsType[*saidError](err)
	switch {
	case !ok:
		return err
	case strings.Contains(said.text, id.String()):
		return &messages.FieldError{Field: "commit", Reason: "the server does not give away a commit " + id.String() + x.quote(said.text)}
	default:
		return wrongURL("the server refuses%s", x.quote(said.text))
	}
}

// quote is what a server says, for an error. One that was sent a secret might repeat it.
func (x *exchange) quote(text string) string {
	if x.secret {
		return ""
	}
	return fmt.Sprintf(": it says %q", strict.Clip(text, 200))
}

// bounded ends with an error where more follows.
type bounded struct {
	io.Reader

	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, pack.ErrTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	return n, err
}

// response is one whose server may not be silent for long.
type response struct {
	*http.Response

	ended  func() error // why the request has ended; nil: it has not
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

func (r *response) Read(p []byte) (int, error) {
	n, err := r.Body.Read(p)
	r.timer.Reset(r.idle)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case r.ended() != nil:
		return n, r.ended()
	default:
		return n, passing("the connection broke off: %s", outbound.Plain(err))
	}
}

func (r *response) close() {
	r.timer.Stop()
	r.cancel(nil)
	_ = r.Body.Close()
}
