package governor_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/memorytest"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/governor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long tests wait for what must happen.
const patience = time.Minute

// eachServer runs a test on miniredis, and on a redis-server if there is one on the PATH.
func eachServer(t *testing.T, test func(*testing.T, memorytest.Server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { test(t, miniredis(t)) })
	t.Run("redis-server", func(t *testing.T) {
		s, ok := memorytest.RedisServer(t)
		if !ok {
			t.Log("no redis-server on the PATH: left out")
			return
		}
		test(t, s)
	})
}

// everyServer adds a cluster and Sentinel, which take seconds to start.
func everyServer(t *testing.T, test func(*testing.T, memorytest.Server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { test(t, miniredis(t)) })
	memorytest.Real(t, test)
}

func miniredis(tb testing.TB) memorytest.Server {
	tb.Helper()
	s := embeddedtest.Start(tb, embedded.Config{NATSAddr: embedded.NoListen})
	return memorytest.Server{
		Name: "miniredis", URL: s.RedisURL,
		Stop: func(testing.TB) { s.StopRedis() },
		Start: func(tb testing.TB) {
			tb.Helper()
			if err := s.StartRedis(); err != nil {
				tb.Fatal(err)
			}
		},
	}
}

func connect(tb testing.TB, s memorytest.Server) redis.UniversalClient {
	tb.Helper()
	rdb, err := memory.Connect(s.URL)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func limits(l governor.Limits) func(string, string) governor.Limits {
	return func(string, string) governor.Limits { return l }
}

// newGovernor has a timeout that a slow machine does not reach.
func newGovernor(tb testing.TB, s memorytest.Server, c governor.Config) *governor.Governor {
	tb.Helper()
	c.Redis = connect(tb, s)
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Worker == "" {
		c.Worker = "w1"
	}
	g, err := governor.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// clock is the time of a test. It begins where a real clock may stand.
type clock struct{ millis atomic.Int64 }

func (c *clock) Now() time.Time            { return time.UnixMilli(1_900_000_000_000 + c.millis.Load()) }
func (c *clock) advance(d time.Duration)   { c.millis.Add(d.Milliseconds()) }
func (c *clock) elapsed() time.Duration    { return time.Duration(c.millis.Load()) * time.Millisecond }
func (c *clock) micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// provider answers with the function.
type provider func(ctx context.Context, r model.Request) (*model.Reply, error)

func (p provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		reply, err := p(ctx, r)
		yield(model.Delta{Reply: reply}, err)
	}
}

func ok(context.Context, model.Request) (*model.Reply, error) { return &model.Reply{}, nil }

// hang replies when the returned function is called.
func hang(tb testing.TB) (p provider, began <-chan string, end func()) {
	tb.Helper()
	started, release := make(chan string, 100), make(chan struct{})
	end = sync.OnceFunc(func() { close(release) })
	tb.Cleanup(end)
	return func(ctx context.Context, r model.Request) (*model.Reply, error) {
		started <- r.Tenant
		select {
		case <-release:
			return &model.Reply{}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}, started, end
}

func request(tenant string) model.Request {
	return model.Request{Tenant: tenant, Model: "m", MaxTokens: 100}
}

func do(ctx context.Context, p model.Provider, r model.Request) error {
	for d, err := range p.Stream(ctx, r) {
		if err != nil || d.Reply != nil {
			return err
		}
	}
	return errors.New("no reply")
}

// inBackground calls and returns a function that waits for the outcome.
func inBackground(ctx context.Context, p model.Provider, r model.Request) func() error {
	done := make(chan error, 1)
	go func() { done <- do(ctx, p, r) }() // ends with ctx
	return func() error { return <-done }
}

// wantRefused fails unless err is our own limit.
func wantRefused(t *testing.T, err error) *model.Error {
	t.Helper()
	failed, is := errors.AsType[*model.Error](err)
	if !is || failed.Class != model.RateLimited || !strings.Contains(failed.Detail, "our own limit") || failed.RetryAfter <= 30*time.Second {
		t.Fatalf("got %v after %s, want our own limit with a time to retry that parks the run", err, failed.RetryAfter)
	}
	return failed
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

const pool = "longshore:governor:{p/m}"

func TestTwoWorkersHoldTheLimitTogether(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		t.Helper()
		for name, tt := range map[string]struct {
			limits           governor.Limits
			perMinute, burst int
		}{
			"requests":      {governor.Limits{RPM: 30}, 30, 3},
			"tokens":        {governor.Limits{TPM: 4000}, 40, 4},
			"of the tenant": {governor.Limits{RPM: 3000, TenantRPM: 30}, 30, 3},
		} {
			t.Run(name, func(t *testing.T) {
				var now clock
				var counted int
				count := provider(func(context.Context, model.Request) (*model.Reply, error) { counted++; return &model.Reply{}, nil })
				var workers []model.Provider
				for _, w := range []string{"w1", "w2"} {
					g := newGovernor(t, s, governor.Config{
						Worker: w, Limits: limits(tt.limits), Prefix: name, MaxWait: -1, Now: now.Now,
					})
					workers = append(workers, g.Wrap("p", count))
				}
				const minutes = 2
				for now.elapsed() < minutes*time.Minute {
					for _, w := range workers {
						if err := do(t.Context(), w, request("acme")); err != nil {
							wantRefused(t, err)
						}
					}
					now.advance(time.Second)
				}
				low, high := minutes*tt.perMinute-1, minutes*tt.perMinute+tt.burst
				if counted < low || counted > high {
					t.Errorf("got %d calls in %d minutes, want %d to %d", counted, minutes, low, high)
				}
			})
		}
	})
}

func TestSettleTakesTheTrueUsage(t *testing.T) {
	const tpm = 60_000 // a token is a millisecond
	reply := func(u messages.Usage) provider {
		return func(context.Context, model.Request) (*model.Reply, error) { return &model.Reply{Usage: u}, nil }
	}
	fail := func(c model.Class) provider {
		return func(context.Context, model.Request) (*model.Reply, error) { return nil, &model.Error{Class: c} }
	}
	const estimate = 101 // 4 bytes and 100 tokens of reply
	tests := map[string]struct {
		provider provider
		want     int64 // milliseconds until the bucket is full again
	}{
		"as estimated":           {reply(messages.Usage{Total: estimate}), estimate},
		"less":                   {reply(messages.Usage{Total: 7}), 7},
		"more":                   {reply(messages.Usage{Total: 20_000}), 20_000},
		"much more":              {reply(messages.Usage{Total: 1 << 40}), 2 * tpm},
		"negative":               {reply(messages.Usage{Total: -5, Input: -1, Output: 30}), 30},
		"without a total":        {reply(messages.Usage{Input: 5, Output: 6}), 11},
		"not told":               {reply(messages.Usage{}), estimate},
		"rate limited":           {fail(model.RateLimited), 0},
		"overloaded":             {fail(model.Overloaded), 0},
		"auth":                   {fail(model.Auth), 0},
		"quota":                  {fail(model.Quota), 0},
		"invalid request":        {fail(model.InvalidRequest), 0},
		"context length":         {fail(model.ContextLength), 0},
		"network":                {fail(model.Network), estimate},
		"timeout":                {fail(model.Timeout), estimate},
		"cut":                    {fail(model.Truncated), estimate},
		"filtered":               {fail(model.ContentFilter), estimate},
		"bad reply":              {fail(model.ModelOutput), estimate},
		"reply too large":        {fail(model.ReplyTooLarge), estimate},
		"an error of no class":   {func(context.Context, model.Request) (*model.Reply, error) { return nil, errors.New("x") }, estimate},
		"a stream without reply": {func(context.Context, model.Request) (*model.Reply, error) { return nil, nil }, estimate},
	}
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		t.Helper()
		rdb := connect(t, s)
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				rdb.FlushAll(t.Context())
				var now clock
				g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{TPM: tpm, TenantTPM: tpm}), Now: now.Now})
				r := request("acme")
				r.Messages = []messages.Message{{Role: messages.RoleUser, Content: messages.TextContent("text")}}
				_ = do(t.Context(), g.Wrap("p", tt.provider), r)
				for _, key := range []string{pool, pool + ":tenant:acme"} {
					got, err := rdb.HGet(t.Context(), key, "t").Result()
					if want := now.micros(now.Now().Add(time.Duration(tt.want) * time.Millisecond)); err != nil || got != want {
						t.Errorf("%s: got %s and %v, want %s", key, got, err, want)
					}
				}
				if n := rdb.Exists(t.Context(), pool+":leases", pool+":tenant:acme:leases").Val(); n != 0 {
					t.Errorf("got %d leases, want none", n)
				}
			})
		}
	})
}

