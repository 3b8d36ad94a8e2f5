package model_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// attempts is a provider that goes through a list, one for each call.
type attempts struct {
	list  []attempt
	calls []time.Duration // since the beginning, of each call
	began time.Time
}

type attempt struct {
	text string
	idea string // reasoning, before the text
	err  error  // instead of a reply
	none bool   // neither reply nor error
}

func (a *attempts) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		now := a.list[min(len(a.calls), len(a.list)-1)]
		a.calls = append(a.calls, time.Since(a.began))
		if now.idea != "" && !yield(model.Delta{Reasoning: now.idea}, nil) {
			return
		}
		if now.text != "" && !yield(model.Delta{Text: now.text}, nil) {
			return
		}
		if now.err != nil {
			yield(model.Delta{}, now.err)
		} else if !now.none {
			yield(model.Delta{Reply: &model.Reply{Message: messages.Message{Role: messages.RoleAssistant}}}, nil)
		}
	}
}

// heard writes down what a call yields.
func heard(ctx context.Context, p model.Provider) (out []string, last error) {
	for d, err := range p.Stream(ctx, model.Request{Model: "m"}) {
		switch {
		case err != nil:
			out, last = append(out, "error"), err
		case d.Reset:
			out = append(out, "reset")
		case d.Reply != nil:
			out = append(out, "reply")
		default:
			out = append(out, d.Text+d.Reasoning)
		}
	}
	return out, last
}

func busy() *model.Error { return &model.Error{Class: model.Overloaded, Detail: "busy"} }

