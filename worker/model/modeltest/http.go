package modeltest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// Dialect is a provider that streams over HTTP, and how servers of its protocol speak.
type Dialect struct {
	// Open makes the provider of an endpoint. Name is the model of requests that name none.
	Open func(t *testing.T, endpoint httpstream.Endpoint, name string) model.Provider

	Path     string // that a base URL ends in
	Variable string // what the names of its environment variables begin with
	Begin    string // what a stream begins with, before its first text; may be empty
	Text     func(s string) string
	End      string // what completes a reply
	Ping     string // what keeps an answer alive
	Half     string // the beginning of an event
}

const key = "sk-test-api03-0123456789abcdef"

// whole is an answer that says "a".
func (d *Dialect) whole() string { return d.Begin + d.Text("a") + d.End }

// serve opens the provider of a server.
func (d *Dialect) serve(t *testing.T, h http.HandlerFunc, edit ...func(*httpstream.Endpoint)) model.Provider {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := httpstream.Endpoint{BaseURL: s.URL + d.Path, APIKey: key}
	for _, f := range edit {
		f(&c)
	}
	return d.Open(t, c, Model)
}

// write sends a body at once.
func write(w http.ResponseWriter, body string) {
	if body == "" {
		return
	}
	if _, err := io.WriteString(w, body); err == nil {
		_ = http.NewResponseController(w).Flush()
	}
}

// hang writes a body and then holds the answer back until the client is gone.
func hang(status int, body string, gone chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
		if status != 0 {
			w.WriteHeader(status)
			_ = http.NewResponseController(w).Flush()
		}
		write(w, body)
		<-r.Context().Done()
		gone <- struct{}{}
	}
}

func await(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(deadline):
		t.Error("the server never saw the end")
	}
}

// end is what a call must come to: a reply of the text, or an error of the class after it.
type end struct {
	text   string
	class  model.Class
	detail string // a part
}

// check makes a call, which must end in time.
func (e end) check(t *testing.T, p model.Provider, within time.Duration) {
	t.Helper()
	_ = e.of(t, p, within)
}

// failed checks a call that fails at once, and returns its error.
func (e end) failed(t *testing.T, p model.Provider) *model.Error {
	t.Helper()
	return e.of(t, p, deadline)
}

func (e end) of(t *testing.T, p model.Provider, within time.Duration) *model.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	h, broken := listen(ctx, p, Request())
	switch {
	case broken != "":
		t.Fatal(broken)
	case e.class == "" && len(h.errs) > 0:
		t.Fatal(h.errs[0])
	case h.text != e.text:
		t.Errorf("streamed %.100q, want %q", h.text, e.text)
	}
	if e.class == "" {
		if got := h.replies[0].Message.Text(); got != e.text {
			t.Errorf("replied %q, want %q", got, e.text)
		}
		return nil
	}
	if len(h.errs) == 0 {
		t.Fatalf("a reply instead of an error: %+v", h.replies[0])
	}
	failed, ok := errors.AsType[*model.Error](h.errs[0])
	if !ok || failed.Class != e.class || !strings.Contains(failed.Detail, e.detail) {
		t.Fatalf("got %v, want %s: …%s…", h.errs[0], e.class, e.detail)
	}
	return failed
}

// RunHTTP checks what is the same of all providers over HTTP, whatever they speak: when they give up, what they abort, what
// bounds them, and what they tell of it.
func RunHTTP(t *testing.T, d Dialect) {
	t.Helper()
	t.Run("cancel", d.cancel)
	t.Run("leaving the loop aborts", d.leave)
	t.Run("timeouts", d.timeouts)
	t.Run("the first byte has a time of its own", d.firstByte)
	t.Run("pings keep alive", d.pings)
	t.Run("default idle timeout", d.silence)
	t.Run("a slow consumer is not a timeout", d.slowConsumer)
	t.Run("connection cut", d.cut)
	t.Run("calls share a connection", d.share)
	t.Run("an answer without end", d.endless)
	t.Run("retry after", d.retryAfter)
	t.Run("nothing is retried", d.once)
	t.Run("redirects are not followed", d.redirect)
	t.Run("the key never shows", d.secret)
	t.Run("a dead endpoint", func(t *testing.T) {
		p := d.serve(t, nil, func(c *httpstream.Endpoint) { c.BaseURL = "http://127.0.0.1:1" + d.Path })
		e := end{class: model.Network}.failed(t, p)
		if !e.Retryable() || !strings.Contains(e.Hint, d.Variable+"_BASE_URL") {
			t.Errorf("got %v", e)
		}
	})
	t.Run("no model", func(t *testing.T) {
		r := Request()
		r.Model = ""
		h, _ := listen(t.Context(), d.Open(t, httpstream.Endpoint{APIKey: key}, ""), r)
		e, ok := errors.AsType[*model.Error](errors.Join(h.errs...))
		if !ok || e.Class != model.InvalidRequest || !strings.Contains(e.Hint, d.Variable+"_MODEL") {
			t.Errorf("got %+v", h)
		}
	})
}

