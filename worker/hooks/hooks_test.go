package hooks_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/hooks"
	"github.com/longshore-run/longshore/worker/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, f http.HandlerFunc) (s *httptest.Server, host string) {
	t.Helper()
	s = httptest.NewServer(f)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, u.Host
}

func client(t *testing.T, cfg hooks.Config) *hooks.Client {
	t.Helper()
	c, err := hooks.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func call(t *testing.T, c *hooks.Client, h messages.Hook) (messages.HookAnswer, error) {
	t.Helper()
	f, err := c.Hook(h)
	if err != nil {
		return messages.HookAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return f(ctx, messages.HookCall{ID: "t.r.1.pre_tool.c\n1", On: h.On, Tenant: "t", Run: "r", Tool: &messages.ToolCall{ID: "c\n1", Name: "x"}})
}

func TestRequest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	var body []byte
	var got *http.Request
	s, host := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		got = r
	})
	c := client(t, hooks.Config{Hosts: []string{host}, Secret: "s3cret-of-hooks", Now: func() time.Time { return now }})
	answer, err := call(t, c, messages.Hook{On: messages.HookPreTool, URL: s.URL + "/a?b=c", Headers: map[string]string{"X-Team": "core"}})
	if err != nil || answer.Denies() {
		t.Fatalf("%+v, %v", answer, err)
	}
	var told messages.HookCall
	if err := json.Unmarshal(body, &told); err != nil || told.Run != "r" || told.Tool.Name != "x" {
		t.Errorf("body %s: %v", body, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Team": "core", hooks.HeaderID: "t.r.1.pre_tool.c_1", hooks.HeaderPoint: "pre_tool",
		hooks.HeaderSignature: hooks.Sign("s3cret-of-hooks", now, body), "User-Agent": "longshore",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	signature := got.Header.Get(hooks.HeaderSignature)
	for name, tt := range map[string]struct {
		secret, signature string
		body              []byte
		now               time.Time
		want              bool
	}{
		"good":         {"s3cret-of-hooks", signature, body, now.Add(time.Minute), true},
		"old":          {"s3cret-of-hooks", signature, body, now.Add(time.Hour), false},
		"other body":   {"s3cret-of-hooks", signature, body[1:], now, false},
		"other secret": {"other", signature, body, now, false},
		"none":         {"s3cret-of-hooks", "", body, now, false},
		"no time":      {"s3cret-of-hooks", "t=x,v1=00", body, now, false},
	} {
		if ok := hooks.Verify(tt.secret, tt.signature, tt.body, tt.now, 5*time.Minute); ok != tt.want {
			t.Errorf("%s: verified %t", name, ok)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		on     messages.HookPoint
		denied string
		err    string
	}{
		"nothing":        {status: 204, on: messages.HookPreTool},
		"space":          {status: 200, body: " \n", on: messages.HookPreTool},
		"allow":          {status: 200, body: `{"decision":"allow"}`, on: messages.HookPreTool},
		"deny":           {status: 200, body: `{"decision":"deny","reason":"no"}`, on: messages.HookPreTool, denied: "no"},
		"deny a task":    {status: 201, body: `{"decision":"deny"}`, on: messages.HookPreTask, denied: "-"},
		"maybe":          {status: 200, body: `{"decision":"maybe"}`, on: messages.HookPreTool, err: "decision: must be allow or deny"},
		"unknown field":  {status: 200, body: `{"verdict":"deny"}`, on: messages.HookPreTool, err: "verdict"},
		"not JSON":       {status: 200, body: `<html>`, on: messages.HookPreTool, err: "the answer is none"},
		"large":          {status: 200, body: strings.Repeat(" ", 65<<10), on: messages.HookPreTool, err: "larger than 65536 bytes"},
		"who is told":    {status: 200, body: `<html>`, on: messages.HookPostTool},
		"server error":   {status: 500, body: `{"decision":"allow"}`, on: messages.HookPreTool, err: "answered 500"},
		"redirect":       {status: 307, on: messages.HookPreTool, err: "answered 307"},
		"redirect, told": {status: 302, on: messages.HookPostTool, err: "answered 302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			s, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				n++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			got, err := call(t, client(t, hooks.Config{Hosts: []string{host}}), messages.Hook{On: tt.on, URL: s.URL})
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want %q", err, tt.err)
			case got.Denies() != (tt.denied != ""), tt.denied == "no" && got.Reason != "no":
				t.Errorf("answer %+v", got)
			}
			if n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestHostsAreTheOperators(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hosts []string
		url   string
		want  string // part of the error; empty: none
	}{
		"nothing listed":    {nil, "https://hooks.example.com/", "HTTP hooks are off"},
		"spaces listed":     {[]string{" "}, "https://hooks.example.com/", "HTTP hooks are off"},
		"listed":            {[]string{"other.example.com", " Hooks.Example.com"}, "https://HOOKS.example.com/a", ""},
		"with a dot":        {[]string{"hooks.example.com"}, "https://hooks.example.com./a", ""},
		"any port":          {[]string{"hooks.example.com"}, "http://hooks.example.com:8080/a", ""},
		"this port":         {[]string{"hooks.example.com:443"}, "https://hooks.example.com/a", ""},
		"another port":      {[]string{"hooks.example.com:443"}, "http://hooks.example.com/a", "hooks.example.com:80 is not one"},
		"another host":      {[]string{"hooks.example.com"}, "https://hooks.example.com.evil.net/", "is not one that the operator listed"},
		"a part of it":      {[]string{"example.com"}, "https://hooks.example.com/", "is not one that the operator listed"},
		"an address":        {[]string{"10.1.2.3"}, "https://10.1.2.3:9/", ""},
		"six":               {[]string{"[::1]:80", "fd00::1"}, "http://[fd00:0::1]/", ""},
		"mapped":            {[]string{"10.1.2.3"}, "http://[::ffff:10.1.2.3]/", ""},
		"user in the front": {[]string{"hooks.example.com"}, "https://hooks.example.com@evil.net/", "is not one that the operator listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, hooks.Config{Hosts: tt.hosts}).Hook(messages.Hook{URL: tt.url})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	for _, bad := range []string{"*.*.example.com", "https://a", "a/b", "a b", "u@a", "fe80::1%eth0"} {
		if _, err := hooks.New(hooks.Config{Hosts: []string{bad}}); err == nil {
			t.Errorf("%q was taken for a host", bad)
		}
	}
}

// A listed name that leads to a private address is not dialled; a listed address is.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 9)
	s, host := serve(t, func(http.ResponseWriter, *http.Request) { reached <- struct{}{} })
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	byName := "http://localhost:" + port
	for name, tt := range map[string]struct {
		cfg  hooks.Config
		url  string
		want string
	}{
		"a name":           {hooks.Config{Hosts: []string{"localhost"}}, byName, "is not public"},
		"a listed address": {hooks.Config{Hosts: []string{"127.0.0.1"}}, s.URL, ""},
		"a listed port":    {hooks.Config{Hosts: []string{"localhost", "127.0.0.1:" + port}}, byName, ""},
		"another port":     {hooks.Config{Hosts: []string{"localhost", "127.0.0.1:1"}}, byName, "is not public"},
		"all allowed":      {hooks.Config{Hosts: []string{"localhost"}, AllowPrivate: true}, byName, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, client(t, tt.cfg), messages.Hook{On: messages.HookPostTool, URL: tt.url + "/?key=hidden"})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error shows the query: %v", err)
			}
			if n := len(reached); (n == 1) != (tt.want == "") {
				t.Errorf("reached %d times", n)
			}
			for len(reached) > 0 {
				<-reached
			}
		})
	}
}

// A whole run: the refusal of a hook is the tool's answer.
func TestARunWithAnHTTPHook(t *testing.T) {
	t.Parallel()
	s, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var c messages.HookCall
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || c.On != messages.HookPreTask {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `{"decision":"deny","reason":"we are closed"}`)
	})
	c := client(t, hooks.Config{Hosts: []string{host}})
	run := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{
			Model:     agenttest.Replies(),
			Agent:     messages.Definition{Hooks: []messages.Hook{{On: messages.HookPreTask, URL: s.URL}, {On: messages.HookOnError, URL: s.URL + "/log?key=hidden"}}},
			AgentHook: func(h messages.Hook) (runner.HookFunc, error) { return c.Hook(h) },
		},
	}, "Hello")
	run.Want(t, "hook on_error failed", "failed: policy")
	if got, want := run.Result.Error.Message, "Refused by a hook: we are closed"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if strings.Contains(run.JSON(), "hidden") || !strings.Contains(run.JSON(), "answered 400") {
		t.Errorf("events\n%s", run.JSON())
	}
}
