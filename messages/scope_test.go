package messages_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestBindTenant(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want string        // the bound body
		code messages.Code // of a problem
		err  bool          // a field error
	}{
		"without one":       {body: `{"id":"a"}`, want: `{"id":"a","tenant":"acme"}`},
		"empty":             {body: `{"id":"a","tenant":""}`, want: `{"id":"a","tenant":"acme"}`},
		"its own":           {body: `{"tenant":"acme","id":"a"}`, want: `{"id":"a","tenant":"acme"}`},
		"another":           {body: `{"tenant":"other"}`, code: messages.CodeForbidden},
		"another, escaped":  {body: `{"\u0074enant":"other"}`, code: messages.CodeForbidden},
		"twice":             {body: `{"tenant":"acme","tenant":"other"}`, err: true},
		"twice, escaped":    {body: `{"tenant":"acme","\u0074enant":"other"}`, err: true},
		"in other case":     {body: `{"Tenant":"other"}`, want: `{"Tenant":"other","tenant":"acme"}`}, // which Decode refuses
		"no text":           {body: `{"tenant":["acme"]}`, err: true},
		"null":              {body: `{"tenant":null}`, err: true},
		"no object":         {body: `[]`, err: true},
		"nothing":           {body: ``, err: true},
		"null as a whole":   {body: `null`, err: true},
		"half of an object": {body: `{"tenant":"acme"`, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := control.BindTenant([]byte(tc.body), "acme")
			var (
				p     *messages.Problem
				field *messages.FieldError
			)
			switch {
			case tc.code != "":
				if !errors.As(err, &p) || p.Code != tc.code {
					t.Errorf("%v, want %s", err, tc.code)
				}
			case tc.err:
				if !errors.As(err, &field) {
					t.Errorf("%s, %v, want a field error", got, err)
				}
			case err != nil || string(got) != tc.want:
				t.Errorf("%s, %v, want %s", got, err, tc.want)
			}
		})
	}
	var req control.RunRequest
	if err := strict.Decode([]byte(`{"Tenant":"other","tenant":"acme"}`), &req); err == nil {
		t.Error("a field in other case is read")
	}
}

func TestTenantSubjects(t *testing.T) {
	if s := control.TenantSubject("acme", control.SubjectStatus); s != "longshore.t.acme.status" {
		t.Error(s)
	}
	for subject, want := range map[string]string{
		"longshore.t.acme.status": "acme", "longshore.t.acme.agents.get": "acme", "longshore.status": "", "longshore.t.acme": "",
		"longshore.t.a*b.status": "", "longshore.tacme.status": "",
	} {
		if got, _ := control.TenantOf(subject); got != want {
			if _, ok := control.TenantOf(subject); ok || want != "" {
				t.Errorf("%s: %q, want %q", subject, got, want)
			}
		}
	}
}
