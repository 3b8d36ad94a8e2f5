package credential_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/credential"
)

func given(value string) func(credential.Config) (string, error) {
	return func(credential.Config) (string, error) { return value, nil }
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestAdd(t *testing.T) {
	empty := ""
	for name, c := range map[string]struct {
		config         credential.Config
		url            string
		header, wanted string
		err            error
	}{
		"bearer":                 {credential.Config{Env: "K", Hosts: []string{"api.example.com"}}, "https://api.example.com/x", "Authorization", "Bearer s3cret-s3cret", nil},
		"a header of its own":    {credential.Config{Env: "K", Hosts: []string{"api.example.com"}, Header: "X-Key"}, "https://api.example.com/x", "X-Key", "s3cret-s3cret", nil},
		"without a prefix":       {credential.Config{Env: "K", Hosts: []string{"api.example.com"}, Prefix: &empty}, "https://api.example.com/x", "Authorization", "s3cret-s3cret", nil},
		"below a domain":         {credential.Config{Env: "K", Hosts: []string{"*.example.com"}}, "https://api.example.com/x", "Authorization", "Bearer s3cret-s3cret", nil},
		"the domain itself":      {credential.Config{Env: "K", Hosts: []string{"*.example.com"}}, "https://example.com/x", "", "", credential.ErrHost},
		"another host":           {credential.Config{Env: "K", Hosts: []string{"api.example.com"}}, "https://api.example.com.evil.net/x", "", "", credential.ErrHost},
		"a host in the userinfo": {credential.Config{Env: "K", Hosts: []string{"api.example.com"}}, "https://api.example.com@evil.net/x", "", "", credential.ErrHost},
		"another port":           {credential.Config{Env: "K", Hosts: []string{"api.example.com:443"}}, "https://api.example.com:8443/x", "", "", credential.ErrHost},
		"in clear text":          {credential.Config{Env: "K", Hosts: []string{"api.example.com"}}, "http://api.example.com/x", "", "", credential.ErrHost},
		"to the machine itself":  {credential.Config{Env: "K", Hosts: []string{"127.0.0.1"}}, "http://127.0.0.1:8080/x", "Authorization", "Bearer s3cret-s3cret", nil},
		"to a local name":        {credential.Config{Env: "K", Hosts: []string{"localhost"}}, "http://localhost:8080/x", "", "", credential.ErrHost},
		"not for HTTP":           {credential.Config{Env: "K"}, "https://api.example.com/x", "", "", credential.ErrHost},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := credential.New(map[string]credential.Config{"it": c.config}, given("s3cret-s3cret"))
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, c.url)
			if err := s.Add("it", req); !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			} else if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells the secret: %v", err)
			}
			if c.err != nil {
				if len(req.Header) > 0 {
					t.Errorf("headers %v", req.Header)
				}
				return
			}
			if got := req.Header.Get(c.header); got != c.wanted {
				t.Errorf("%s: %q, want %q", c.header, got, c.wanted)
			}
		})
	}
}

func TestUnknownCredential(t *testing.T) {
	var none *credential.Store
	if err := none.Add("x", request(t, "https://example.com")); !errors.Is(err, credential.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	if _, err := none.Secret("x"); !errors.Is(err, credential.ErrUnknown) || none.Names() != nil || none.Values() != nil {
		t.Errorf("error %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	bad := "\r\nX: y"
	for name, c := range map[string]struct {
		config credential.Config
		value  string
		field  string
	}{
		"no secret":            {credential.Config{}, "v", "credentials.it.env"},
		"two secrets":          {credential.Config{Env: "A", File: "b"}, "v", "credentials.it.file"},
		"a header of nonsense": {credential.Config{Env: "A", Header: "a b", Hosts: []string{"h"}}, "v", "credentials.it.header"},
		"a prefix of lines":    {credential.Config{Env: "A", Prefix: &bad, Hosts: []string{"h"}}, "v", "credentials.it.prefix"},
		"a header for nothing": {credential.Config{Env: "A", Header: "X"}, "v", "credentials.it.hosts"},
		"a host of nonsense":   {credential.Config{Env: "A", Hosts: []string{"https://h/x"}}, "v", "credentials.it.hosts"},
		"a secret of lines":    {credential.Config{Env: "A", Hosts: []string{"h"}}, "a\nb", "credentials.it"},
	} {
		_, err := credential.New(map[string]credential.Config{"it": c.config}, given(c.value))
		fe, ok := errors.AsType[*messages.FieldError](err)
		if !ok || fe.Field != c.field {
			t.Errorf("%s: %v, want field %s", name, err, c.field)
		}
	}
}

// The credential goes to the host that the operator named with it, and nowhere else.
func ExampleStore_Add() {
	store, err := credential.New(map[string]credential.Config{
		"tracker": {Env: "TRACKER_TOKEN", Hosts: []string{"api.tracker.example"}},
	}, given("t0ken-t0ken"))
	if err != nil {
		panic(err)
	}
	for _, url := range []string{"https://api.tracker.example/issues", "https://evil.example/"} {
		req, _ := http.NewRequest(http.MethodGet, url, nil)
		fmt.Println(store.Add("tracker", req), req.Header.Get("Authorization") != "")
	}
	// Output:
	// <nil> true
	// "tracker": the credential is not for this host: evil.example:443 false
}