func TestLeaseOfAKilledWorkerExpires(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		t.Helper()
		var now clock
		c := governor.Config{Limits: limits(governor.Limits{InFlight: 1}), MaxWait: -1, Now: now.Now}
		p, began, end := hang(t)
		killed := inBackground(t.Context(), newGovernor(t, s, c).Wrap("p", p), request("acme"))
		<-began
		other := newGovernor(t, s, c).Wrap("p", provider(ok))
		wantRefused(t, do(t.Context(), other, request("acme")))
		now.advance(59 * time.Second)
		wantRefused(t, do(t.Context(), other, request("acme")))
		now.advance(2 * time.Second)
		if err := do(t.Context(), other, request("acme")); err != nil {
			t.Errorf("after the lease: %v", err)
		}
		end() // what comes late changes nothing
		if err := killed(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunKeepsTheLeasesOfLongCalls(t *testing.T) {
	s := miniredis(t)
	var now clock
	c := governor.Config{Limits: limits(governor.Limits{InFlight: 1, TenantInFlight: 1}), MaxWait: -1, Now: now.Now}
	g := newGovernor(t, s, c)
	p, began, end := hang(t)
	long := inBackground(t.Context(), g.Wrap("p", p), request("acme"))
	<-began
	now.advance(50 * time.Second)
	stop := run(t, g) // its first heartbeat renews
	until := now.micros(now.Now().Add(time.Minute))
	eventually(t, "renewed", func() bool {
		rdb := connect(t, s)
		for _, key := range []string{pool + ":leases", pool + ":tenant:acme:leases"} {
			l, err := rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result()
			if err != nil || len(l) != 1 || fmt.Sprintf("%.0f", l[0].Score) != until {
				return false
			}
		}
		return true
	})
	stop()
	end()
	if err := long(); err != nil {
		t.Error(err)
	}
}

// run runs g until the returned function is called.
func run(tb testing.TB, g *governor.Governor) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }() // stop waits for it
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

func TestRepeatedStepTakesTheLeaseOver(t *testing.T) {
	s := miniredis(t)
	c := governor.Config{Limits: limits(governor.Limits{InFlight: 1}), MaxWait: -1}
	r := request("acme")
	r.Key = "acme.run.1.model"
	p, began, end := hang(t)
	killed := inBackground(t.Context(), newGovernor(t, s, c).Wrap("p", p), r)
	<-began
	other := newGovernor(t, s, c).Wrap("p", provider(ok))
	if err := do(t.Context(), other, r); err != nil {
		t.Errorf("the same step: %v", err)
	}
	end()
	if err := killed(); err != nil { // settles what is settled
		t.Error(err)
	}
	if n := connect(t, s).Exists(t.Context(), pool+":leases").Val(); n != 0 {
		t.Error("a lease is left")
	}
}

func TestCallsInFlightAreLimited(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		const most, calls = 3, 60
		var now, peak atomic.Int64
		p := provider(func(context.Context, model.Request) (*model.Reply, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				old := peak.Load()
				if n <= old || peak.CompareAndSwap(old, n) {
					return &model.Reply{}, nil
				}
			}
		})
		var all sync.WaitGroup
		for _, w := range []string{"w1", "w2"} {
			g := newGovernor(t, s, governor.Config{Worker: w, Limits: limits(governor.Limits{InFlight: most}), MaxWait: patience})
			for i := range calls / 2 {
				all.Go(func() {
					if err := do(t.Context(), g.Wrap("p", p), request(fmt.Sprint("tenant", i%4))); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if got := peak.Load(); got > most {
			t.Errorf("got %d calls at once, want at most %d", got, most)
		}
	})
}

// One tenant has fifty calls that wait at any time, the other one. Turns are counted, not time.
func TestModestTenantGetsItsTurns(t *testing.T) {
	everyServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		for name, workers := range map[string]int{"one worker": 1, "two workers": 2} {
			t.Run(name, func(t *testing.T) { modest(t, s, workers) })
		}
	})
}

