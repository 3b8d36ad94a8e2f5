package observability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/observability"
)

func ask(t *testing.T, ready func(context.Context) error, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(""))
	observability.Handler(observability.NewMetrics(""), ready).ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	const (
		plain, inJSON, problem = "text/plain; charset=utf-8", "application/json", "application/problem+json"
		notFound               = `{"type":"about:blank","title":"Not Found","status":404,"detail":"there are /metrics, /healthz and /readyz","code":"not_found","retryable":false}`
		notAllowed             = `{"type":"about:blank","title":"Method Not Allowed","status":405,"detail":"only GET and HEAD are answered","code":"invalid_input","retryable":false}`
	)
	fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	down := errors.Join(errors.New("nats: not connected"), fmt.Errorf("redis: %w", errors.New("timeout")))
	cases := map[string]struct {
		ready             func(context.Context) error
		method, target    string
		status            int
		contentType, body string
	}{
		"alive":              {nil, "GET", "/healthz", 200, plain, "ok"},
		"alive, not ready":   {fails(down), "GET", "/healthz?x=1", 200, plain, "ok"},
		"alive, no body":     {nil, "HEAD", "/healthz", 200, plain, "ok"}, // the server leaves it out
		"ready":              {fails(nil), "GET", "/readyz", 200, inJSON, `{"ready":true}`},
		"always ready":       {nil, "GET", "/readyz", 200, inJSON, `{"ready":true}`},
		"not ready":          {fails(errors.New("nats: not connected")), "GET", "/readyz", 503, inJSON, `{"ready":false,"reasons":["nats: not connected"]}`},
		"reasons":            {fails(down), "GET", "/readyz", 503, inJSON, `{"ready":false,"reasons":["nats: not connected","redis: timeout"]}`},
		"root":               {nil, "GET", "/", 404, problem, notFound},
		"below":              {nil, "GET", "/metrics/", 404, problem, notFound},
		"other":              {nil, "POST", "/debug/pprof", 404, problem, notFound},
		"up":                 {nil, "GET", "/x/../healthz", 404, problem, notFound},
		"post to metrics":    {nil, "POST", "/metrics", 405, problem, notAllowed},
		"delete of health":   {nil, "DELETE", "/healthz", 405, problem, notAllowed},
		"put of readiness":   {nil, "PUT", "/readyz", 405, problem, notAllowed},
		"options of metrics": {nil, "OPTIONS", "/metrics", 405, problem, notAllowed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := ask(t, c.ready, c.method, c.target)
			if w.Code != c.status || w.Header().Get("Content-Type") != c.contentType {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Header().Get("Content-Type"), c.status, c.contentType)
			}
			if diff := cmp.Diff(c.body, w.Body.String()); diff != "" {
				t.Error(diff)
			}
			if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", w.Header())
			}
			if allow := w.Header().Get("Allow"); (allow == "GET, HEAD") != (c.status == http.StatusMethodNotAllowed) {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}

// What a process does without is reported, and does not make it unready.
func TestHandlerTellsOfDegradation(t *testing.T) {
	lacks := func() error { return errors.New("redis: timeout") }
	for name, c := range map[string]struct {
		ready  error
		checks []func() error
		status int
		body   string
	}{
		"one lacks":           {nil, []func() error{lacks, func() error { return nil }}, http.StatusOK, `{"ready":true,"degraded":["redis: timeout"]}`},
		"nothing lacks":       {nil, []func() error{func() error { return nil }}, http.StatusOK, `{"ready":true}`},
		"not ready and lacks": {errors.New("no NATS"), []func() error{lacks}, http.StatusServiceUnavailable, `{"ready":false,"reasons":["no NATS"],"degraded":["redis: timeout"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
			observability.Handler(observability.NewMetrics(""), func(context.Context) error { return c.ready }, c.checks...).ServeHTTP(w, r)
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.body)
			}
		})
	}
}

func TestHandlerServesMetrics(t *testing.T) {
	w := ask(t, nil, http.MethodGet, "/metrics")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") ||
		!strings.Contains(w.Body.String(), `longshore_build_info{version="unknown"} 1`) {
		t.Errorf("got %d %s %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
}

func TestReadyHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := ask(t, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, http.MethodGet, "/readyz")
		if took := time.Since(start); w.Code != http.StatusServiceUnavailable || took != 2*time.Second {
			t.Errorf("got %d after %s", w.Code, took)
		}
	})
}

func TestReasonsAreBounded(t *testing.T) {
	var all []error
	for range 100 {
		all = append(all, errors.New(strings.Repeat("é", 500)))
	}
	w := ask(t, func(context.Context) error { return errors.Join(all...) }, http.MethodGet, "/readyz")
	var body struct {
		Reasons []string `json:"reasons"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	if want := strict.Clip(strings.Repeat("é", 500), 200); len(body.Reasons) != 16 || body.Reasons[15] != want {
		t.Errorf("%d reasons, the last %q", len(body.Reasons), body.Reasons[len(body.Reasons)-1])
	}
}
