package anthropic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
)

// patience bounds waits for what comes at once on a machine that is not busy.
const patience = 20 * time.Second

// hanging writes a body and then holds the answer back until the client is gone; it tells when that is.
func hanging(body string, gone chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
		write(w, body, 0)
		<-r.Context().Done()
		gone <- struct{}{}
	}
}

func wait(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the server never saw the end")
	}
}

var begun = events(start, open(0, "text", `"text":""`), text(0, "a"))

func TestCancelReachesTheServer(t *testing.T) {
	cause := errors.New("the run was cancelled")
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"in the stream":          {begun, 200},
		"within an event":        {begun + "data: {", 200},
		"within the error":       {"{", 500},
		"before the first event": {": hello\n\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
				hanging(tt.body, gone)(w, r)
			})
			if o := call(ctx, p, hello()); !errors.Is(o.Err, cause) || o.Reply != nil {
				t.Errorf("got %+v, want the cause", o)
			}
			wait(t, gone)
		})
	}
}

func TestCancelBeforeTheHeaders(t *testing.T) {
	cause := errors.New("enough")
	gone := make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	p := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(cause)
		<-r.Context().Done()
		gone <- struct{}{}
	})
	if o := call(ctx, p, hello()); !errors.Is(o.Err, cause) {
		t.Errorf("got %v, want the cause", o.Err)
	}
	wait(t, gone)
}

func TestLeavingTheLoopAborts(t *testing.T) {
	gone := make(chan struct{}, 1)
	p := serve(t, hanging(begun, gone))
	for _, err := range p.Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	wait(t, gone)
}

func TestTimeouts(t *testing.T) {
	for name, tt := range map[string]struct {
		body   string
		status int
		want   want
	}{
		"no headers":         {"", 0, want{class: model.Timeout, detail: "no answer within 60ms"}},
		"idle after text":    {begun, 200, want{text: "a", class: model.Timeout, detail: "nothing came for 100ms"}},
		"idle within a line": {begun + "data: {\"ty", 200, want{class: model.Timeout, detail: "nothing came for 100ms"}},
		"idle within JSON":   {"{\"ty", 200, want{class: model.Timeout, detail: "nothing came for 100ms"}},
		"idle after the reason": {
			events(start, open(0, "text", `"text":"a"`), because("end_turn")), 200,
			want{text: "a", class: model.Timeout, detail: "nothing came"},
		},
		"open after message_stop": {said("a"), 200, want{text: "a"}},
		"idle within an error":    {`{"error":`, 529, want{class: model.Overloaded}},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.status != 0 {
					w.WriteHeader(tt.status)
				}
				hanging(tt.body, gone)(w, r)
			}, func(c *anthropic.Config) {
				if c.IdleTimeout = 100 * time.Millisecond; tt.body == "" {
					c.StartTimeout = 60 * time.Millisecond
				}
			})
			check(t, call(t.Context(), p, hello()), tt.want)
			wait(t, gone)
		})
	}
}

// memory answers with a body, without a network.
type memory struct {
	status int
	body   io.Reader
}

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: m.status, Header: http.Header{}, Body: io.NopCloser(m.body), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
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

func overPaced(t *testing.T, body *paced) *anthropic.Provider {
	t.Helper()
	p, err := anthropic.New(anthropic.Config{APIKey: key, Model: "m", Transport: memory{http.StatusOK, body}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPingsKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := slices.Repeat([]string{events(`{"type":"ping"}`)}, 100)
		check(t, call(t.Context(), overPaced(t, &paced{append(pings, said("a")), 59 * time.Second}), hello()), want{text: "a"})
	})
}

func TestDefaultIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		o := call(ctx, overPaced(t, &paced{[]string{begun, "\n"}, 61 * time.Second}), hello())
		if e, ok := errors.AsType[*model.Error](o.Err); !ok || e.Class != model.Truncated && e.Class != model.Timeout {
			t.Errorf("got %+v", o)
		}
	})
}

func TestASlowConsumerIsNotATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := overPaced(t, &paced{[]string{begun, events(text(0, "b")), events(because("end_turn"), stop)}, time.Second})
		deltas := 0
		for _, err := range p.Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			deltas++
			<-time.After(10 * time.Minute)
		}
		if deltas != 3 {
			t.Errorf("%d deltas", deltas)
		}
	})
}

func TestConnectionCut(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want want
	}{
		"in the stream":      {begun, want{text: "a", class: model.Truncated, detail: "cut"}},
		"within a line":      {begun + "data: {\"ty", want{class: model.Truncated, detail: "cut"}},
		"within JSON":        {`{"type":"mess`, want{class: model.Truncated, detail: "cut"}},
		"after message_stop": {said("a"), want{text: "a"}},
		"before the headers": {"", want{class: model.Network}},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				write(w, tt.body, 0)
				panic(http.ErrAbortHandler) // the server's way to cut a connection
			})
			check(t, call(t.Context(), p, hello()), tt.want)
		})
	}
}

// TestOneCallAfterAnotherSharesAConnection also when the end of an answer comes later than its message_stop.
func TestOneCallAfterAnotherSharesAConnection(t *testing.T) {
	remotes := map[string]bool{}
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr] = true
		write(w, said("a"), 0)
		<-time.After(5 * time.Millisecond)
	})
	for range 5 {
		check(t, call(t.Context(), p, hello()), want{text: "a"})
	}
	if len(remotes) > 2 { // one, unless the machine is busy
		t.Errorf("%d connections for calls that follow each other", len(remotes))
	}
}

func TestAnAnswerWithoutEndIsBounded(t *testing.T) {
	for name, part := range map[string]string{
		"text":      events(text(0, strings.Repeat("x", 10_000))),
		"arguments": events(input(1, strings.Repeat("x", 10_000))),
		"comments":  ": " + strings.Repeat("x", 10_000) + "\n",
		"pings":     strings.Repeat(events(`{"type":"ping"}`), 200),
		"one line":  strings.Repeat("x", 10_000),
		"one event": "data: " + strings.Repeat("x", 10_000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				write(w, begun+events(tool(1, "x", "f")), 0)
				for r.Context().Err() == nil {
					write(w, part, 0)
				}
			}, func(c *anthropic.Config) { c.MaxReply, c.MaxLine = 1<<20, 1<<19 })
			check(t, call(t.Context(), p, hello()), want{class: model.ReplyTooLarge, detail: "is larger than"})
		})
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
			}, func(c *anthropic.Config) { c.StartTimeout, c.IdleTimeout = tt.start, tt.idle })
			check(t, call(t.Context(), p, hello()), want{class: model.Timeout, detail: "nothing came for"})
			if d := time.Since(began); d < tt.least {
				t.Errorf("given up after %s", d)
			}
			<-gone
		})
	}
}
