package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// hanging writes a body and then holds the answer back until the client is gone; it tells when that is.
func hanging(body string, gone chan<- time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
		write(w, body, 0)
		<-r.Context().Done()
		gone <- time.Now()
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	const within = 10 * time.Second
	cause := errors.New("the run was cancelled")
	for _, tt := range []struct {
		name, body string
		when       func(cancel func()) func(model.Delta) // gives what to do at a delta
	}{
		{"in the stream", events(text("a")), func(cancel func()) func(model.Delta) {
			return func(model.Delta) { cancel() }
		}},
		{"before the headers", "", func(cancel func()) func(model.Delta) {
			time.AfterFunc(20*time.Millisecond, cancel)
			return func(model.Delta) {}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gone := make(chan time.Time, 1)
			p := serve(t, hanging(tt.body, gone))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var at time.Time
			act := tt.when(func() { at = time.Now(); cancel(cause) })
			var last error
			for d, err := range p.Stream(ctx, hello()) {
				if last = err; err == nil {
					act(d)
				}
			}
			if took := time.Since(at); !errors.Is(last, cause) || took > within {
				t.Errorf("the call ended after %s with %v", took, last)
			}
			select {
			case seen := <-gone:
				if took := seen.Sub(at); took > within {
					t.Errorf("the server saw it after %s", took)
				}
			case <-time.After(10 * time.Second):
				t.Error("the server never saw it")
			}
		})
	}
}

func TestLeavingTheLoopAborts(t *testing.T) {
	gone := make(chan time.Time, 1)
	p := serve(t, hanging(events(text("a")), gone))
	for _, err := range p.Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the server never saw it")
	}
}

func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       want
	}{
		{"no headers", "", want{class: model.Timeout, detail: "no answer within 60ms"}},
		{"idle after text", events(text("a")), want{class: model.Timeout, detail: "nothing came for 250ms"}},
		{"idle within a line", "data: {\"cho", want{class: model.Timeout, detail: "nothing came for 250ms"}},
		{"idle within JSON", "{\"cho", want{class: model.Timeout, detail: "nothing came for 250ms"}},
		{"idle after the finish reason", events(text("a"), finish("stop")), want{text: "a"}},
		{"open after [DONE]", data(text("a"), finish("stop")), want{text: "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gone := make(chan time.Time, 1)
			p := serve(t, hanging(tt.body, gone), func(c *openai.Config) {
				if c.IdleTimeout = 250 * time.Millisecond; tt.body == "" {
					c.StartTimeout = 60 * time.Millisecond
				}
			})
			check(t, call(t.Context(), p, hello()), tt.want)
			<-gone
		})
	}
}

// paced gives a body in pieces, each after a wait.
type paced struct {
	pieces []string
	wait   time.Duration
}

func (p *paced) Read(b []byte) (int, error) {
	if len(p.pieces) == 0 {
		return 0, io.EOF
	}
	<-time.After(p.wait)
	n := copy(b, p.pieces[0])
	if p.pieces[0] = p.pieces[0][n:]; p.pieces[0] == "" {
		p.pieces = p.pieces[1:]
	}
	return n, nil
}

func overPaced(t *testing.T, body *paced) *openai.Provider {
	t.Helper()
	p, err := openai.New(openai.Config{APIKey: key, Model: "m", Transport: memory{http.StatusOK, body}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeepalivesKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pieces := slices.Repeat([]string{": wait\n\n"}, 100)
		began := time.Now()
		p := overPaced(t, &paced{append(pieces, data(text("a"), finish("stop"))), 59 * time.Second})
		check(t, call(t.Context(), p, hello()), want{text: "a"})
		if d := time.Since(began); d < 100*59*time.Second {
			t.Errorf("it took only %s", d)
		}
	})
}

func TestDefaultIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := overPaced(t, &paced{[]string{events(text("a")), events(text("b"))}, 61 * time.Second})
		check(t, call(t.Context(), p, hello()), want{class: model.Timeout, detail: "nothing came for 1m0s"})
	})
}

func TestASlowConsumerIsNotATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := overPaced(t, &paced{[]string{events(text("a")), events(text("b")), data(finish("stop"))}, time.Second})
		pieces := 0
		for _, err := range p.Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			pieces++
			<-time.After(10 * time.Minute)
		}
		if pieces != 3 {
			t.Errorf("%d deltas", pieces)
		}
	})
}

func TestConnectionCut(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       want
	}{
		{"in the stream", events(text("a")), want{class: model.Truncated, detail: "cut"}},
		{"within a line", "data: {\"cho", want{class: model.Truncated, detail: "cut"}},
		{"after the finish reason", events(text("a"), finish("stop")), want{text: "a"}},
		{"before the headers", "", want{class: model.Network}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				write(w, tt.body, 0)
				panic(http.ErrAbortHandler) // the server's way to cut a connection
			})
			check(t, call(t.Context(), p, hello()), tt.want)
		})
	}
}

func TestManyCallsShareConnections(t *testing.T) {
	const callers, rounds = 200, 5
	var mu sync.Mutex
	remotes := map[string]bool{}
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		remotes[r.RemoteAddr] = true
		mu.Unlock()
		write(w, data(text("a"), finish("stop"), usage), 0)
	})
	var wg sync.WaitGroup
	errs := make(chan error, callers*rounds)
	for range callers {
		wg.Go(func() {
			for range rounds {
				if o := call(t.Context(), p, hello()); o.Err != nil || o.Text != "a" {
					errs <- fmt.Errorf("%q: %w", o.Text, o.Err)
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	if len(remotes) > 2*callers { // a dial may lose the race against a connection that comes free
		t.Errorf("%d connections for %d callers", len(remotes), callers)
	}
}

// TestOneCallAfterAnotherSharesAConnection also when the end of an answer comes later than its [DONE].
func TestOneCallAfterAnotherSharesAConnection(t *testing.T) {
	remotes := map[string]bool{}
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr] = true
		write(w, data(text("a"), finish("stop")), 0)
		<-time.After(10 * time.Millisecond)
	})
	for range 5 {
		check(t, call(t.Context(), p, hello()), want{text: "a"})
	}
	if len(remotes) != 1 {
		t.Errorf("%d connections for calls that follow each other", len(remotes))
	}
}

func TestAnAnswerWithoutEndIsBounded(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		part := strings.Repeat("data: "+text(strings.Repeat("x", 1000))+"\n\n", 100)
		for r.Context().Err() == nil {
			write(w, part, 0)
		}
	}, func(c *openai.Config) { c.MaxReply = 1 << 20 })
	o := call(t.Context(), p, hello())
	check(t, o, want{class: model.ReplyTooLarge, detail: "larger than 1048576"})
	if len(o.Text) == 0 || len(o.Text) > 1<<20 {
		t.Errorf("%d bytes of text", len(o.Text))
	}
}

// Headers alone begin no answer: a server may send them at once and read the prompt after that.
func TestFirstByteHasATimeOfItsOwn(t *testing.T) {
	for name, tt := range map[string]struct{ start, idle, least time.Duration }{
		"the start":                  {300 * time.Millisecond, 10 * time.Millisecond, 250 * time.Millisecond},
		"silence, when it is longer": {200 * time.Millisecond, 300 * time.Millisecond, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			began := time.Now()
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				gone <- struct{}{}
			}, func(c *openai.Config) { c.StartTimeout, c.IdleTimeout = tt.start, tt.idle })
			check(t, call(t.Context(), p, hello()), want{class: model.Timeout, detail: "nothing came for"})
			if d := time.Since(began); d < tt.least {
				t.Errorf("given up after %s", d)
			}
			<-gone
		})
	}
}
