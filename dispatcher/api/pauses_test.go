package api_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestPauses(t *testing.T) {
	h := open(t)
	var p control.PausedThing
	h.do("POST", "/v1/pauses", `{"kind":"tenant","name":"acme","by":"ann","reason":"too dear"}`, 200, &p)
	if p.By != "ann" || p.At.IsZero() {
		t.Errorf("%+v", p)
	}
	h.do("POST", "/v1/pauses", `{"kind":"tenant","name":"acme","by":"bob"}`, 200, &p)
	if p.By != "ann" { // it stays as it is
		t.Errorf("paused again: %+v", p)
	}
	h.do("POST", "/v1/pauses", `{"kind":"agent","name":"unknown"}`, 404, nil)
	h.do("POST", "/v1/pauses", `{"kind":"planet","name":"acme"}`, 400, nil)
	h.do("POST", "/v1/pauses", `{"kind":"tenant","name":"a.>"}`, 400, nil)
	h.do("POST", "/v1/pauses", `{"kind":"tenant","name":"acme","reason":"`+strings.Repeat("x", 2000)+`"}`, 400, nil)
	var list control.PauseList
	if h.do("GET", "/v1/pauses", "", 200, &list); len(list.Pauses) != 1 || list.Pauses[0].Name != "acme" || list.Pauses[0].Reason != "too dear" {
		t.Errorf("%+v", list)
	}
	if h.do("DELETE", "/v1/pauses/tenant/acme", "", 200, &p); p.By != "ann" {
		t.Errorf("as it was: %+v", p)
	}
	h.do("DELETE", "/v1/pauses/tenant/acme", "", 404, nil)
	h.do("DELETE", "/v1/pauses/planet/acme", "", 400, nil)
}

func TestWhy(t *testing.T) {
	h := open(t)
	h.do("GET", "/v1/tasks/unknown/why", "", 404, nil)
	h.do("POST", "/v1/tasks?wait=30s", `{"input":"hi","id":"r1"}`, 200, nil)
	var y control.Why
	if h.do("GET", "/v1/tasks/r1/why", "", 200, &y); y.Status != messages.StatusCompleted || y.Text != "It has ended: completed." {
		t.Errorf("%+v", y)
	}
}