func (d *Dialect) cancel(t *testing.T) {
	cause := errors.New("the run was cancelled")
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"before the headers":    {0, ""},
		"before the first byte": {200, ""},
		"before the text":       {200, ": hello\n\n"},
		"in the stream":         {200, d.Begin + d.Text("a")},
		"within an event":       {200, d.Begin + d.Half},
		"within JSON":           {200, "{"},
		"within an error":       {500, "{"},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			p := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
				time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
				hang(tt.status, tt.body, gone)(w, r)
			})
			h, broken := listen(ctx, p, Request())
			if broken != "" || len(h.errs) != 1 || !errors.Is(h.errs[0], cause) {
				t.Errorf("%s: got %+v, want the cause", broken, h)
			}
			await(t, gone)
		})
	}
}

func (d *Dialect) leave(t *testing.T) {
	gone := make(chan struct{}, 1)
	for _, err := range d.serve(t, hang(200, d.Begin+d.Text("a"), gone)).Stream(t.Context(), Request()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	await(t, gone)
}

func (d *Dialect) timeouts(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   end
	}{
		"no headers":           {0, "", end{class: model.Timeout, detail: "no answer within 60ms"}},
		"idle after text":      {200, d.Begin + d.Text("a"), end{"a", model.Timeout, "nothing came for 250ms"}},
		"idle within an event": {200, d.Begin + d.Text("a") + d.Half, end{"a", model.Timeout, "nothing came for 250ms"}},
		"idle within JSON":     {200, `{"ty`, end{class: model.Timeout, detail: "nothing came for 250ms"}},
		"idle within an error": {503, `{"error":`, end{class: model.Overloaded}},
		"open after the end":   {200, d.whole(), end{text: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			p := d.serve(t, hang(tt.status, tt.body, gone), func(c *httpstream.Endpoint) {
				if c.IdleTimeout = 250 * time.Millisecond; tt.status == 0 {
					c.StartTimeout = 60 * time.Millisecond
				}
			})
			tt.want.check(t, p, deadline)
			await(t, gone)
		})
	}
}

// Headers alone begin no answer: a server may send them at once and read the prompt after that.
func (d *Dialect) firstByte(t *testing.T) {
	for name, tt := range map[string]struct{ start, idle time.Duration }{
		"the start":                  {300 * time.Millisecond, 10 * time.Millisecond},
		"silence, when it is longer": {200 * time.Millisecond, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{}, 1)
			began := time.Now()
			p := d.serve(t, hang(200, "", gone), func(c *httpstream.Endpoint) { c.StartTimeout, c.IdleTimeout = tt.start, tt.idle })
			end{class: model.Timeout, detail: "nothing came for"}.check(t, p, deadline)
			if took := time.Since(began); took < 250*time.Millisecond {
				t.Errorf("given up after %s", took)
			}
			await(t, gone)
		})
	}
}

// paced answers with a body in pieces, each after a wait, without a network.
type paced struct {
	pieces []string
	wait   time.Duration
}

func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(p), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// Read implements io.Reader.
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

func (d *Dialect) over(t *testing.T, wait time.Duration, pieces ...string) model.Provider {
	t.Helper()
	return d.Open(t, httpstream.Endpoint{APIKey: key, Transport: &paced{pieces, wait}}, Model)
}

func (d *Dialect) pings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		pieces := append(slices.Repeat([]string{": wait\n\n", d.Ping}, 50), d.whole())
		end{text: "a"}.check(t, d.over(t, 59*time.Second, pieces...), 24*time.Hour)
		if took := time.Since(began); took < 100*59*time.Second {
			t.Errorf("it took only %s", took)
		}
	})
}

func (d *Dialect) silence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := d.over(t, 61*time.Second, d.Begin+d.Text("a"), d.Text("b"))
		end{"ab", model.Timeout, "nothing came for 1m0s"}.check(t, p, 24*time.Hour)
	})
}

func (d *Dialect) slowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deltas := 0
		for _, err := range d.over(t, time.Second, d.Begin+d.Text("a"), d.Text("b"), d.End).Stream(t.Context(), Request()) {
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

func (d *Dialect) cut(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want end
	}{
		"before the headers": {"", end{class: model.Network}},
		"in the stream":      {d.Begin + d.Text("a"), end{"a", model.Truncated, "cut"}},
		"within an event":    {d.Begin + d.Text("a") + d.Half, end{"a", model.Truncated, "cut"}},
		"within JSON":        {`{"ty`, end{class: model.Truncated, detail: "cut"}},
		"after the end":      {d.whole(), end{text: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := d.serve(t, func(w http.ResponseWriter, _ *http.Request) {
				write(w, tt.body)
				panic(http.ErrAbortHandler) // the server's way to cut a connection
			})
			tt.want.check(t, p, deadline)
		})
	}
}

