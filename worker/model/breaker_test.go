package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/circuit"
	"github.com/longshore-run/longshore/worker/model"
)

// plant is a provider that works or does not.
type plant struct {
	mu    sync.Mutex
	err   error
	calls int
	hold  chan struct{} // each call waits for it; nil: none does
}

func (p *plant) Stream(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		p.mu.Lock()
		p.calls++
		err, hold := p.err, p.hold
		p.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
		}
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Reply: &model.Reply{Provider: "p"}}, nil)
	}
}

func (p *plant) set(err error, hold chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.hold = err, hold
}

func (p *plant) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// even is jitter that changes nothing.
func even() float64 { return 0.5 }

func breaking(t *testing.T, p model.Provider) *model.Router {
	t.Helper()
	r, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{{Name: "p", Provider: p}}, Default: "p", Retry: model.RetryConfig{Retries: -1},
		Breaker: model.BreakerConfig{Failures: 3, First: 40 * time.Second, Longest: 100 * time.Second, Random: even},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plant{err: busy()}
		r := breaking(t, p)
		fails := func(calls int, after time.Duration) {
			t.Helper()
			_, failed := ask(t.Context(), r, model.Request{Model: "m"})
			if failed == nil || failed.Class != model.Overloaded || failed.RetryAfter != after || p.count() != calls {
				t.Fatalf("%d calls, error %+v, want %d and %s", p.count(), failed, calls, after)
			}
		}
		state := func(want circuit.State, failures int) {
			t.Helper()
			c := r.Circuits()
			if len(c) != 1 || c[0].State != want || c[0].Failures != failures || c[0].Model != "m" || c[0].Last != model.Overloaded {
				t.Fatalf("circuits %+v, want %s after %d", c, want, failures)
			}
		}
		fails(1, 0)
		fails(2, 0)
		state(circuit.Closed, 2)
		fails(3, 40*time.Second)
		state(circuit.Open, 3)
		fails(3, 40*time.Second)
		time.Sleep(9 * time.Second)
		fails(3, 31*time.Second) // longer than a run waits in a slot
		time.Sleep(31 * time.Second)
		state(circuit.HalfOpen, 3)
		fails(4, 80*time.Second) // the one call that is let through
		state(circuit.Open, 4)
		fails(4, 80*time.Second)
		time.Sleep(80 * time.Second)
		fails(5, 100*time.Second)
		fails(5, 100*time.Second) // the longest
		if other, _ := ask(t.Context(), r, model.Request{Model: "p/other"}); other[0] != "error" || p.count() != 6 {
			t.Fatalf("another model of the endpoint has the same circuit: %q", other)
		}
		p.set(nil, nil)
		time.Sleep(100 * time.Second)
		if heard, failed := ask(t.Context(), r, model.Request{Model: "m"}); failed != nil {
			t.Fatalf("%q %v", heard, failed)
		}
		if _, failed := ask(t.Context(), r, model.Request{Model: "p/other"}); failed != nil || len(r.Circuits()) != 0 {
			t.Fatalf("%v, circuits %v", failed, r.Circuits())
		}
	})
}

// A short wait for a circuit is waited out, in vain at most a few times; then the run is told to come back later.
func TestShortCircuitIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plant{err: busy()}
		r, err := model.NewRouter(model.RouterConfig{
			Endpoints: []model.Endpoint{{Name: "p", Provider: p}}, Default: "p",
			Breaker: model.BreakerConfig{Failures: 3, Random: even}, Retry: model.RetryConfig{Random: even},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(14*time.Second, func() { p.set(nil, nil) })
		began := time.Now()
		// Calls at 0, 1 and 3 s open it for 5 s; one at 8 s for 10 s; one at 18 s is answered.
		if heard, failed := ask(t.Context(), r, model.Request{}); failed != nil || time.Since(began) != 18*time.Second || p.count() != 5 {
			t.Errorf("%q, %v after %s and %d calls", heard, failed, time.Since(began), p.count())
		}
		p.set(busy(), nil)
		began = time.Now()
		// It opens for 5, 10, 20 and 40 s.
		if _, failed := ask(t.Context(), r, model.Request{}); failed == nil || failed.RetryAfter != 40*time.Second || time.Since(began) != 38*time.Second {
			t.Errorf("%+v after %s", failed, time.Since(began))
		}
	})
}

func TestAuthOpensForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plant{err: &model.Error{Class: model.Auth, Status: 401, Detail: "bad key", Hint: "check it"}}
		r := breaking(t, p)
		for range 3 {
			ask(t.Context(), r, model.Request{})
		}
		_, failed := ask(t.Context(), r, model.Request{})
		if failed == nil || failed.Class != model.Auth || failed.Hint != "check it" || failed.Retryable() || p.count() != 3 {
			t.Fatalf("after %d calls: %+v", p.count(), failed)
		}
		if c := r.Circuits(); len(c) != 1 || time.Until(c[0].Until) != 100*time.Second {
			t.Errorf("circuits %+v", c)
		}
	})
}

// What a model that is not called is told to the run counts one failure as one.
func TestARefusalCountsItsFailures(t *testing.T) {
	for failures, want := range map[int]string{1: "not called for now, after a failure: ", 2: "not called for now, after 2 failures in a row, the last: "} {
		p := &plant{err: busy()}
		r, err := model.NewRouter(model.RouterConfig{
			Endpoints: []model.Endpoint{{Name: "p", Provider: p}}, Default: "p", Retry: model.RetryConfig{Retries: -1},
			Breaker: model.BreakerConfig{Failures: failures, First: time.Hour, Longest: time.Hour, Random: even},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range failures {
			ask(t.Context(), r, model.Request{Model: "m"})
		}
		if _, failed := ask(t.Context(), r, model.Request{Model: "m"}); failed == nil || !strings.HasPrefix(failed.Detail, want) || p.count() != failures {
			t.Errorf("after %d: %+v, want %q", failures, failed, want)
		}
	}
}

func TestRefusalsAreAnswers(t *testing.T) {
	for _, c := range []model.Class{model.RateLimited, model.InvalidRequest, model.ContextLength, model.ContentFilter, model.ModelOutput, model.ReplyTooLarge} {
		p := &plant{err: &model.Error{Class: c, RetryAfter: time.Hour}}
		r := breaking(t, p)
		for range 5 {
			ask(t.Context(), r, model.Request{})
		}
		if p.count() != 5 || len(r.Circuits()) != 0 {
			t.Errorf("%s: %d calls, circuits %v", c, p.count(), r.Circuits())
		}
	}
}

// A rate limit neither counts as a failure nor forgives those before it.
func TestRateLimitsDoNotCount(t *testing.T) {
	p := &plant{}
	r := breaking(t, p)
	for i, err := range []error{busy(), busy(), limited(0), busy()} {
		if p.set(err, nil); len(r.Circuits()) > 0 && r.Circuits()[0].State != circuit.Closed {
			t.Errorf("open after %d calls", i)
		}
		ask(t.Context(), r, model.Request{})
	}
	if c := r.Circuits(); len(c) != 1 || c[0].State != circuit.Open || c[0].Failures != 3 {
		t.Errorf("circuits %+v", c)
	}
}

func limited(after time.Duration) *model.Error {
	return &model.Error{Class: model.RateLimited, Status: 429, RetryAfter: after}
}

// While one call tries a half-open circuit the others go elsewhere, and one that is given up leaves the trial to the next.
func TestHalfOpenLetsOneThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, other := &plant{err: busy()}, &plant{}
		r, err := model.NewRouter(model.RouterConfig{
			Endpoints: []model.Endpoint{{Name: "p", Provider: p}, {Name: "other", Provider: other}}, Retry: model.RetryConfig{Retries: -1},
			Breaker: model.BreakerConfig{Failures: 1, Random: even},
		})
		if err != nil {
			t.Fatal(err)
		}
		both := model.Request{Models: []string{"p", "other"}}
		ask(t.Context(), r, both)
		time.Sleep(5 * time.Second)
		p.set(nil, make(chan struct{}))
		ctx, giveUp := context.WithCancelCause(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			ask(ctx, r, both)
		}()
		synctest.Wait()
		for range 10 {
			ask(t.Context(), r, both)
		}
		if p.count() != 2 || other.count() != 11 {
			t.Errorf("%d calls of the half-open one, %d of the other", p.count(), other.count())
		}
		giveUp(errors.New("enough"))
		<-done
		p.set(nil, nil)
		if heard, _ := ask(t.Context(), r, both); len(r.Circuits()) != 0 || p.count() != 3 {
			t.Errorf("%q, circuits %v", heard, r.Circuits())
		}
	})
}

