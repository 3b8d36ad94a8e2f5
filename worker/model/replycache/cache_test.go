package replycache_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
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
	"github.com/longshore-run/longshore/worker/model/replycache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// newCache has a timeout that a slow machine does not reach.
func newCache(tb testing.TB, s memorytest.Server, c replycache.Config) *replycache.Cache {
	tb.Helper()
	c.Redis, c.Timeout = connect(tb, s), 10*time.Second
	cache, err := replycache.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return cache
}

// endpoint answers always the same, and counts.
type endpoint struct {
	reply model.Reply
	err   error
	calls int
}

func (e *endpoint) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		e.calls++
		if !yield(model.Delta{Text: "so"}, nil) {
			return
		}
		if e.err != nil {
			yield(model.Delta{}, e.err)
			return
		}
		reply := e.reply
		yield(model.Delta{Reply: &reply}, nil)
	}
}

func said(text string, stop messages.StopReason) model.Reply {
	return model.Reply{
		Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(text)}, Stop: stop,
		Usage: messages.Usage{Input: 5, Output: 6, Total: 11}, Provider: "openai", Model: "m-1",
	}
}

func request() model.Request {
	return model.Request{
		Key: "acme.run.1.model", Tenant: "acme", Model: "m", MaxTokens: 9, Temperature: new(0.0), Cache: true,
		Messages: []messages.Message{{Role: messages.RoleUser, Content: messages.TextContent("Is the quay clear?")}},
		Tools:    []messages.ToolSpec{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}},
	}
}

func ask(t *testing.T, p model.Provider, r model.Request) (*model.Reply, error) {
	t.Helper()
	for d, err := range p.Stream(t.Context(), r) {
		if err != nil || d.Reply != nil {
			return d.Reply, err
		}
	}
	t.Fatal("no reply")
	return nil, nil
}

