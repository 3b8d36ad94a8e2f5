package hooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

// Headers of a request. The signature is "t=<unix seconds>,v1=<hex>", the HMAC-SHA256 of "<unix seconds>.<body>".
const (
	HeaderID        = "Longshore-Hook-Id" // HookCall.ID: the same when the same is told again
	HeaderPoint     = "Longshore-Hook-Point"
	HeaderSignature = "Longshore-Signature"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// Config of a Client.
type Config struct {
	Hosts        []string // that may be called: a name, an address, or either with a port; needed, or all are refused
	Secret       string   // signs requests; default: they are not signed
	AllowPrivate bool     // names may lead to loopback, link-local and private addresses
	UserAgent    string   // default "longshore"
	Now          func() time.Time
}

// Client calls hooks. Safe for concurrent use.
type Client struct {
	cfg   Config
	hosts hosts.List
	http  *http.Client
}

// New refuses a host that is not valid.
func New(cfg Config) (*Client, error) {
	allowed, err := hosts.Parse(cfg.Hosts)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "longshore"
	}
	c := &Client{cfg: cfg, hosts: allowed}
	c.http = &http.Client{
		Transport:     egress.Transport(guard(allowed, cfg.AllowPrivate)),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Hook makes an agent's hook, or says why this worker must not call it.
func (c *Client) Hook(h messages.Hook) (func(context.Context, messages.HookCall) (messages.HookAnswer, error), error) {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("is not an address")
	}
	if err := check(c.hosts, u); err != nil {
		return nil, err
	}
	return func(ctx context.Context, call messages.HookCall) (messages.HookAnswer, error) {
		return c.call(ctx, h, call)
	}, nil
}

func (c *Client) call(ctx context.Context, h messages.Hook, call messages.HookCall) (messages.HookAnswer, error) {
	body, err := json.Marshal(call)
	if err != nil {
		return messages.HookAnswer{}, fmt.Errorf("encode hook: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return messages.HookAnswer{}, bare(err)
	}
	req.GetBody = nil // a request that may have arrived is not sent again: the run's own rules say when
	for name, value := range h.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	req.Header.Set(HeaderID, headerText(call.ID))
	req.Header.Set(HeaderPoint, string(call.On))
	if c.cfg.Secret != "" {
		req.Header.Set(HeaderSignature, Sign(c.cfg.Secret, c.cfg.Now(), body))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return messages.HookAnswer{}, bare(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return messages.HookAnswer{}, fmt.Errorf("answered %d", resp.StatusCode)
	}
	if !call.On.Decides() {
		return messages.HookAnswer{}, nil
	}
	return answer(resp.Body)
}

// answer reads an answer. Nothing at all allows.
func answer(r io.Reader) (a messages.HookAnswer, _ error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return a, fmt.Errorf("read answer: %w", err)
	case len(data) > maxAnswer:
		return a, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	case len(bytes.TrimSpace(data)) == 0:
		return a, nil
	}
	if err := strict.Decode(data, &a); err != nil {
		return messages.HookAnswer{}, fmt.Errorf("the answer is none: %w", err)
	}
	return a, a.Validate()
}

// Sign is the signature of a body that is sent at a time.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(t + ".")) // never fails
	_, _ = mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify reports whether a signature is that of a body and at most as old, or as far ahead, as maxAge.
func Verify(secret, signature string, body []byte, now time.Time, maxAge time.Duration) bool {
	stamp, _, ok := strings.Cut(strings.TrimPrefix(signature, "t="), ",")
	if !ok {
		return false
	}
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return false
	}
	at := time.Unix(unix, 0)
	return now.Sub(at).Abs() <= maxAge && hmac.Equal([]byte(Sign(secret, at, body)), []byte(signature))
}

// bare is an error without the URL that net/http puts in front: a query may hold anything.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// headerText is what a header may hold of a text that a model may have written.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '_'
		}
		return r
	}, strict.Clip(s, 512))
}
