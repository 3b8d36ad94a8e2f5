package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/tools/credential"
)

const patience = time.Minute

// An issuer that does not answer holds up only the calls that need its token, each for its own time, and no answer of the server that
// is told meanwhile. The call that asks may end: another one asks again.
func TestSlowIssuer(t *testing.T) {
	asked, answer := make(chan struct{}, 8), make(chan struct{})
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // without which the end of the client is not seen
		asked <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"t0ken-t0ken","token_type":"Bearer","expires_in":3600}`))
	}))
	t.Cleanup(issuer.Close)
	secrets, err := credential.New(map[string]credential.Config{"client": {Env: "X", Hosts: []string{strings.TrimPrefix(issuer.URL, "http://")}}},
		func(credential.Config) (string, error) { return "s3cret-s3cret", nil })
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAuthorizer(&Server{URL: "http://127.0.0.1:1", OAuth: &OAuth{TokenURL: issuer.URL, ClientID: "c", Credential: "client"}}, secrets)
	if err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		token string
		err   error
	}
	want := func(ctx context.Context) <-chan outcome {
		out := make(chan outcome, 1)
		go func() {
			token, err := a.current(ctx, false)
			out <- outcome{token, err}
		}()
		return out
	}
	get := func(what string, out <-chan outcome) outcome {
		t.Helper()
		select {
		case o := <-out:
			return o
		case <-time.After(patience):
			t.Fatalf("%s still waits", what)
			return outcome{}
		}
	}
	first, end := context.WithCancel(t.Context())
	one := want(first)
	<-asked

	redacted := make(chan string, 1)
	go func() { redacted <- string(a.redact([]byte("s3cret-s3cret"))) }()
	select {
	case text := <-redacted:
		if strings.Contains(text, "s3cret") {
			t.Errorf("told %s", text)
		}
	case <-time.After(tokenTimeout / 2):
		t.Fatal("the answers of the server wait for the issuer")
	}
	second, endSecond := context.WithCancel(t.Context())
	two, three := want(second), want(t.Context())
	endSecond()
	if o := get("a call that was cancelled", two); !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
	end()
	if o := get("the call that asked", one); !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
	<-asked // by the third call
	close(answer)
	if o := get("the call after it", three); o.err != nil || o.token != "t0ken-t0ken" {
		t.Errorf("%+v", o)
	}
	if token, err := a.current(t.Context(), false); err != nil || token != "t0ken-t0ken" || len(asked) != 0 {
		t.Errorf("%s %v, asked %d times more", token, err, len(asked))
	}
}