func mustAsk(t *testing.T, p model.Provider, r model.Request) *model.Reply {
	t.Helper()
	reply, err := ask(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestSameRequestIsPaidOnce(t *testing.T) {
	call := said("Let me look.", messages.StopToolCalls)
	call.Message.Content = append(call.Message.Content,
		messages.Block{Reasoning: &messages.Reasoning{Family: "openai", Text: "hm", Signature: "s"}},
		messages.Block{ToolCall: &messages.ToolCall{ID: "c1", Name: "look", Arguments: `{"at":"the <quay>"}`}})
	everyServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		for name, reply := range map[string]model.Reply{"text": said("Clear.", messages.StopEnd), "a tool call": call} {
			t.Run(name, func(t *testing.T) {
				c := newCache(t, s, replycache.Config{Prefix: name})
				e := &endpoint{reply: reply}
				p := c.Wrap("p", e)
				if got := mustAsk(t, p, request()); got.Cached || got.Usage.Total != 11 {
					t.Errorf("got cached %t, usage %+v for the first, want what the provider said", got.Cached, got.Usage)
				}
				other := request()
				other.Key = "acme.other.7.model" // of another run
				want := reply
				want.Usage, want.Cached = messages.Usage{}, true
				if diff := cmp.Diff(&want, mustAsk(t, p, other)); diff != "" {
					t.Error(diff)
				}
				if e.calls != 1 {
					t.Errorf("got %d calls, want 1", e.calls)
				}
				if diff := cmp.Diff(replycache.Stats{Hits: 1, Misses: 1, Stores: 1, Up: true}, c.Stats()); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}

func TestAnotherRequestIsNotAnswered(t *testing.T) {
	s := miniredis(t)
	for name, change := range map[string]func(*model.Request){
		"tenant":     func(r *model.Request) { r.Tenant = "other" },
		"model":      func(r *model.Request) { r.Model = "n" },
		"messages":   func(r *model.Request) { r.Messages = append(r.Messages, r.Messages[0]) },
		"role":       func(r *model.Request) { r.Messages[0].Role = messages.RoleSystem },
		"tools":      func(r *model.Request) { r.Tools[0].Description = "Looks." },
		"no tools":   func(r *model.Request) { r.Tools = nil },
		"max tokens": func(r *model.Request) { r.MaxTokens = 10 },
		"format":     func(r *model.Request) { r.Format = &model.Format{Name: "x"} },
		"echo":       func(r *model.Request) { r.Echo = true },
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{reply: said("Clear.", messages.StopEnd)}
			c := newCache(t, s, replycache.Config{Prefix: name})
			r := request()
			mustAsk(t, c.Wrap("p", e), r)
			change(&r)
			if got := mustAsk(t, c.Wrap("p", e), r); got.Cached {
				t.Error("got the reply to another request")
			}
		})
	}
	e := &endpoint{reply: said("Clear.", messages.StopEnd)}
	c := newCache(t, s, replycache.Config{})
	mustAsk(t, c.Wrap("p", e), request())
	if got := mustAsk(t, c.Wrap("q", e), request()); got.Cached {
		t.Error("got the reply of another endpoint")
	}
}

func TestOffUnlessAskedFor(t *testing.T) {
	s := miniredis(t)
	for name, change := range map[string]func(*model.Request){
		"not asked for":  func(r *model.Request) { r.Cache = false },
		"no temperature": func(r *model.Request) { r.Temperature = nil },
		"warm":           func(r *model.Request) { r.Temperature = new(0.1) },
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{reply: said("Clear.", messages.StopEnd)}
			c := newCache(t, s, replycache.Config{})
			r := request()
			change(&r)
			for range 2 {
				mustAsk(t, c.Wrap("p", e), r)
			}
			if diff := cmp.Diff(replycache.Stats{Up: true}, c.Stats()); diff != "" || e.calls != 2 {
				t.Errorf("got %d calls, want 2: %s", e.calls, diff)
			}
		})
	}
}

func TestOnlyWholeRepliesAreStored(t *testing.T) {
	s := miniredis(t)
	calls := said("", messages.StopEnd)
	calls.Message.Content = []messages.Block{{ToolCall: &messages.ToolCall{ID: "c", Name: "look", Arguments: "{}"}}}
	cached := said("Clear.", messages.StopEnd)
	cached.Cached = true
	for name, e := range map[string]*endpoint{
		"cut at the length":  {reply: said("Cl", messages.StopLength)},
		"filtered":           {reply: said("Cl", messages.StopContentFilter)},
		"refused":            {reply: said("No.", messages.StopRefusal)},
		"failed":             {reply: said("No.", messages.StopError)},
		"no reason":          {reply: said("No.", "")},
		"empty":              {reply: said("", messages.StopEnd)},
		"calls at an end":    {reply: calls},
		"calls without any":  {reply: said("x", messages.StopToolCalls)},
		"not text":           {reply: said("\xff", messages.StopEnd)},
		"too large":          {reply: said(strings.Repeat("x", replycache.MaxValue), messages.StopEnd)},
		"a secret":           {reply: said("it is s3cret", messages.StopEnd)},
		"of an inner cache":  {reply: cached},
		"a stream that fell": {err: &model.Error{Class: model.Truncated}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, s, replycache.Config{Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") }})
			for range 2 {
				_, err := ask(t, c.Wrap("p", e), request())
				if !errors.Is(err, e.err) {
					t.Errorf("got %v, want %v", err, e.err)
				}
			}
			if diff := cmp.Diff(replycache.Stats{Misses: 2, Up: true}, c.Stats()); diff != "" || e.calls != 2 {
				t.Errorf("got %d calls, want 2: %s", e.calls, diff)
			}
		})
	}
}

// What those who ask do not let a cache keep is not stored, also when it is spread over the parts of a reply.
func TestOnlyWhatMayBeKeptIsStored(t *testing.T) {
	parts := said("", messages.StopEnd)
	parts.Message.Content = []messages.Block{{Text: "ann@exam"}, {Text: "ple.com"}}
	for name, c := range map[string]struct {
		reply model.Reply
		keep  func(string) bool
		calls int
	}{
		"anything":      {said("ann@example.com", messages.StopEnd), nil, 1},
		"what may be":   {said("Clear.", messages.StopEnd), func(s string) bool { return !strings.Contains(s, "ann@example.com") }, 1},
		"what may not":  {said("ann@example.com", messages.StopEnd), func(s string) bool { return !strings.Contains(s, "ann@example.com") }, 2},
		"only together": {parts, func(s string) bool { return !strings.Contains(s, "ann@example.com") }, 2},
		"nothing":       {said("Clear.", messages.StopEnd), func(string) bool { return false }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{reply: c.reply}
			p := newCache(t, miniredis(t), replycache.Config{}).Wrap("p", e)
			r := request()
			r.Keep = c.keep
			for range 2 {
				mustAsk(t, p, r)
			}
			if e.calls != c.calls {
				t.Errorf("got %d calls, want %d", e.calls, c.calls)
			}
		})
	}
}

// key is that of the only reply.
func key(t *testing.T, rdb redis.UniversalClient) string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("got keys %v and %v, want one", keys, err)
	}
	return keys[0]
}