// share has answers whose end comes later than the end of the reply.
func (d *Dialect) share(t *testing.T) {
	remotes := map[string]bool{}
	p := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr] = true
		write(w, d.whole())
		<-time.After(5 * time.Millisecond)
	})
	for range 5 {
		end{text: "a"}.check(t, p, deadline)
	}
	if len(remotes) > 2 { // one, unless the machine is busy
		t.Errorf("%d connections for calls that follow each other", len(remotes))
	}
}

func (d *Dialect) endless(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for name, tt := range map[string]struct{ part, detail string }{
		"text":      {d.Text(long), "the reply is larger than 1048576"},
		"comments":  {": " + long + "\n", "the reply is larger than 1048576"},
		"pings":     {strings.Repeat(d.Ping, 200), "the reply is larger than 1048576"},
		"one line":  {long, "a line of the answer is larger than 524288"},
		"one event": {"data: " + long + "\n", "an event of the answer is larger than 524288"},
	} {
		t.Run(name, func(t *testing.T) {
			p := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
				for write(w, d.Begin); r.Context().Err() == nil; {
					write(w, tt.part)
				}
			}, func(c *httpstream.Endpoint) { c.MaxReply, c.MaxLine = 1<<20, 1<<19 })
			h, broken := listen(t.Context(), p, Request())
			e, ok := errors.AsType[*model.Error](errors.Join(h.errs...))
			if broken != "" || !ok || e.Class != model.ReplyTooLarge || !strings.Contains(e.Detail, tt.detail) {
				t.Errorf("%s: got %v", broken, h.errs)
			}
			if len(h.text) > 1<<20 || (h.text != "") != (name == "text") {
				t.Errorf("%d bytes of text", len(h.text))
			}
		})
	}
}

func (d *Dialect) retryAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		header, value string
		want, slack   time.Duration
	}{
		"seconds":        {"Retry-After", "20", 20 * time.Second, 0},
		"broken seconds": {"Retry-After", "1.5", 1500 * time.Millisecond, 0},
		"milliseconds":   {"Retry-After-Ms", "350", 350 * time.Millisecond, 0},
		"date":           {"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Hour, time.Minute},
		"past date":      {"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		"negative":       {"Retry-After", "-5", 0, 0},
		"huge":           {"Retry-After", "1e300", 24 * time.Hour, 0},
		"not a number":   {"Retry-After", "NaN", 0, 0},
		"a word":         {"Retry-After", "soon", 0, 0},
		"absent":         {"X-Other", "5", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := end{class: model.RateLimited}.failed(t, d.serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(tt.header, tt.value)
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			if off := tt.want - e.RetryAfter; off < 0 || off > tt.slack {
				t.Errorf("got %s, want %s", e.RetryAfter, tt.want)
			}
		})
	}
}

func (d *Dialect) once(t *testing.T) {
	calls := 0
	_ = end{class: model.Overloaded}.failed(t, d.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("X-Should-Retry", "true")
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	if calls != 1 {
		t.Errorf("%d requests for one call", calls)
	}
}

func (d *Dialect) redirect(t *testing.T) {
	followed := make(chan http.Header, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { followed <- r.Header }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		p := d.serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/v1/x", status) })
		e := end{class: model.InvalidRequest, detail: other.URL}.failed(t, p)
		if e.Status != status || !strings.Contains(e.Hint, d.Variable+"_BASE_URL") || strings.Contains(e.Detail, "/v1/x") {
			t.Errorf("%d: got %v", status, e)
		}
	}
	select {
	case got := <-followed:
		t.Errorf("the other host was asked, with %v", got)
	default:
	}
}

func (d *Dialect) secret(t *testing.T) {
	other := "sk-" + strings.Repeat("other", 5)
	echo := "your key " + key + ", its start " + key[:12] + ", Bearer abc.def and " + other
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"text":              {500, echo},
		"JSON":              {401, `{"error":{"message":"` + echo + `","type":"` + key + `","code":"` + key + `"},"request_id":"` + key + `"}`},
		"the type alone":    {401, `{"error":{"type":"` + key + `"}}`},
		"a page's title":    {502, "<title>" + echo + "</title>"},
		"cut by the length": {400, strings.Repeat("x", 490) + key},
		"no stream":         {200, echo},
		"a key in JSON":     {200, `{"` + key + `":1}`},
		"malformed":         {200, "data: {" + key + "\n\n"},
		"an event's name":   {200, d.Begin + "event: " + key + "\ndata: {]\n\n"},
		"in the stream":     {200, d.Begin + "event: error\n" + `data: {"type":"error","error":{"message":"` + echo + `"}}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := d.serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Request-Id", "id-"+key)
				w.WriteHeader(tt.status)
				write(w, tt.body)
			})
			h, broken := listen(t.Context(), p, Request())
			e, ok := errors.AsType[*model.Error](errors.Join(h.errs...))
			if broken != "" || !ok {
				t.Fatalf("%s: got %+v, want an error", broken, h)
			}
			for _, secret := range []string{key[:8], "abc.def", other} {
				if s := e.Error() + e.RequestID; strings.Contains(s, secret) {
					t.Errorf("%q is in %q", secret, s)
				}
			}
		})
	}
}
