package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Cookies seals what the cookie of a browser holds, so that the browser's files do not hold a key of the fleet. Safe for concurrent use.
type Cookies interface {
	Seal(ctx context.Context, plain []byte) ([]byte, error)
	// Open undoes Seal. An error says that the cookie is not one of this fleet, or no longer.
	Open(ctx context.Context, sealed []byte) ([]byte, error)
}

const (
	// SessionCookie is the name of the cookie that stands for a token in browsers.
	SessionCookie = "longshore_session"
	// How long a browser stays signed in.
	sessionAge = 12 * time.Hour
	// Browsers keep no larger cookie, its name and attributes included.
	maxCookie = 3800
)

// session is what the cookie holds. The token is checked anew at each request, so a revoked key ends its sessions with it.
type session struct {
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

// token is that of a request: of the header Authorization, or else of the cookie of a browser that has signed in. A browser sends its
// cookie with whatever it asks for, so a request that changes something must come from a page of this origin.
func (s *Access) token(r *http.Request) (string, error) {
	token, err := bearer(r)
	if token != "" || err != nil || s.Cookies == nil {
		return token, err
	}
	c, _ := r.Cookie(SessionCookie)
	if c == nil {
		return "", nil
	}
	if s.origins.Check(r) != nil {
		return "", forbidden("this comes from a web page of another origin")
	}
	return s.signedIn(r.Context(), c.Value, time.Now())
}

// signedIn is the token of a cookie.
func (s *Access) signedIn(ctx context.Context, cookie string, now time.Time) (string, error) {
	over := unauthenticated("the session has ended: sign in again")
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return "", over
	}
	plain, err := s.Cookies.Open(ctx, sealed)
	if err != nil {
		return "", over
	}
	var in session
	if err := json.Unmarshal(plain, &in); err != nil || !now.Before(in.Until) {
		return "", over
	}
	return in.Token, nil
}

// serveSessions serves what only browsers need: to exchange a token for a cookie, and to drop it.
func (a *API) serveSessions() {
	a.mux.Handle("POST /console/sign-in", a.serve(operation{id: "signIn", needs: control.Read, status: http.StatusOK, answer: signIn}))
	a.mux.HandleFunc("POST /console/sign-out", func(w http.ResponseWriter, r *http.Request) {
		if a.origins.Check(r) != nil {
			writeProblem(w, forbidden("this comes from a web page of another origin"))
			return
		}
		http.SetCookie(w, cookieFor("", -1))
		w.WriteHeader(http.StatusNoContent)
	})
}

// signIn exchanges the token of the header for a cookie.
func signIn(ctx context.Context, q *query) (any, error) {
	s := q.api.cfg.Access
	if s == nil {
		return caller(ctx, q)
	}
	token, err := bearer(q.r)
	switch {
	case err != nil:
		return nil, err
	case token == "":
		return nil, unauthenticated("signing in needs an API key or a JWT: Authorization: Bearer …")
	case !mayKeepCookies(q.r):
		return nil, problemf(http.StatusBadRequest, messages.CodeInvalidInput,
			"browsers keep no cookie of this address: open the console over HTTPS, or on this machine")
	case s.Cookies == nil:
		return nil, problemf(http.StatusNotFound, messages.CodeNotFound, "the console is off here")
	}
	plain, err := json.Marshal(session{token, time.Now().Add(sessionAge)})
	if err != nil {
		return nil, err
	}
	sealed, err := s.Cookies.Seal(ctx, plain)
	if err != nil {
		return nil, err
	}
	value := base64.RawURLEncoding.EncodeToString(sealed)
	if len(value) > maxCookie {
		return nil, &messages.FieldError{Field: "Authorization", Reason: "the token is too long for a cookie: sign in with an API key"}
	}
	reply, err := caller(ctx, q)
	header := http.Header{"Set-Cookie": {cookieFor(value, int(sessionAge.Seconds())).String()}}
	return &replyOf{header: header, body: reply}, err
}

// cookieFor is the cookie of a session. No script reads it, and no other site has it sent. Browsers send it over TLS, and to this machine.
func cookieFor(value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: SessionCookie, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// mayKeepCookies reports whether a browser keeps the cookie of a session: it came over TLS, or from the machine that it runs on.
func mayKeepCookies(r *http.Request) bool {
	host, _ := hostOf(r.Host)
	ip, err := netip.ParseAddr(host)
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" || host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Caller is who makes a request, and what the caller may do.
type Caller struct {
	Authentication bool                 `json:"authentication"` // false: every caller may do everything
	Kind           auth.Kind            `json:"kind,omitempty"` // key or jwt
	ID             string               `json:"id,omitempty"`
	Name           string               `json:"name,omitempty"`
	Tenant         string               `json:"tenant"` // or *: all tenants
	Roles          []control.AccessRole `json:"roles"`
	Permissions    []control.Permission `json:"permissions"`
	Version        string               `json:"version"` // of the dispatcher that answers
}

func getCallerOperation() operation {
	return operation{
		method: "GET", path: "/v1/caller", id: "getCaller", needs: control.Read, tag: "keys", summary: "Get who makes this request, and what it may do",
		text:  "The key or the subject of the JWT, its tenant, roles and permissions. Without authentication every caller has all permissions.",
		reply: Caller{}, answer: caller,
	}
}

// caller says who makes a request.
func caller(_ context.Context, q *query) (any, error) {
	c := Caller{Tenant: control.AllTenants, Roles: []control.AccessRole{}, Permissions: []control.Permission{}, Version: q.api.cfg.Version}
	if q.who != nil {
		c.Authentication, c.Kind, c.ID, c.Name, c.Tenant, c.Roles = true, q.who.Kind, q.who.ID, q.who.Name, q.who.Tenant, q.who.Roles
	}
	for _, p := range control.Permissions() {
		if q.who == nil || q.who.May(p) {
			c.Permissions = append(c.Permissions, p)
		}
	}
	return c, nil
}