func modest(t *testing.T, s memorytest.Server, workers int) {
	t.Helper()
	const turns = 8
	var greedyTurns atomic.Int64
	p := provider(func(_ context.Context, r model.Request) (*model.Reply, error) {
		if r.Tenant == "greedy" {
			greedyTurns.Add(1)
		}
		return &model.Reply{}, nil
	})
	var endpoints []model.Provider
	for i := range workers {
		g := newGovernor(t, s, governor.Config{
			Worker: strconv.Itoa(i), Limits: limits(governor.Limits{InFlight: 1}), Prefix: strconv.Itoa(workers), MaxWait: patience,
		})
		endpoints = append(endpoints, g.Wrap("p", p))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = do(ctx, endpoints[0], request("greedy"))
			}
		})
	}
	eventually(t, "contention", func() bool { return greedyTurns.Load() > 50 })
	var passed []int64
	for range turns {
		before := greedyTurns.Load()
		if err := do(ctx, endpoints[workers-1], request("modest")); err != nil {
			t.Fatal(err)
		}
		passed = append(passed, greedyTurns.Load()-before)
	}
	// Its share is every second turn. Some may pass before it has asked for the first time, of a slow machine many, once.
	slices.Sort(passed)
	if half := passed[turns/2]; half > 25 {
		t.Errorf("%d calls of the greedy tenant passed half of those of the modest tenant: %v", half, passed)
	}
	cancel()
	all.Wait()
}

