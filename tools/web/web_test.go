package web_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/toolstest"
	"github.com/longshore-run/longshore/tools/web"
)

func TestConformance(t *testing.T) {
	var posts atomic.Int64
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		_, _ = io.WriteString(w, "hello")
	})
	made, err := web.Tools(local(host), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, args := range []string{`{"url":%q}`, `{"url":%q,"method":"POST","body":"{}"}`} {
		toolstest.Run(t, made[i], toolstest.Case{
			Arguments: fmt.Sprintf(args, url), Effects: func() int { return int(posts.Load()) },
			Restarted: func() (tools.Tool, error) {
				again, err := web.Tools(local(host), nil)
				return again[i], err
			},
		})
	}
}

func TestFormats(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, `<html><head><title>T</title><script>evil()</script></head><body><h1>Title</h1><p>One <b>two</b> <a href="/next">three</a></p></body></html>`)
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
			_, _ = w.Write([]byte("caf\xe9"))
		case "/image":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\n\x00\x01"))
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"7"`)
			_, _ = io.WriteString(w, `{"a":1}`)
		}
	})
	set := box(t, local(host), nil)
	for _, c := range []struct {
		path, format, want string
		code               messages.Code
	}{
		{"/page", "", "# Title\n\nOne **two** [three](" + url + "/next)", ""},
		{"/page", "text", "<script>evil()</script>", ""},
		{"/page", "raw", base64.StdEncoding.EncodeToString([]byte("<html><head>"))[:12], ""},
		{"/json", "", "HTTP 200 OK\n" + url + "/json\nContent-Type: application/json\nEtag: \"7\"\n\n{\"a\":1}", ""},
		{"/latin", "", "\n\ncafé", ""},
		{"/image", "", "is 10 bytes of image/png and no text", messages.CodeToolFailed},
		{"/image", "raw", "\n\niVBORw0KGgoAAQ==", ""},
		{"/empty", "", "HTTP 204 No Content\n" + url + "/empty\n\n(no body)", ""},
		{"/page", "pdf", "must be one of", messages.CodeInvalidInput},
	} {
		args := map[string]any{"url": url + c.path}
		if c.format != "" {
			args["format"] = c.format
		}
		expect(t, call(t, set, "http_get", tools.Call{}, args), c.code, c.want)
	}
	head := call(t, set, "http_get", tools.Call{}, map[string]any{"url": url + "/json", "method": "HEAD"})
	expect(t, head, "", "Content-Length: 7\nEtag: \"7\"\n\n(no body)")
	if meta, err := json.Marshal(head.Meta); err != nil || string(meta) != `{"bytes":0,"contentType":"application/json","redirects":0,"status":200,"truncated":false}` {
		t.Errorf("meta %s, %v", meta, err)
	}
}

// A page that is hard to parse is converted in time, or said to be impossible.
func TestDeepPages(t *testing.T) {
	for name, piece := range map[string]string{"nested": "<div>", "lists": "<ul><li>", "tables": "<table><tr><td>", "links": "<a href=x>", "bold": "<b>x", "brackets": "[[[]](", "comments": "<!--", "attributes": "<p a=b c=d "} {
		url, host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, strings.Repeat(piece, (1<<19)/len(piece)))
		})
		began := time.Now()
		r := get(t, box(t, local(host), nil), url)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v: %.100s", name, took, text(r))
		} else {
			t.Logf("%s: %v, %.60q", name, took, text(r))
		}
	}
}

// A change is sent once, with the key of the call, as what it is; a redirect makes of it what browsers do.
func TestRequests(t *testing.T) {
	type seen struct{ method, path, kind, key, body string }
	got := make(chan seen, 9)
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"), string(body)}
		switch r.URL.Path {
		case "/303":
			http.Redirect(w, r, "/done", http.StatusSeeOther)
		case "/307":
			http.Redirect(w, r, "/done", http.StatusTemporaryRedirect)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		}
	})
	cfg := local(host)
	set := box(t, cfg, nil)
	for _, c := range []struct {
		args map[string]any
		want []seen
	}{
		{map[string]any{"method": "POST", "url": url + "/a", "body": `{"a":1}`}, []seen{{"POST", "/a", "application/json", "run.1.call", `{"a":1}`}}},
		{map[string]any{"method": "PUT", "url": url + "/a", "body": "text"}, []seen{{"PUT", "/a", "text/plain; charset=utf-8", "run.1.call", "text"}}},
		{map[string]any{"method": "POST", "url": url + "/a", "body": "a=b", "headers": map[string]string{"content-type": "application/x-www-form-urlencoded"}}, []seen{{"POST", "/a", "application/x-www-form-urlencoded", "run.1.call", "a=b"}}},
		{map[string]any{"method": "DELETE", "url": url + "/a"}, []seen{{"DELETE", "/a", "", "run.1.call", ""}}},
		{map[string]any{"method": "GET", "url": url + "/a"}, []seen{{"GET", "/a", "", "", ""}}},
		{map[string]any{"method": "POST", "url": url + "/303", "body": "{}"}, []seen{{"POST", "/303", "application/json", "run.1.call", "{}"}, {"GET", "/done", "", "", ""}}},
		{map[string]any{"method": "POST", "url": url + "/307", "body": "{}"}, []seen{{"POST", "/307", "application/json", "run.1.call", "{}"}, {"POST", "/done", "application/json", "run.1.call", "{}"}}},
		{map[string]any{"method": "POST", "url": url + "/304"}, []seen{{"POST", "/304", "", "run.1.call", ""}}},
	} {
		expect(t, call(t, set, "http_request", tools.Call{}, c.args), "", "HTTP ")
		var all []seen
		for len(got) > 0 {
			all = append(all, <-got)
		}
		if fmt.Sprintf("%q", all) != fmt.Sprintf("%q", c.want) {
			t.Errorf("the server got %q, want %q", all, c.want)
		}
	}
	expect(t, call(t, set, "http_request", tools.Call{}, map[string]any{"method": "post", "url": url}), messages.CodeInvalidInput, "must be in capitals")
	expect(t, call(t, set, "http_get", tools.Call{}, map[string]any{"method": "POST", "url": url}), messages.CodeInvalidInput, "must be one of")

	// A change that a redirect leads on is judged again, and not made when the run is another worker's by now.
	lost := errors.New("lost")
	args, _ := json.Marshal(map[string]any{"method": "POST", "url": url + "/307"})
	if _, err := set.Call(t.Context(), "http_request", tools.Call{Arguments: args, Key: "k", Begin: func() error { return lost }}); !errors.Is(err, lost) || len(got) != 1 {
		t.Errorf("error %v after %d requests", err, len(got))
	}
	<-got
	odd := call(t, set, "http_request", tools.Call{Key: "run.1.Ü\n"}, map[string]any{"method": "POST", "url": url + "/a"})
	if s := <-got; odd.IsError || len(s.key) != 64 {
		t.Errorf("key %q: %s", s.key, text(odd))
	}
}

// What is made again is what may be: reads, what HTTP calls idempotent, and what the server did not get or take.
// A request that must not be sent twice is not sent again for what comes of the requests that its answer leads to.
func TestNoChangeIsRepeatedForARedirect(t *testing.T) {
	for _, c := range []struct {
		method         string
		redirect, then int // then 0: the connection breaks without an answer
		again          bool
		code           messages.Code
	}{
		{"POST", 303, 503, false, messages.CodeToolFailed},
		{"POST", 302, 429, false, messages.CodeToolFailed},
		{"POST", 301, 0, false, messages.CodeToolUnknownOutcome},
		{"POST", 307, 503, false, messages.CodeToolFailed},
		{"PUT", 307, 503, true, messages.CodeToolFailed},
		{"GET", 302, 503, true, messages.CodeToolFailed},
	} {
		t.Run(fmt.Sprint(c.method, c.redirect, c.then), func(t *testing.T) {
			t.Parallel()
			var first atomic.Int64
			url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path != "/made":
					first.Add(1)
					w.Header().Set("Location", "/made")
					w.WriteHeader(c.redirect)
				case c.then == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(c.then)
				}
			})
			two, want := 2, int64(1)
			if c.again {
				want = 3
			}
			r := call(t, box(t, local(host), nil), "http_request", tools.Call{Retries: &two}, map[string]any{"url": url + "/make", "method": c.method})
			if first.Load() != want || r.Code != c.code || strings.Contains(text(r), "check before you repeat it") == c.again {
				t.Errorf("%d attempts, code %s: %s", first.Load(), r.Code, text(r))
			}
		})
	}
}

func TestRetries(t *testing.T) {
	for _, c := range []struct {
		method   string
		status   int // 0: the connection breaks without an answer
		attempts int64
		code     messages.Code
	}{
		{"GET", 503, 3, messages.CodeToolFailed},
		{"GET", 429, 3, messages.CodeToolFailed},
		{"GET", 0, 3, messages.CodeToolFailed},
		{"GET", 500, 1, messages.CodeToolFailed},
		{"GET", 404, 1, messages.CodeToolFailed},
		{"PUT", 502, 3, messages.CodeToolFailed},
		{"DELETE", 0, 3, messages.CodeToolUnknownOutcome},
		{"POST", 503, 1, messages.CodeToolFailed},
		{"POST", 504, 1, messages.CodeToolFailed},
		{"POST", 429, 3, messages.CodeToolFailed},
		{"POST", 0, 1, messages.CodeToolUnknownOutcome},
	} {
		t.Run(fmt.Sprint(c.method, c.status), func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			url, host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				n.Add(1)
				if c.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(c.status)
			})
			tool, two := "http_request", 2
			if c.method == "GET" {
				tool = "http_get"
			}
			r := call(t, box(t, local(host), nil), tool, tools.Call{Retries: &two}, map[string]any{"url": url, "method": c.method})
			if n.Load() != c.attempts || r.Code != c.code {
				t.Errorf("%d attempts, code %s: %s", n.Load(), r.Code, text(r))
			}
		})
	}
}

// A server that says when to come again is asked then.
func TestRetryAfter(t *testing.T) {
	var n atomic.Int64
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" {
			w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		} else if n.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	set, one := box(t, local(host), nil), 1
	began := time.Now()
	expect(t, call(t, set, "http_get", tools.Call{Retries: &one}, map[string]any{"url": url}), "", "HTTP 200")
	if took := time.Since(began); took < time.Second {
		t.Errorf("took %v", took)
	}
	began = time.Now()
	expect(t, call(t, set, "http_get", tools.Call{Retries: &one}, map[string]any{"url": url + "/never"}), messages.CodeToolFailed, "HTTP 503")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// A server that is away is asked again by every tool: nothing was sent.
func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	_ = l.Close()
	one := 1
	r := call(t, box(t, local(host), nil), "http_request", tools.Call{Retries: &one}, map[string]any{"url": "http://" + host, "method": "POST"})
	expect(t, r, messages.CodeToolFailed, "no connection: connect: connection refused")
	if fmt.Sprintf("%s", r.Meta["attempts"]) != "2" {
		t.Errorf("meta %s", r.Meta)
	}
	expect(t, get(t, box(t, web.Config{Hosts: []string{"nowhere.example"}}, nil), "https://nowhere.example"), messages.CodeToolFailed, "cannot be resolved")
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	expect(t, get(t, box(t, local(strings.TrimPrefix(s.URL, "https://")), nil), s.URL), messages.CodeToolFailed, "the certificate of the host is not valid")
}

// A server that shows what it was sent does not show a credential to the model.
func TestEchoedCredential(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "you sent "+r.Header.Get("Authorization"))
	})
	set := box(t, local(host), store(t, host))
	for format, want := range map[string]string{"text": "you sent Bearer [redacted]", "raw": base64.StdEncoding.EncodeToString([]byte("you sent Bearer [redacted]"))} {
		r := call(t, set, "http_get", tools.Call{}, map[string]any{"url": url, "credential": "tracker", "format": format})
		expect(t, r, "", want)
	}
}

// Calls run in parallel.
func TestConcurrency(t *testing.T) {
	all := make(chan struct{})
	var n atomic.Int64
	url, host := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 8 {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
	})
	set := box(t, local(host), nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { expect(t, get(t, set, url), "", "HTTP 200") })
	}
	wg.Wait()
}

func TestConfigIsChecked(t *testing.T) {
	for part, field := range map[string]string{
		`{}`: "hosts", `{"hosts":["https://a/b"]}`: "hosts", `{"hosts":["a"],"private":["*"]}`: "private", `{"hosts":["a"],"plainHttp":["a b"]}`: "plainHttp",
		`{"hosts":["a"],"methods":[]}`: "methods", `{"hosts":["a"],"methods":["get"]}`: "methods[0]", `{"hosts":["a"],"methods":["GET","CONNECT"]}`: "methods[1]",
		`{"hosts":["a"],"timeout":"1ms"}`: "timeout", `{"hosts":["a"],"timeout":"1h"}`: "timeout", `{"hosts":["a"],"maxBody":-1}`: "maxBody", `{"hosts":["a"],"userAgent":"a\nb"}`: "userAgent", `{"hosts":["a"],"colour":"red"}`: "colour",
	} {
		c, err := web.ParseConfig([]byte(part))
		if err == nil {
			_, err = web.Tools(c, nil)
		}
		fe, ok := errors.AsType[*messages.FieldError](err)
		if !ok || fe.Field != field {
			t.Errorf("%s: %v, want field %s", part, err, field)
		}
	}
}
