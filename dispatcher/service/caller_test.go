package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// A user of a tenant cannot say whose key it was: he may be believed about by, which is what he says of himself.
func TestTenantsDoNotNameTheCaller(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	m := nats.NewMsg("longshore.t.acme.schedules.put")
	m.Data = []byte(`{"schedule":{"name":"daily","cron":"@daily","task":{"input":"hi"}},"by":"mallory"}`)
	m.Header.Set(control.HeaderCaller, `{"who":"key:5Yx0bVn2QkLp (boss)","remote":"10.0.0.1"}`)
	if answer, err := nc.RequestMsg(m, 10*time.Second); err != nil || answer.Header.Get("Nats-Service-Error") != "" {
		t.Fatalf("%v %+v", err, answer)
	}
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for e, err := range c.Runs().Recent(t.Context(), "acme", time.Now().Add(-time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		var a control.Acted
		if e.Name() != control.EventActed {
			continue
		}
		if err := strict.Decode(e.Data, &a); err != nil {
			t.Fatal(err)
		}
		found = true
		if a.Who != "" || a.Remote != "" || a.By != "mallory" {
			t.Errorf("%+v", a)
		}
	}
	if !found {
		t.Error("it is not told")
	}
}

// An account may have a name that no tenant can have. It is not one that may ask for all tenants.
func TestTenantsThatCannotBe(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	for name, tenant := range map[string]string{"other letters": "m\u00fcller", "a mark": "acme+eu", "too long": strings.Repeat("a", 65)} {
		t.Run(name, func(t *testing.T) {
			answer, err := nc.Request("longshore.t."+tenant+".schedules.list", []byte(`{"tenant":"harbour"}`), 10*time.Second)
			if err != nil || answer.Header.Get("Nats-Service-Error-Code") != "403" {
				t.Errorf("%v %+v", err, answer)
			}
		})
	}
}