// The queue itself: with one permit, three tenants that wait are let through by turns whatever the number of their calls.
func TestTurnsGoRound(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		var mu sync.Mutex
		var order []string
		release := make(chan struct{})
		p := provider(func(_ context.Context, r model.Request) (*model.Reply, error) {
			mu.Lock()
			order = append(order, r.Tenant)
			mu.Unlock()
			<-release
			return &model.Reply{}, nil
		})
		g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{InFlight: 1}), MaxWait: patience})
		var all sync.WaitGroup
		began := func() int { mu.Lock(); defer mu.Unlock(); return len(order) }
		call := func(tenant string) {
			all.Go(func() {
				if err := do(t.Context(), g.Wrap("p", p), request(tenant)); err != nil {
					t.Error(err)
				}
			})
		}
		call("first")
		eventually(t, "the permit is taken", func() bool { return began() == 1 })
		const each = 4
		for range each {
			call("a")
			call("b")
			call("c")
		}
		rdb := connect(t, s)
		for i := range 3 * each {
			waiting := int64(3)
			if left := 3*each - i; left < 3 {
				waiting = int64(left)
			}
			eventually(t, "all are queued", func() bool { return rdb.ZCard(t.Context(), pool+":line").Val() == waiting })
			release <- struct{}{}
			eventually(t, "the next", func() bool { return began() == i+2 })
		}
		release <- struct{}{}
		all.Wait()
		for round := range each {
			got := map[string]int{}
			for _, tenant := range order[1+3*round : 4+3*round] {
				got[tenant]++
			}
			if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1}, got); diff != "" {
				t.Errorf("round %d of %v: %s", round, order, diff)
			}
		}
	})
}

func TestWaitsNoLongerThanItIsWorth(t *testing.T) {
	s := miniredis(t)
	g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: 1})})
	p := g.Wrap("p", provider(ok))
	if err := do(t.Context(), p, request("acme")); err != nil {
		t.Fatal(err)
	}
	failed := wantRefused(t, do(t.Context(), p, request("acme"))) // 60 s are more than 30
	if failed.RetryAfter < 30*time.Second || failed.RetryAfter > time.Minute {
		t.Errorf("got %s, want what is left of the minute", failed.RetryAfter)
	}
	if !strings.Contains(failed.Detail, "p/m") || !strings.Contains(failed.Detail, "requests per minute") {
		t.Errorf("got %q, want the model and what is short", failed.Detail)
	}
	if n := connect(t, s).Exists(t.Context(), pool+":line").Val(); n != 0 {
		t.Error("the place in the queue is kept")
	}
	if got := g.Stats(); got.Admitted != 1 || got.Refused != 1 || got.Degraded {
		t.Errorf("got %+v, want 1 admitted, 1 refused", got)
	}
}