// Invented model names do not exhaust memory, and old failures are evicted.
func TestCircuitsAreBounded(t *testing.T) {
	p := &plant{err: busy()}
	r := breaking(t, p)
	for i := range 3000 {
		ask(t.Context(), r, model.Request{Model: fmt.Sprint("m", i)})
	}
	if n := len(r.Circuits()); n != 1024 {
		t.Errorf("%d circuits", n)
	}
}

// Many goroutines, and one truth: no more calls than the circuit lets through, and it closes again.
func TestCircuitUnderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 50
		p := &plant{err: busy()}
		r := breaking(t, p)
		for range 3 {
			ask(t.Context(), r, model.Request{})
		}
		round := func() (ok int64) {
			var answered atomic.Int64
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					if _, failed := ask(t.Context(), r, model.Request{}); failed == nil {
						answered.Add(1)
					}
					r.Circuits()
				})
			}
			all.Wait()
			return answered.Load()
		}
		for i, open := range []time.Duration{40 * time.Second, 80 * time.Second, 100 * time.Second} {
			time.Sleep(open)
			if ok := round(); ok != 0 || p.count() != 4+i {
				t.Fatalf("round %d: %d answered, %d calls", i, ok, p.count())
			}
		}
		p.set(nil, nil)
		time.Sleep(100 * time.Second)
		if ok := round(); ok != workers {
			t.Errorf("%d of %d answered once it works", ok, workers)
		}
		if diff := cmp.Diff(0, len(r.Circuits())); diff != "" {
			t.Error(diff)
		}
	})
}

// remembered answers from a cache, whatever is behind it.
type remembered struct {
	*plant
	on bool
}

func (c *remembered) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	if !c.on {
		return c.plant.Stream(ctx, r)
	}
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{Reply: &model.Reply{Cached: true}}, nil) }
}

func TestCachedReplyTellsNothingOfItsModel(t *testing.T) {
	p := &remembered{plant: &plant{err: &model.Error{Class: model.Overloaded}}}
	r := breaking(t, p)
	for range 2 {
		ask(t.Context(), r, model.Request{})
	}
	p.on = true
	ask(t.Context(), r, model.Request{})
	if c := r.Circuits(); len(c) != 1 || c[0].Failures != 2 {
		t.Errorf("got %+v, want the two failures", c)
	}
	p.on = false
	ask(t.Context(), r, model.Request{})
	if c := r.Circuits(); len(c) != 1 || c[0].State != circuit.Open {
		t.Errorf("got %+v, want an open circuit after the third failure", c)
	}
}

// A patient request waits for a circuit that is open for long, instead of being told to come again.
func TestPatientRequestWaitsForTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plant{err: busy()}
		r := breaking(t, p)
		for range 3 {
			_, _ = ask(t.Context(), r, model.Request{Model: "m"})
		}
		if _, failed := ask(t.Context(), r, model.Request{Model: "m"}); failed == nil || failed.RetryAfter != 40*time.Second {
			t.Fatalf("the circuit is not open: %v", failed)
		}
		p.set(nil, nil)
		began := time.Now()
		if _, failed := ask(t.Context(), r, model.Request{Model: "m", Patient: true}); failed != nil || time.Since(began) != 40*time.Second {
			t.Errorf("%v after %s", failed, time.Since(began))
		}
		p.set(busy(), nil)
		for range 3 {
			_, _ = ask(t.Context(), r, model.Request{Model: "m"})
		}
		began = time.Now()
		if _, failed := ask(t.Context(), r, model.Request{Model: "m", Patient: true}); failed == nil || time.Since(began) > 2*time.Minute {
			t.Errorf("%v after %s", failed, time.Since(began))
		}
	})
}
