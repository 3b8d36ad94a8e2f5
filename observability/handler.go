package observability

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// readyTimeout bounds a probe, which comes every few seconds.
const readyTimeout = 2 * time.Second

// Sizes of what a probe shows of why a process is not ready.
const (
	maxReasons    = 16
	maxReasonSize = 200 // in bytes
)

// maxScrapes bounds the scrapes that are answered at once; more are told to come again.
const maxScrapes = 4

// Handler answers GET and HEAD of
//
//	/metrics  the metrics, in the format that the scraper asks for
//	/healthz  200 "ok" while the process lives
//	/readyz   200 {"ready":true}, with "degraded":["..."] where it has reasons, or 503 {"ready":false,"reasons":["..."]}
//
// and problem details to everything else. There is no authentication: it belongs on a port for the operator alone.
//
// Ready tells why the process cannot do its work now, errors that were joined as reasons of their own. Their text is
// shown, so it must hold no secrets. It has 2 seconds, must obey its ctx, and may be called by many at once; nil
// means always ready. Degraded are the checks of what a process can do without; they must return at once, and what they return
// is shown too.
func Handler(m *Metrics, ready func(context.Context) error, degraded ...func() error) http.Handler {
	routes := map[string]http.Handler{
		"/metrics": promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, // one metric that cannot be read must not hide the others
			Registry:      m.registry, MaxRequestsInFlight: maxScrapes,
		})),
		"/healthz": http.HandlerFunc(healthy),
		"/readyz":  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerReady(w, r, ready, degraded) }),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-store")
		route, ok := routes[r.URL.Path]
		switch {
		case !ok:
			refuse(w, http.StatusNotFound, messages.CodeNotFound, "there are /metrics, /healthz and /readyz")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, messages.CodeInvalidInput, "only GET and HEAD are answered")
		default:
			route.ServeHTTP(w, r)
		}
	})
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok")) // the client went away
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons,omitempty"`
	Degraded []string `json:"degraded,omitempty"`
}

func answerReady(w http.ResponseWriter, r *http.Request, ready func(context.Context) error, degraded []func() error) {
	var lacks []error
	for _, check := range degraded {
		lacks = append(lacks, check())
	}
	answer := readiness{Degraded: reasons(errors.Join(lacks...))}
	if ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		answer.Reasons = reasons(ready(ctx))
	}
	status := http.StatusOK
	if answer.Ready = answer.Reasons == nil; !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, "application/json", answer)
}

// reasons takes joined errors apart, which have a line each.
func reasons(err error) []string {
	if err == nil {
		return nil
	}
	lines := strings.SplitN(err.Error(), "\n", maxReasons+1)
	lines = lines[:min(len(lines), maxReasons)]
	for i, line := range lines {
		lines[i] = strict.Clip(line, maxReasonSize)
	}
	return lines
}

func refuse(w http.ResponseWriter, status int, code messages.Code, detail string) {
	writeJSON(w, status, "application/problem+json", messages.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code,
	})
}

func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}") // our own types always encode
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client went away
}