func TestCancelGivesThePlaceUp(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{InFlight: 1}), MaxWait: patience})
		p, began, end := hang(t)
		e := g.Wrap("p", p)
		holder := inBackground(t.Context(), e, request("holder"))
		<-began
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := inBackground(ctx, e, request("acme")), inBackground(ctx, e, request("acme"))
		rdb := connect(t, s)
		line := func() []string { return rdb.ZRange(t.Context(), pool+":line", 0, -1).Val() }
		eventually(t, "queued", func() bool { return cmp.Equal([]string{"acme"}, line()) })
		cause := errors.New("the caller gave up")
		cancel(cause)
		for _, wait := range []func() error{first, second} {
			if err := wait(); !errors.Is(err, cause) {
				t.Errorf("got %v, want the cause", err)
			}
		}
		if got := line(); len(got) != 0 {
			t.Errorf("got %v queued, want none", got)
		}
		end()
		if err := holder(); err != nil {
			t.Error(err)
		}
	})
}

// A worker was killed while its tenant stood first in the queue.
func TestPlaceOfAKilledWaiterIsLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		var now clock
		rdb := connect(t, s)
		rdb.ZAdd(t.Context(), pool+":line", redis.Z{Score: 0, Member: "killed"})
		rdb.ZAdd(t.Context(), pool+":seen", redis.Z{Score: float64(now.Now().Add(3 * time.Second).UnixMicro()), Member: "killed"})
		rdb.HSet(t.Context(), pool, "v", "1000")
		g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: 1000}), Now: now.Now, MaxWait: -1})
		wantRefused(t, do(t.Context(), g.Wrap("p", provider(ok)), request("acme")))
		now.advance(4 * time.Second)
		if err := do(t.Context(), g.Wrap("p", provider(ok)), request("acme")); err != nil {
			t.Errorf("got %v, want the turn", err)
		}
	})
}

func TestLimitsOfATenantHoldNobodyElseBack(t *testing.T) {
	s := miniredis(t)
	g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: 6000, TenantInFlight: 1}), MaxWait: patience})
	p, began, end := hang(t)
	e := g.Wrap("p", p)
	waits := []func() error{inBackground(t.Context(), e, request("acme"))}
	<-began
	waits = append(waits, inBackground(t.Context(), e, request("acme")))
	waits = append(waits, inBackground(t.Context(), e, request("other")))
	if got := <-began; got != "other" {
		t.Errorf("got a call of %s, want the other tenant's", got)
	}
	end()
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestWithoutLimitsNobodyIsAsked(t *testing.T) {
	s := miniredis(t)
	g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: -1})})
	if err := do(t.Context(), g.Wrap("p", provider(ok)), request("acme")); err != nil {
		t.Fatal(err)
	}
	if keys := connect(t, s).Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("got keys %v, want none", keys)
	}
}

func TestEveryKeyExpiresAndSharesASlot(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: 100, TPM: 10_000, InFlight: 1, TenantRPM: 10, TenantInFlight: 2}), MaxWait: patience})
		stop := run(t, g)
		eventually(t, "heartbeat", func() bool {
			return g.Stats().Workers == 1 && connect(t, s).Exists(t.Context(), "longshore:governor:workers").Val() == 1
		})
		p, began, end := hang(t)
		e := g.Wrap("p}", p)
		holder := inBackground(t.Context(), e, request("acme"))
		<-began
		ctx, cancel := context.WithCancel(t.Context())
		waiter := inBackground(ctx, e, request("{x} *"))
		rdb := connect(t, s)
		eventually(t, "queued", func() bool { return rdb.ZCard(t.Context(), "longshore:governor:{p%7D/m}:line").Val() == 1 })
		keys := rdb.Keys(t.Context(), "*").Val()
		if len(keys) < 7 {
			t.Errorf("got keys %v, want more", keys)
		}
		for _, key := range keys {
			if ttl := rdb.TTL(t.Context(), key).Val(); ttl <= 0 {
				t.Errorf("%s does not expire", key)
			}
			if !strings.HasPrefix(key, "longshore:governor:{p%7D/m}") && key != "longshore:governor:workers" {
				t.Errorf("%s is in a slot of its own", key)
			}
		}
		cancel()
		_ = waiter()
		end()
		if err := holder(); err != nil {
			t.Error(err)
		}
		stop()
		if rdb.Exists(t.Context(), "longshore:governor:workers").Val() != 0 {
			t.Error("the worker is still counted")
		}
	})
}

