package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/outbound"
)

// maxRedirects is how many a call follows.
const maxRedirects = 5

// browser makes the calls of both tools. Safe for concurrent use.
type browser struct {
	policy      *policy
	credentials *credential.Store
	userAgent   string
	client      *outbound.Client
	pages       chan struct{} // one for each page that is being converted
}

// hop is a request on its way: the first one of a call, or what a redirect made of it.
type hop struct {
	method  string
	url     *url.URL
	headers http.Header
	body    string
	n       int    // redirects before it
	after   string // the first request before it that must not be sent twice; empty: there was none
}

// again reports whether the call that led here may be made once more whatever came of this request.
func (h *hop) again() bool { return repeatable(h.method) && h.after == "" }

// warning tells a model what a call has done before a request of it failed.
func (h *hop) warning() string {
	if h.after == "" {
		return ""
	}
	return " Before it, " + h.after + " was answered with a redirect, and has probably taken effect; check before you repeat it."
}

// answer makes a call.
func (b *browser) answer(ctx context.Context, c *tools.Call, in requestArgs) (tools.Result, error) {
	u, err := parseURL(in.URL)
	if err != nil {
		return wrong("url", err.Error()), nil
	}
	headers, err := parseHeaders(in.Headers)
	if err != nil {
		return wrong("headers", err.Error()), nil
	}
	if in.Body != "" && headers.Get("Content-Type") == "" {
		headers.Set("Content-Type", typeOf(in.Body))
	}
	if in.Credential != "" {
		switch {
		case !b.credentials.Has(in.Credential):
			return refused(fmt.Sprintf("there is no credential %q", strict.Clip(in.Credential, 64))), nil
		case !messages.Leaves(c.Grants.Credentials, in.Credential):
			return refused(fmt.Sprintf("the credential %q is not in the agent's grants", in.Credential)), nil
		case headers.Get("Range") != "":
			return wrong("headers", "must not hold Range together with a credential: a part of an answer could show a part of it"), nil
		}
	}
	h := &hop{method: in.Method, url: u, headers: headers, body: in.Body}
	for {
		resp, failed, err := b.send(ctx, c, h, in.Credential)
		if err != nil || failed != nil {
			if failed == nil {
				return tools.Result{}, err
			}
			return *failed, nil
		}
		next := h.redirected(resp)
		if next == nil {
			return b.render(ctx, h, resp, in.Format, in.Credential), nil
		}
		if failed := b.follows(c, h, next, resp); failed != nil {
			return *failed, nil
		}
		h = next
	}
}

// follows reports why a redirect is not followed.
func (b *browser) follows(c *tools.Call, h, next *hop, resp *outbound.Response) *tools.Result {
	reason := ""
	if err := normalise(next.url); err != nil {
		reason = "the address that it resolves to " + err.Error()
	} else if err := b.policy.judge(next.method, next.url, &c.Grants); err != nil {
		reason = err.Error()
	} else if err := reaches(c, next.url); err != nil {
		reason = err.Error()
	} else if next.n > maxRedirects {
		reason = fmt.Sprintf("there were %d before it", maxRedirects)
	}
	if reason == "" {
		return nil
	}
	r := refused(fmt.Sprintf("%s %s answered %d with a redirect that is not followed: %s", h.method, shown(h.url), resp.Status, reason))
	r.Meta = map[string]any{"status": resp.Status, "redirects": h.n}
	return &r
}

// reaches reports whether the rules of the run let a redirect be followed.
func reaches(c *tools.Call, u *url.URL) error {
	ask := c.Redirect
	if ask == nil {
		ask = c.Reach
	}
	if ask == nil {
		return nil
	}
	return ask(hosts.Endpoint(u))
}

