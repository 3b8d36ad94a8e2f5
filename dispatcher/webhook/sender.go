// Package webhook delivers webhooks. Make a [Sender] with [New]; the dispatcher's service decides when it sends.
//
// A delivery is a POST of a CloudEvent, signed as the Standard Webhooks specification says. It goes to https addresses
// of the open internet, and to the hosts that the operator listed; an address is judged when it is dialled, whatever
// name led to it. Redirects are not followed and no proxy is asked. Any 2xx is a success. What is answered beyond the
// status is thrown away.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	defaultTimeout = 10 * time.Second
	// Bounds what is read of an answer, so that its connection can be used again.
	maxAnswer = 64 << 10
	// Bounds the pause that a receiver may ask for.
	maxAfter = time.Hour
)

// MinSecret is the minimum length of a secret in bytes.
const MinSecret = 24

// Config of a Sender.
type Config struct {
	Secrets   []string      // each signs; the first is the newest. At least one
	Hosts     []string      // may be called over http too, and at private addresses
	UserAgent string        // default "longshore"
	Timeout   time.Duration // of one delivery; default 10 s
	Now       func() time.Time
}

// Sender delivers webhooks. Safe for concurrent use.
type Sender struct {
	cfg   Config
	hosts hosts.List
	http  *http.Client
}

// New refuses a host that is not valid, and a secret that is missing or short.
func New(cfg Config) (*Sender, error) {
	if len(cfg.Secrets) == 0 {
		return nil, errors.New("webhooks need a secret")
	}
	for _, s := range cfg.Secrets {
		if len(s) < MinSecret {
			return nil, fmt.Errorf("LONGSHORE_WEBHOOK_SECRET must have at least %d characters", MinSecret)
		}
	}
	hosts, err := hosts.Parse(cfg.Hosts)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "longshore"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	s := &Sender{cfg: cfg, hosts: hosts}
	s.http = &http.Client{
		Transport:     egress.Transport(s.guard),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// Close closes idle connections.
func (s *Sender) Close() { s.http.CloseIdleConnections() }

// Check reports whether a webhook may be called, as far as its address alone says. The error is a *messages.FieldError.
func (s *Sender) Check(w *messages.Webhook) error {
	u, err := url.Parse(w.URL)
	if err != nil {
		return &messages.FieldError{Field: "webhook.url", Reason: "is not an address"}
	}
	if s.hosts.Lists(hosts.Endpoint(u)) {
		return nil
	}
	if u.Scheme != "https" {
		return &messages.FieldError{Field: "webhook.url", Reason: "must be https, unless the operator lists its host in LONGSHORE_WEBHOOK_HOSTS"}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !egress.Public(ip.Unmap()) {
		return &messages.FieldError{Field: "webhook.url", Reason: "is an address that is not public, and the operator did not list it in LONGSHORE_WEBHOOK_HOSTS"}
	}
	return nil
}

// errGuarded means that the address that a name has led to must not be called.
var errGuarded = errors.New("is not a public address; the operator can list its host in LONGSHORE_WEBHOOK_HOSTS")

// guard lets the open internet be dialled, and what the operator listed. A listed name never leads to where
// clouds keep what their machines are trusted with: that is listed as an address.
func (s *Sender) guard(endpoint string, at netip.AddrPort) error {
	switch ip := at.Addr(); {
	case egress.Public(ip):
		return nil
	case s.hosts.Lists(endpoint) && (!egress.Metadata(ip) || s.hosts.ListsAddress(at)):
		return nil
	default:
		return fmt.Errorf("the address %s %w", at, errGuarded)
	}
}

// Send makes one attempt. The error is a *messages.WebhookError.
func (s *Sender) Send(ctx context.Context, j *messages.WebhookJob) error {
	if err := s.Check(&messages.Webhook{URL: j.URL}); err != nil {
		return &messages.WebhookError{Reason: err.Error(), Final: true}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.URL, bytes.NewReader(j.Body))
	if err != nil {
		return &messages.WebhookError{Reason: "the address cannot be called", Final: true}
	}
	req.GetBody = nil // whether it is sent again is decided elsewhere
	now := s.cfg.Now()
	req.Header.Set("Content-Type", "application/cloudevents+json")
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	req.Header.Set(HeaderID, j.ID)
	if trace := traceOf(j.Body); trace != "" {
		req.Header.Set(messages.HeaderTraceparent, trace)
	}
	req.Header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(HeaderSignature, sign(s.cfg.Secrets, j.Tenant, j.ID, now, j.Body))
	resp, err := s.http.Do(req)
	if err != nil {
		return failure(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // the status is the answer
	return verdict(resp)
}

// traceOf returns the span of the run from an event, if the event names one.
func traceOf(event []byte) string {
	var e struct {
		Traceparent string `json:"traceparent"`
	}
	if json.Unmarshal(event, &e) != nil {
		return ""
	}
	if _, err := messages.ParseTraceparent(e.Traceparent); err != nil {
		return ""
	}
	return e.Traceparent
}

// verdict says what a status means. A receiver that has moved or lost its secret may recover; one that is gone does not.
func verdict(resp *http.Response) error {
	f := &messages.WebhookError{Reason: fmt.Sprintf("answered %d", resp.StatusCode)}
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode <= 299:
		return nil
	case resp.StatusCode == http.StatusGone:
		f.Reason, f.Final = "answered 410: the receiver is gone for good", true
	case resp.StatusCode >= 300 && resp.StatusCode <= 399:
		f.Reason += ": redirects are not followed"
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
			f.After = time.Duration(min(n, int(maxAfter/time.Second))) * time.Second
		}
	}
	return f
}

// failure takes the URL that net/http puts in front out of an error: a query may hold anything.
func failure(err error) *messages.WebhookError {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	f := &messages.WebhookError{Reason: strict.Clip(err.Error(), 512), Final: errors.Is(err, errGuarded)}
	if errors.Is(err, context.DeadlineExceeded) {
		f.Reason = "no answer in time"
	}
	return f
}
