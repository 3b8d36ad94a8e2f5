package api_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/messages/control"
)

// signIn returns the cookie that a key is exchanged for.
func (g *guarded) signIn(key []string) *http.Cookie {
	g.t.Helper()
	resp := g.send("POST", "/console/sign-in", "", key...)
	_ = resp.Body.Close()
	for _, c := range resp.Cookies() {
		if c.Name == api.SessionCookie {
			return c
		}
	}
	g.t.Fatalf("signing in gives no cookie: %s", resp.Status)
	return nil
}

func cookie(c *http.Cookie, more ...string) []string {
	return append([]string{"Cookie", c.Name + "=" + c.Value}, more...)
}

// A browser works with a cookie from which the key cannot be read.
func TestSignIn(t *testing.T) {
	g := openGuarded(t)
	key := g.key("acme", control.RoleSubmitter)
	c := g.signIn(key)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || !c.Secure || c.MaxAge < 3600 {
		t.Errorf("the cookie is %v", c)
	}
	if token := strings.TrimPrefix(key[1], "Bearer "); strings.Contains(c.Value, token) || strings.Contains(c.Value, strings.Split(token, "_")[1]) {
		t.Error("the key can be read in the cookie")
	}
	var who api.Caller
	g.do("GET", "/v1/caller", "", http.StatusOK, &who, cookie(c)...)
	if !who.Authentication || who.Tenant != "acme" || !slices.Equal(who.Roles, []control.AccessRole{control.RoleSubmitter}) ||
		!slices.Equal(who.Permissions, []control.Permission{control.Read, control.Submit}) {
		t.Errorf("the caller is %+v", who)
	}
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi"}`, http.StatusOK, nil, cookie(c, "Sec-Fetch-Site", "same-origin")...)
	var task struct{ Result struct{ Success bool } }
	g.do("GET", "/v1/tasks/r", "", http.StatusOK, &task, cookie(c)...)
	if !task.Result.Success {
		t.Errorf("the run is %+v", task)
	}
	for proto, status := range map[string]int{"http": http.StatusBadRequest, "https": http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/console/sign-in", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "longshore.example.com"
		req.Header.Set("X-Forwarded-Proto", proto)
		req.Header.Set("Authorization", key[1])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("by a name, over %s: %s", proto, resp.Status)
		}
	}
	resp := g.send("POST", "/console/sign-out", "", cookie(c, "Sec-Fetch-Site", "same-origin")...)
	_ = resp.Body.Close()
	if cs := resp.Cookies(); resp.StatusCode != http.StatusNoContent || len(cs) != 1 || cs[0].Value != "" || cs[0].MaxAge >= 0 {
		t.Errorf("signing out: %s %v", resp.Status, cs)
	}
}

// A cookie that is not one of ours is no key, and one of ours is none for the page of another site.
func TestCookiesThatDoNotCount(t *testing.T) {
	g := openGuarded(t)
	key := g.key("acme", control.RoleSubmitter)
	c := g.signIn(key)
	changed := func(value string) *http.Cookie { return &http.Cookie{Name: c.Name, Value: value} }
	middle := len(c.Value) / 2
	flipped := byte('A')
	if c.Value[middle] == flipped {
		flipped = 'B'
	}
	task := `{"input":"hi"}`
	for name, tc := range map[string]struct {
		method, path, body string
		header             []string
		status             int
	}{
		"nothing":              {"GET", "/v1/caller", "", cookie(changed("")), 401},
		"a changed one":        {"GET", "/v1/caller", "", cookie(changed(c.Value[:middle] + string(flipped) + c.Value[middle+1:])), 401},
		"a cut one":            {"GET", "/v1/caller", "", cookie(changed(c.Value[:middle])), 401},
		"no base64":            {"GET", "/v1/caller", "", cookie(changed("%%%")), 401},
		"in the clear":         {"GET", "/v1/caller", "", cookie(changed("eyJ0b2tlbiI6IngiLCJ1bnRpbCI6IjIwOTktMDEtMDFUMDA6MDA6MDBaIn0")), 401},
		"from another site":    {"POST", "/v1/tasks", task, cookie(c, "Sec-Fetch-Site", "cross-site"), 403},
		"from a sibling":       {"POST", "/v1/tasks", task, cookie(c, "Sec-Fetch-Site", "same-site"), 403},
		"from another origin":  {"POST", "/v1/tasks", task, cookie(c, "Origin", "https://evil.example"), 403},
		"signed out by others": {"POST", "/console/sign-out", "", cookie(c, "Sec-Fetch-Site", "cross-site"), 403},
		"signing in by cookie": {"POST", "/console/sign-in", "", cookie(c), 401},
		"a wrong header wins":  {"GET", "/v1/caller", "", cookie(c, "Authorization", "Bearer lsk_aaaaaaaaaaaa_bbbbbbbbbbbb"), 401},
		"read from elsewhere":  {"GET", "/v1/caller", "", cookie(c, "Sec-Fetch-Site", "none"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, g.dev, g.url}
			h.do(tc.method, tc.path, tc.body, tc.status, nil, tc.header...)
		})
	}
}

// A session ends with its key: what it follows ends, and it can ask no more.
func TestARevokedKeyEndsItsSession(t *testing.T) {
	g := openGuarded(t)
	key := g.key("acme", control.RoleSubmitter)
	c := g.signIn(key)
	g.do("POST", "/v1/tasks", `{"id":"r","input":"wait"}`, http.StatusAccepted, nil, cookie(c, "Sec-Fetch-Site", "same-origin")...)
	resp := g.send("GET", "/v1/tasks/r/logs?follow=true", "", cookie(c)...)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	id, _, _ := strings.Cut(strings.TrimPrefix(key[1], "Bearer lsk_"), "_")
	if _, err := g.client.Keys().Revoke(t.Context(), id, "test"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("what the session follows goes on without its key")
	}
	g.do("GET", "/v1/caller", "", http.StatusUnauthorized, nil, cookie(c)...)
}

// Without authentication every caller may do everything, and signing in changes nothing.
func TestCallerWithoutAuthentication(t *testing.T) {
	h := open(t)
	var who api.Caller
	h.do("GET", "/v1/caller", "", http.StatusOK, &who)
	if who.Authentication || who.Tenant != control.AllTenants || !slices.Equal(who.Permissions, control.Permissions()) {
		t.Errorf("the caller is %+v", who)
	}
	resp := h.send("POST", "/console/sign-in", "")
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 0 {
		t.Errorf("%s %v", resp.Status, resp.Cookies())
	}
}