func TestWorkersAreCounted(t *testing.T) {
	s := miniredis(t)
	one := newGovernor(t, s, governor.Config{Worker: "w1", Limits: limits(governor.Limits{})})
	stop := run(t, one)
	defer stop()
	eventually(t, "one is counted", func() bool { return connect(t, s).ZCard(t.Context(), "longshore:governor:workers").Val() == 1 })
	two := newGovernor(t, s, governor.Config{Worker: "w2", Limits: limits(governor.Limits{})})
	run(t, two)
	eventually(t, "two workers", func() bool { return two.Stats().Workers == 2 })
}

func TestWithoutRedisEachWorkerKeepsToItsShare(t *testing.T) {
	var now clock
	s := miniredis(t)
	g := newGovernor(t, s, governor.Config{
		Worker: "w1", Limits: limits(governor.Limits{RPM: 120, TenantTPM: 1 << 20}), MaxWait: -1, Now: now.Now, Probe: time.Hour,
	})
	rdb := connect(t, s)
	for i := range 3 {
		rdb.ZAdd(t.Context(), "longshore:governor:workers", redis.Z{Score: float64(now.Now().Add(20 * time.Second).UnixMicro()), Member: fmt.Sprint("other", i)})
	}
	stop := run(t, g)
	eventually(t, "four workers", func() bool { return g.Stats().Workers == 4 })
	stop()
	s.Stop(t)
	const share, burst, minutes = 30, 3, 3
	counted := 0
	for now.elapsed() < minutes*time.Minute {
		if err := do(t.Context(), g.Wrap("p", provider(ok)), request("acme")); err == nil {
			counted++
		} else {
			wantRefused(t, err)
		}
		now.advance(250 * time.Millisecond)
	}
	if low, high := share*minutes-1, share*minutes+burst; counted < low || counted > high {
		t.Errorf("got %d calls in %d minutes, want %d to %d", counted, minutes, low, high)
	}
	if !g.Stats().Degraded {
		t.Error("want degraded")
	}
}

func TestShareOfCallsInFlightAndTokens(t *testing.T) {
	var now clock
	g, err := governor.New(governor.Config{Limits: limits(governor.Limits{InFlight: 1, TPM: 600}), MaxWait: -1, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	p, began, end := hang(t)
	first := inBackground(t.Context(), g.Wrap("p", p), request("acme"))
	<-began
	wantRefused(t, do(t.Context(), g.Wrap("p", provider(ok)), request("acme")))
	end()
	if err := first(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, do(t.Context(), g.Wrap("p", provider(ok)), request("acme"))) // the first took 10 s of tokens
	now.advance(11 * time.Second)
	refunded := provider(func(context.Context, model.Request) (*model.Reply, error) {
		return nil, &model.Error{Class: model.Auth}
	})
	for range 3 {
		if failed, is := errors.AsType[*model.Error](do(t.Context(), g.Wrap("p", refunded), request("acme"))); !is || failed.Class != model.Auth {
			t.Errorf("got %v, want what the provider said", failed)
		}
	}
	if !g.Stats().Degraded {
		t.Error("without a client: want degraded")
	}
}

func TestRedisGoesAndComesBack(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{InFlight: 2}), Probe: 20 * time.Millisecond, MaxWait: patience})
		run(t, g)
		p, began, end := hang(t)
		middle := inBackground(t.Context(), g.Wrap("p", p), request("acme"))
		<-began
		s.Stop(t)
		for range 10 {
			if err := do(t.Context(), g.Wrap("p", provider(ok)), request("acme")); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "degraded", func() bool { return g.Stats().Degraded })
		end()
		if err := middle(); err != nil {
			t.Error(err)
		}
		s.Start(t)
		eventually(t, "back without a call", func() bool { return !g.Stats().Degraded })
		if err := do(t.Context(), g.Wrap("p", provider(ok)), request("acme")); err != nil {
			t.Error(err)
		}
		if got := g.Stats(); got.Admitted != 12 || got.Errors == 0 {
			t.Errorf("got %+v, want 12 admitted and errors", got)
		}
	})
}