// redirected is the request that a response asks for next, as browsers read it; nil if it asks for none.
func (h *hop) redirected(resp *outbound.Response) *hop {
	to := resp.Header.Get("Location")
	if to == "" {
		return nil
	}
	next := &hop{method: h.method, headers: h.headers, body: h.body, n: h.n + 1, after: h.after}
	if next.after == "" && !repeatable(h.method) {
		next.after = h.method + " " + shown(h.url)
	}
	switch resp.Status {
	case http.StatusMovedPermanently, http.StatusFound:
		if h.method == http.MethodPost {
			next.method = http.MethodGet
		}
	case http.StatusSeeOther:
		if h.method != http.MethodHead {
			next.method = http.MethodGet
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	u, err := url.Parse(to)
	if err != nil || len(to) > maxURL {
		u = &url.URL{} // which is refused
	} else {
		u = h.url.ResolveReference(u)
	}
	next.url = u
	if next.method != h.method {
		next.body, next.headers = "", next.headers.Clone()
		next.headers.Del("Content-Type")
	}
	if u.Scheme != h.url.Scheme || hosts.Endpoint(u) != hosts.Endpoint(h.url) {
		next.headers = portable(next.headers)
	}
	return next
}

// send judges a request and makes it.
func (b *browser) send(ctx context.Context, c *tools.Call, h *hop, name string) (*outbound.Response, *tools.Result, error) {
	if err := b.policy.judge(h.method, h.url, &c.Grants); err != nil {
		r := refused(err.Error())
		return nil, &r, nil
	}
	if h.n > 0 && !reads(h.method) && c.Begin != nil {
		if err := c.Begin(); err != nil {
			return nil, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), strings.NewReader(h.body))
	if err != nil {
		r := wrong("url", "cannot be called: "+strict.Clip(err.Error(), 128))
		return nil, &r, nil
	}
	req.GetBody = nil // whether it is sent again is decided elsewhere
	req.Header = h.headers.Clone()
	req.Header.Set("User-Agent", b.userAgent)
	if !reads(h.method) && c.Key != "" {
		req.Header.Set("Idempotency-Key", keyOf(c.Key))
	}
	if name != "" {
		// A redirect may lead to a host that the credential is not for. The request goes there without it.
		if err := b.credentials.Add(name, req); err != nil && (h.n == 0 || !errors.Is(err, credential.ErrHost)) {
			r := refused("credential " + err.Error())
			return nil, &r, nil
		}
	}
	resp, err := b.client.Do(req)
	if err == nil {
		return resp, nil, nil
	}
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return nil, nil, err
	}
	return nil, failure(h, e), nil
}

// keyOf is the key of a call as a header can carry it: a part of it is the name that the model gave the call.
func keyOf(key string) string {
	if len(key) <= 255 && !strings.ContainsFunc(key, unprintable) {
		return key
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
}

// failure is the Result of a request that had no response.
func failure(h *hop, e *outbound.Error) *tools.Result {
	what := fmt.Sprintf("%s %s: %s.", h.method, shown(h.url), e.Reason) + h.warning()
	r := tools.Failure(what)
	r.Meta = map[string]any{"redirects": h.n}
	switch {
	case errors.Is(e, outbound.ErrAddress):
		r.Code = messages.CodePolicy
	case e.Sent && !reads(h.method):
		r = tools.Failure(what + " It may or may not have taken effect; check before you repeat it.")
		r.Code = messages.CodeToolUnknownOutcome
	case h.after != "":
		r.Code = messages.CodeToolUnknownOutcome
	}
	// What came of a request before a redirect is not known to be nothing.
	r.Transient = e.Brief && (h.again() || !e.Sent && h.n == 0)
	return &r
}

// passing reports whether a status says that the same request may succeed soon, and that to make it again does no harm.
func passing(h *hop, status int) bool {
	switch status {
	case http.StatusTooManyRequests: // the server did not do it
		return h.again() || h.n == 0
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return h.again()
	default:
		return false
	}
}

// retryAfter reads how long a server asks to wait.
func retryAfter(header http.Header, now time.Time) time.Duration {
	v := header.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n >= 0 {
		return time.Duration(min(n, 24*60*60)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(0, at.Sub(now)), 24*time.Hour)
	}
	return 0
}

// shown is an address for a text: without its query, and not too long.
func shown(u *url.URL) string {
	short := *u
	short.RawQuery, short.ForceQuery, short.User = "", false, nil
	return strict.Clip(short.String(), 512)
}
