package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/dispatcher/webhook"
	"github.com/longshore-run/longshore/messages"
)

const (
	secret = "a secret that is long enough"
	older  = "the secret before this one, too"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sender(t *testing.T, cfg webhook.Config) *webhook.Sender {
	t.Helper()
	if cfg.Secrets == nil {
		cfg.Secrets = []string{secret}
	}
	s, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func job(address string) *messages.WebhookJob {
	j := messages.RunWebhook(messages.Ref{Tenant: "acme", Run: "run-1"}, address, []byte(`{"type":"longshore.run_finished.v1"}`))
	return &j
}

func receiver(t *testing.T, do http.HandlerFunc) (s *httptest.Server, host string) {
	t.Helper()
	s = httptest.NewServer(do)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, u.Host
}

// verify computes a signature anew, as the specification of Standard Webhooks describes it.
func verify(t *testing.T, key string, h http.Header, body []byte) bool {
	t.Helper()
	encoded, ok := strings.CutPrefix(key, "whsec_")
	if !ok {
		t.Fatalf("the key %q has no prefix", key)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(strings.Join([]string{h.Get("webhook-id"), h.Get("webhook-timestamp"), string(body)}, ".")))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return slices.Contains(strings.Fields(h.Get("webhook-signature")), want)
}

func TestDeliveriesAreSigned(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_767_312_000, 0)
	type request struct {
		header http.Header
		body   []byte
	}
	got := make(chan request, 1)
	s, host := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Header, body}
	})
	w := sender(t, webhook.Config{Secrets: []string{secret, older}, Hosts: []string{host}, UserAgent: "longshore/1", Now: func() time.Time { return now }})
	j := job(s.URL + "/ends?key=k")
	if err := w.Send(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if string(r.body) != string(j.Body) || r.header.Get("Webhook-Timestamp") != "1767312000" || r.header.Get("Webhook-Id") != j.ID ||
		r.header.Get("Content-Type") != "application/cloudevents+json" || r.header.Get("User-Agent") != "longshore/1" {
		t.Errorf("%v %s", r.header, r.body)
	}
	for _, secret := range []string{secret, older} {
		if !verify(t, webhook.Key(secret, "acme"), r.header, r.body) {
			t.Errorf("the signature %q is not that of the key", r.header.Get("Webhook-Signature"))
		}
	}
	for name, key := range map[string]string{"another tenant": webhook.Key(secret, "umbrella"), "another secret": webhook.Key(secret+"!", "acme")} {
		if verify(t, key, r.header, r.body) {
			t.Errorf("the key of %s fits", name)
		}
	}
	if verify(t, webhook.Key(secret, "acme"), r.header, append(r.body, ' ')) {
		t.Error("another body fits")
	}
	if strings.ContainsAny(j.ID, ".") {
		t.Errorf("the id %q holds the separator", j.ID)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		header http.Header
		body   string
		reason string // empty: delivered
		final  bool
		after  time.Duration
	}{
		"ok":             {status: 200},
		"accepted":       {status: 202, body: "thanks"},
		"a long answer":  {status: 200, body: strings.Repeat("x", 1<<20)},
		"moved":          {status: 302, header: http.Header{"Location": {"/elsewhere"}}, reason: "redirects are not followed"},
		"bad request":    {status: 400, reason: "answered 400"},
		"gone":           {status: 410, reason: "answered 410", final: true},
		"failing":        {status: 500, reason: "answered 500"},
		"busy":           {status: 429, header: http.Header{"Retry-After": {"7"}}, reason: "answered 429", after: 7 * time.Second},
		"away":           {status: 503, header: http.Header{"Retry-After": {"99999999999"}}, reason: "answered 503", after: time.Hour},
		"a date":         {status: 503, header: http.Header{"Retry-After": {"Fri, 02 Jan 2026 15:04:05 GMT"}}, reason: "answered 503"},
		"a negative one": {status: 503, header: http.Header{"Retry-After": {"-5"}}, reason: "answered 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := 0
			s, host := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
				requests++
				maps.Copy(w.Header(), tt.header)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			err := sender(t, webhook.Config{Hosts: []string{host}}).Send(t.Context(), job(s.URL))
			if requests != 1 {
				t.Errorf("%d requests", requests)
			}
			if tt.reason == "" {
				if err != nil {
					t.Errorf("not delivered: %v", err)
				}
				return
			}
			f, ok := errors.AsType[*messages.WebhookError](err)
			if !ok || !strings.Contains(f.Reason, tt.reason) || f.Final != tt.final || f.After != tt.after {
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestASilentReceiverIsLeft(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	left := make(chan struct{}, 64)
	s, host := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		asked.Store(true)
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the caller has left
		<-r.Context().Done()
		left <- struct{}{}
	})
	for wait := 20 * time.Millisecond; !asked.Load(); wait *= 2 { // until one that is sent in that time gets there
		err := sender(t, webhook.Config{Hosts: []string{host}, Timeout: wait}).Send(t.Context(), job(s.URL))
		f, ok := errors.AsType[*messages.WebhookError](err)
		if !ok || f.Final || f.Reason != "no answer in time" {
			t.Errorf("within %v: %+v", wait, err)
		}
	}
	<-left
}

// Addresses that are refused by their text alone are refused at submit.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := sender(t, webhook.Config{Hosts: []string{"hooks.internal:8080", "10.1.2.3"}})
	for address, ok := range map[string]bool{
		"https://hooks.example.com/a": true, "https://93.184.216.34/": true, "http://hooks.internal:8080/": true, "http://10.1.2.3/": true,
		"http://hooks.example.com/": false, "http://hooks.internal/": false, "https://127.0.0.1/": false, "https://[::1]/": false,
		"https://169.254.169.254/latest/meta-data": false, "https://10.1.2.4/": false, "https://[::ffff:127.0.0.1]/": false, "https://0/": true,
	} {
		err := w.Check(&messages.Webhook{URL: address})
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
		if field, wrong := errors.AsType[*messages.FieldError](err); err != nil && (!wrong || field.Field != "webhook.url") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, bad := range []webhook.Config{{}, {Secrets: []string{"short"}}, {Secrets: []string{secret}, Hosts: []string{"https://a"}}} {
		if _, err := webhook.New(bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// A name that leads to a private address is not called, whatever it resolved to at submit, and neither is one that only shares it
// with a listed host.
func TestNamesAreJudgedWhenDialled(t *testing.T) {
	reached := make(chan struct{}, 9)
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} }))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPS_PROXY", s.URL) // it must not be used
	for name, tt := range map[string]struct {
		hosts  []string
		reason string
		final  bool
	}{
		"nothing listed": {nil, "is not a public address", true},
		"its address":    {[]string{"127.0.0.1"}, "is not a public address", true},
		"another port":   {[]string{"localhost:1"}, "is not a public address", true},
		"listed":         {[]string{"localhost:" + port}, "certificate", false}, // so it was dialled
	} {
		err := sender(t, webhook.Config{Hosts: tt.hosts}).Send(t.Context(), job("https://localhost:"+port+"/?key=hidden"))
		f, ok := errors.AsType[*messages.WebhookError](err)
		if !ok || !strings.Contains(f.Reason, tt.reason) || f.Final != tt.final || strings.Contains(f.Reason, "hidden") {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if len(reached) > 0 {
		t.Error("a request came through")
	}
}

// A listed name may lead to a private address, but not to where clouds keep their secrets.
func TestListedNamesDoNotReachTheMetadata(t *testing.T) {
	t.Parallel()
	w := sender(t, webhook.Config{Hosts: []string{"hooks.internal", "169.254.1.1"}})
	for _, tt := range []struct {
		endpoint, address string
		ok                bool
	}{
		{"hooks.internal:80", "10.0.0.1:80", true},
		{"hooks.internal:80", "127.0.0.1:80", true},
		{"hooks.internal:80", "169.254.169.254:80", false},
		{"169.254.1.1:80", "169.254.1.1:80", true},
		{"evil.example.com:443", "169.254.1.1:443", false},
		{"evil.example.com:443", "10.0.0.1:443", false},
		{"evil.example.com:443", "93.184.216.34:443", true},
	} {
		if err := webhook.Guard(w, tt.endpoint, netip.MustParseAddrPort(tt.address)); (err == nil) != tt.ok {
			t.Errorf("%s at %s: %v", tt.endpoint, tt.address, err)
		}
	}
}

func TestAnEndedContextIsNoAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sender(t, webhook.Config{}).Send(ctx, job("https://hooks.example.com/")); err == nil {
		t.Error("delivered")
	}
}