func TestWhatIsInRedisIsNotTrusted(t *testing.T) {
	far := time.Now().Add(1000 * time.Hour).UnixMicro()
	for name, damage := range map[string]func(*testing.T, redis.UniversalClient){
		"a text for the pool": func(t *testing.T, r redis.UniversalClient) { t.Helper(); r.Set(t.Context(), pool, "x", 0) },
		"a text for the line": func(t *testing.T, r redis.UniversalClient) { t.Helper(); r.Set(t.Context(), pool+":line", "x", 0) },
		"no numbers": func(t *testing.T, r redis.UniversalClient) {
			t.Helper()
			r.HSet(t.Context(), pool, "r", "x", "t", "", "v", "{}")
		},
		"leases from far away": func(t *testing.T, r redis.UniversalClient) {
			t.Helper()
			r.ZAdd(t.Context(), pool+":leases", redis.Z{Score: float64(far), Member: "x"})
		},
		"a line from far away": func(t *testing.T, r redis.UniversalClient) {
			t.Helper()
			r.ZAdd(t.Context(), pool+":line", redis.Z{Score: -5, Member: "x"})
			r.ZAdd(t.Context(), pool+":seen", redis.Z{Score: float64(far), Member: "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := miniredis(t)
			damage(t, connect(t, s))
			g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: 600, InFlight: 1}), MaxWait: -1})
			if err := do(t.Context(), g.Wrap("p", provider(ok)), request("acme")); err != nil {
				t.Error(err)
			}
			if g.Stats().Degraded {
				t.Error("Redis is there: want not degraded")
			}
		})
	}
}

func TestLineIsBounded(t *testing.T) {
	s := miniredis(t)
	rdb := connect(t, s)
	far := float64(time.Now().Add(2 * time.Second).UnixMicro())
	for i := range 1024 {
		rdb.ZAdd(t.Context(), pool+":line", redis.Z{Score: 0, Member: strconv.Itoa(i)})
		rdb.ZAdd(t.Context(), pool+":seen", redis.Z{Score: far + 1e9, Member: strconv.Itoa(i)})
	}
	var now clock
	now.millis.Store(time.Now().UnixMilli() - 1_900_000_000_000 + 999_000)
	g := newGovernor(t, s, governor.Config{Limits: limits(governor.Limits{RPM: 600}), Now: now.Now, MaxWait: patience})
	failed := wantRefused(t, do(t.Context(), g.Wrap("p", provider(ok)), request("acme")))
	if !strings.Contains(failed.Detail, "tenants that may wait") {
		t.Errorf("got %q, want that the queue is full", failed.Detail)
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := governor.New(governor.Config{}); err == nil {
		t.Error("without limits: want an error")
	}
}

func BenchmarkAdmitAndSettle(b *testing.B) {
	servers := map[string]memorytest.Server{"miniredis": miniredis(b)}
	if s, ok := memorytest.RedisServer(b); ok {
		servers["redis-server"] = s
	}
	for name, s := range servers {
		b.Run(name, func(b *testing.B) {
			g := newGovernor(b, s, governor.Config{Limits: limits(governor.Limits{RPM: 1 << 30, TPM: 1 << 40, InFlight: 100})})
			p := g.Wrap("p", provider(ok))
			for b.Loop() {
				if err := do(b.Context(), p, request("acme")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("without redis", func(b *testing.B) {
		g, err := governor.New(governor.Config{Limits: limits(governor.Limits{RPM: 1 << 30, TPM: 1 << 40, InFlight: 100})})
		if err != nil {
			b.Fatal(err)
		}
		p := g.Wrap("p", provider(ok))
		for b.Loop() {
			if err := do(b.Context(), p, request("acme")); err != nil {
				b.Fatal(err)
			}
		}
	})
}