func TestReplyExpires(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		c := newCache(t, s, replycache.Config{TTL: time.Hour})
		mustAsk(t, c.Wrap("p", &endpoint{reply: said("Clear.", messages.StopEnd)}), request())
		rdb := connect(t, s)
		k := key(t, rdb)
		if !strings.HasPrefix(k, "longshore:reply:acme:") {
			t.Errorf("got key %s, want one of the tenant", k)
		}
		if got := rdb.TTL(t.Context(), k).Val(); got <= 0 || got > time.Hour {
			t.Errorf("got %s, want at most an hour", got)
		}
	})
}

func TestWhatIsInRedisIsNotTrusted(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		rdb := connect(t, s)
		e := &endpoint{reply: said("Clear.", messages.StopEnd)}
		mustAsk(t, newCache(t, s, replycache.Config{}).Wrap("p", e), request())
		k := key(t, rdb)
		good := rdb.Get(t.Context(), k).Val()
		for name, bad := range map[string]string{
			"empty":            "",
			"not JSON":         "x",
			"null":             "null",
			"a byte too much":  good + "x",
			"cut":              good[:len(good)-1],
			"another version":  strings.Replace(good, `"version":1`, `"version":2`, 1),
			"another question": strings.Replace(good, `"hash":"`, `"hash":"0`, 1),
			"unknown field":    strings.Replace(good, `"stop"`, `"usage":{},"stop"`, 1),
			"another role":     strings.Replace(good, "assistant", "system", 1),
			"another stop":     strings.Replace(good, `"end"`, `"length"`, 1),
			"no content":       strings.Replace(good, `[{"text":"Clear."}]`, "[]", 1),
			"two in a block":   strings.Replace(good, `{"text":"Clear."}`, `{"text":"Clear.","reasoning":{"family":"x"}}`, 1),
			"an image":         strings.Replace(good, `{"text":"Clear."}`, `{"text":"Clear."},{"image":{"url":"https://x"}}`, 1),
			"a tool's result":  strings.Replace(good, `{"text":"Clear."}`, `{"text":"Clear."},{"toolResult":{"callId":"x","content":[]}}`, 1),
			"large":            good + strings.Repeat(" ", replycache.MaxValue),
		} {
			t.Run(name, func(t *testing.T) {
				if bad == good {
					t.Fatal("the value is not bad")
				}
				rdb.Set(t.Context(), k, bad, time.Hour)
				c := newCache(t, s, replycache.Config{})
				if got := mustAsk(t, c.Wrap("p", e), request()); got.Cached {
					t.Errorf("got %+v, want a miss", got)
				}
				if got := c.Stats(); !got.Up || got.Misses != 1 || got.Stores != 1 || bad != "" && got.Errors != 1 {
					t.Errorf("got %+v, want up with 1 miss, 1 error and a good value again", got)
				}
			})
		}
		t.Run("another type", func(t *testing.T) {
			rdb.Del(t.Context(), k)
			rdb.RPush(t.Context(), k, "x")
			c := newCache(t, s, replycache.Config{})
			if got := mustAsk(t, c.Wrap("p", e), request()); got.Cached || !c.Stats().Up {
				t.Errorf("got %+v, want a miss", got)
			}
		})
	})
}

func TestAbsentRedisIsAMiss(t *testing.T) {
	eachServer(t, func(t *testing.T, s memorytest.Server) {
		t.Helper()
		c := newCache(t, s, replycache.Config{Probe: time.Millisecond})
		e := &endpoint{reply: said("Clear.", messages.StopEnd)}
		p := c.Wrap("p", e)
		mustAsk(t, p, request())
		s.Stop(t)
		for range 5 {
			if mustAsk(t, p, request()).Cached {
				t.Error("want a miss")
			}
		}
		if c.Stats().Up {
			t.Error("want down")
		}
		s.Start(t)
		deadline, tick := time.NewTimer(30*time.Second), time.NewTicker(time.Millisecond)
		defer deadline.Stop()
		defer tick.Stop()
		for !mustAsk(t, p, request()).Cached {
			select {
			case <-deadline.C:
				t.Fatal("no hit after Redis is back")
			case <-tick.C:
			}
		}
		if !c.Stats().Up {
			t.Error("want up")
		}
	})
}

func TestCancelledBefore(t *testing.T) {
	cause := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	e := &endpoint{}
	for _, err := range newCache(t, miniredis(t), replycache.Config{}).Wrap("p", e).Stream(ctx, request()) {
		if !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
	}
	if e.calls != 0 {
		t.Error("the provider was called")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]replycache.Config{
		"no redis": {}, "negative": {Redis: connect(t, memorytest.Server{URL: "redis://127.0.0.1:1"}), TTL: -1},
	} {
		if _, err := replycache.New(c); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	p := newCache(b, miniredis(b), replycache.Config{}).Wrap("p", &endpoint{reply: said("Clear.", messages.StopEnd)})
	r := request()
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), r) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