func TestRetry(t *testing.T) {
	const s = time.Second
	limited := func(after time.Duration) *model.Error {
		return &model.Error{Class: model.RateLimited, RetryAfter: after}
	}
	foreign := errors.New("foreign")
	for _, tt := range []struct {
		name   string
		config model.RetryConfig
		list   []attempt
		heard  []string
		at     []time.Duration // of each call
	}{
		{"no error", model.RetryConfig{}, []attempt{{text: "a"}}, []string{"a", "reply"}, []time.Duration{0}},
		{"once", model.RetryConfig{}, []attempt{{err: busy()}, {text: "a"}}, []string{"a", "reply"}, []time.Duration{0, s}},
		{"text is taken back", model.RetryConfig{}, []attempt{{text: "a", err: busy()}, {err: busy()}, {text: "b"}}, []string{"a", "reset", "b", "reply"}, []time.Duration{0, s, 3 * s}},
		{"text is taken back twice", model.RetryConfig{}, []attempt{{text: "a", err: busy()}, {text: "b", err: busy()}, {text: "c"}}, []string{"a", "reset", "b", "reset", "c", "reply"}, []time.Duration{0, s, 3 * s}},
		{"reasoning is taken back", model.RetryConfig{}, []attempt{{idea: "a", err: busy()}, {text: "b"}}, []string{"a", "reset", "b", "reply"}, []time.Duration{0, s}},
		{"in vain", model.RetryConfig{}, []attempt{{err: busy()}}, []string{"error"}, []time.Duration{0, s, 3 * s, 7 * s}},
		{"waits are capped", model.RetryConfig{Retries: 7}, []attempt{{err: busy()}}, []string{"error"}, []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s, 91 * s}},
		{"shortest wait", model.RetryConfig{Random: func() float64 { return 0 }}, []attempt{{err: busy()}, {}}, []string{"reply"}, []time.Duration{0, s / 2}},
		{"longest wait", model.RetryConfig{Random: func() float64 { return 0.99 }}, []attempt{{err: busy()}, {}}, []string{"reply"}, []time.Duration{0, 1490 * time.Millisecond}},
		{"the provider's wait", model.RetryConfig{}, []attempt{{err: limited(20 * s)}, {}}, []string{"reply"}, []time.Duration{0, 20 * s}},
		{"a shorter one of the provider", model.RetryConfig{}, []attempt{{err: limited(time.Millisecond)}, {}}, []string{"reply"}, []time.Duration{0, s}},
		{"too long a wait", model.RetryConfig{}, []attempt{{err: limited(31 * s)}}, []string{"error"}, []time.Duration{0}},
		{"not retryable", model.RetryConfig{}, []attempt{{text: "a", err: &model.Error{Class: model.Auth}}}, []string{"a", "error"}, []time.Duration{0}},
		{"a foreign error", model.RetryConfig{}, []attempt{{err: foreign}}, []string{"error"}, []time.Duration{0}},
		{"switched off", model.RetryConfig{Retries: -1}, []attempt{{err: busy()}}, []string{"error"}, []time.Duration{0}},
		{"a stream without an end", model.RetryConfig{}, []attempt{{text: "a", none: true}, {}}, []string{"a", "reset", "reply"}, []time.Duration{0, s}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &attempts{list: tt.list, began: time.Now()}
				var told []model.Retried
				tt.config.OnRetry = func(r model.Retried) { told = append(told, r) }
				if tt.config.Random == nil {
					tt.config.Random = func() float64 { return 0.5 }
				}
				got, err := heard(t.Context(), model.NewRetry(p, tt.config))
				if diff := cmp.Diff(tt.heard, got); diff != "" {
					t.Errorf("%s (%v)", diff, err)
				}
				if diff := cmp.Diff(tt.at, p.calls); diff != "" {
					t.Error(diff)
				}
				if len(told) != len(p.calls)-1 {
					t.Errorf("%d calls, %d retries told", len(p.calls), len(told))
				}
				for i, r := range told {
					if r.Model != "m" || r.Attempt != i+1 || r.Err == nil || r.Wait != p.calls[i+1]-p.calls[i] {
						t.Errorf("told %+v", r)
					}
				}
			})
		})
	}
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*time.Millisecond, func() { cancel(cause) })
		p := &attempts{list: []attempt{{text: "a", err: busy()}}, began: time.Now()}
		got, err := heard(ctx, model.NewRetry(p, model.RetryConfig{Random: func() float64 { return 0.5 }}))
		if !errors.Is(err, cause) || time.Since(p.began) != 1500*time.Millisecond {
			t.Errorf("got %v after %s", err, time.Since(p.began))
		}
		if diff := cmp.Diff([]string{"a", "reset", "a", "error"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRetryStopsWithItsConsumer(t *testing.T) {
	p := &attempts{list: []attempt{{text: "a", err: busy()}}, began: time.Now()}
	for _, err := range model.NewRetry(p, model.RetryConfig{}).Stream(t.Context(), model.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if len(p.calls) != 1 {
		t.Errorf("%d calls", len(p.calls))
	}
}

func TestDefaultJitterStaysInBounds(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			p := &attempts{list: []attempt{{err: busy()}, {}}, began: time.Now()}
			if _, err := heard(t.Context(), model.NewRetry(p, model.RetryConfig{})); err != nil {
				t.Fatal(err)
			}
			if d := p.calls[1]; d < 500*time.Millisecond || d > 1500*time.Millisecond {
				t.Errorf("waited %s", d)
			}
		})
	}
}

// A request may say how often its call is made again, of each model.
func TestRequestSaysHowOftenItIsRetried(t *testing.T) {
	for retries, want := range map[int]int{0: 1, 1: 2, 5: 6} {
		synctest.Test(t, func(t *testing.T) {
			p := &plant{err: busy()}
			r, err := model.NewRouter(model.RouterConfig{
				Endpoints: []model.Endpoint{{Name: "p", Provider: p}}, Default: "p", Breaker: model.BreakerConfig{Failures: -1},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, failed := ask(t.Context(), r, model.Request{Retries: new(retries)}); failed == nil || p.count() != want {
				t.Errorf("%d retries: %d calls, error %v", retries, p.count(), failed)
			}
			alone := &plant{err: busy()}
			if _, failed := ask(t.Context(), model.NewRetry(alone, model.RetryConfig{}), model.Request{Retries: new(retries)}); failed == nil || alone.count() != want {
				t.Errorf("%d retries without a router: %d calls, error %v", retries, alone.count(), failed)
			}
		})
	}
}
