package service_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

type denial struct {
	Tenant string
	Data   control.AuthDenied
}

// A client that asks on the subject of one tenant about another, or names no inbox, is refused, and that is reported. A request
// that fails for another reason is no such attempt.
func TestDenialsAreTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	told := make(chan denial, 10)
	defer serve(t, o.nc, service.Config{Denied: func(tenant string, d control.AuthDenied) { told <- denial{tenant, d} }})()
	ask := func(subject, body string) {
		if _, err := o.nc.Request(subject, []byte(body), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	ask("longshore.t.acme.status", `{"id":"unknown"}`)
	ask("longshore.t.acme.status", `{"id":"r","tenant":"harbour"}`)
	if err := o.nc.PublishMsg(&nats.Msg{Subject: "longshore.status", Reply: "runs.harbour.r.log", Data: []byte(`{"id":"r"}`)}); err != nil {
		t.Fatal(err)
	}
	want := []denial{
		{"acme", control.AuthDenied{Code: messages.CodeForbidden, Reason: `this subject is for requests of tenant "acme" alone`, Operation: "longshore.t.acme.status"}},
		{"default", control.AuthDenied{Code: messages.CodeForbidden, Reason: "the reply subject is not an inbox", Operation: "longshore.status"}},
	}
	for _, w := range want {
		select {
		case got := <-told:
			if diff := cmp.Diff(w, got); diff != "" {
				t.Error(diff)
			}
		case <-time.After(patience):
			t.Fatalf("not reported: %v", w)
		}
	}
}
