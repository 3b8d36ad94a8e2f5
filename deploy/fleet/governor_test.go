package fleet

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/model"
)

// says answers with one text, and counts.
type says struct{ calls int }

func (p *says) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		p.calls++
		yield(model.Delta{Reply: &model.Reply{
			Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("Clear.")}, Stop: messages.StopEnd,
		}}, nil)
	}
}

func askOnce(t *testing.T, p model.Provider, r model.Request) (*model.Reply, error) {
	t.Helper()
	for d, err := range p.Stream(t.Context(), r) {
		return d.Reply, err
	}
	t.Fatal("nothing came")
	return nil, nil
}

func TestGuardOfAWorker(t *testing.T) {
	s := embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen})
	ws := settings.Worker{RedisURL: s.RedisURL, Name: "w1", Models: settings.Models{ModelRPM: 1, ReplyCacheTTL: time.Hour}}
	g, err := newGuard(ws, limitsOf(ws.Models), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.close() }()
	g.sealer.keys.Store(keyring.New(nil, keyring.Config{})) // without a keyset
	p := &says{}
	guarded := g.wrap("p", p)
	r := model.Request{Tenant: "acme", Model: "m", Temperature: new(0.0), Cache: true}
	for i := range 3 { // a hit takes nothing of the limit
		if got, err := askOnce(t, guarded, r); err != nil || got.Cached != (i > 0) {
			t.Errorf("call %d: got %+v and %v", i, got, err)
		}
	}
	r.Cache = false
	_, err = askOnce(t, guarded, r)
	if failed, ok := errors.AsType[*model.Error](err); !ok || failed.Class != model.RateLimited {
		t.Errorf("got %v, want our own limit", err)
	}
	if p.calls != 1 {
		t.Errorf("got %d calls, want 1", p.calls)
	}
	m := observability.NewMetrics("test")
	if err := g.metrics(m); err != nil {
		t.Fatal(err)
	}
	page := httptest.NewRecorder()
	observability.Handler(m, func(context.Context) error { return nil }).ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		"longshore_governor_degraded 0", "longshore_governor_refused_total 1", "longshore_governor_waits_total 0",
		"longshore_reply_cache_hits_total 2", "longshore_reply_cache_misses_total 1",
	} {
		if !strings.Contains(page.Body.String(), want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestGuardThatHasNothingToDo(t *testing.T) {
	ws := settings.Worker{RedisURL: "none", Models: settings.Models{ReplyCacheTTL: time.Hour}}
	g, err := newGuard(ws, limitsOf(ws.Models), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p := &says{}
	for name, g := range map[string]*guard{"no redis, no limits": g, "none": nil} {
		if g.wrap("p", p) != model.Provider(p) || g.run(t.Context()) != nil || g.close() != nil || g.metrics(observability.NewMetrics("x")) != nil {
			t.Errorf("%s: want nothing before the provider", name)
		}
	}
}

// closing is a provider that has something to close.
type closing struct {
	says

	closed int
}

func (c *closing) Close() { c.closed++ }

func TestGuardClosesProviders(t *testing.T) {
	g, leaf, ofFile := &guard{}, &closing{}, &closing{}
	g.wrap("a", leaf)
	g.wrap("b", hinted{Provider: ofFile})
	if err := g.close(); err != nil || leaf.closed != 1 || ofFile.closed != 1 {
		t.Errorf("got %v, closed %d and %d times, want once each", err, leaf.closed, ofFile.closed)
	}
}
