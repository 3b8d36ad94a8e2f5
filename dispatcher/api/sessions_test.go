package api_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore-run/longshore/messages/control"
)

func TestSessions(t *testing.T) {
	h := open(t)
	var none json.RawMessage
	if h.do("GET", "/v1/sessions", "", 200, &none); string(none) != `{"sessions":[]}` {
		t.Errorf("no sessions are %s", none)
	}
	h.do("GET", "/v1/sessions/s", "", 404, nil)
	h.do("POST", "/v1/tasks?wait=30s", `{"input":"hi","session":"s","id":"r1"}`, 200, nil)
	var s control.SessionStatus
	if h.do("GET", "/v1/sessions/s", "", 200, &s); len(s.Ended) != 1 || s.Ended[0] != "r1" || s.Turn != "" {
		t.Errorf("%+v", s)
	}
	h.do("GET", "/v1/sessions/s", "", 404, nil, "Longshore-Tenant", "other")
	h.do("POST", "/v1/tasks", `{"input":"wait","session":"s","id":"r2"}`, 202, nil)
	var list control.SessionList
	for len(list.Sessions) == 0 || list.Sessions[0].Turn != "r2" { // until a worker has it
		list = control.SessionList{}
		h.do("GET", "/v1/sessions", "", 200, &list)
	}
	h.do("DELETE", "/v1/sessions/s", "", 409, nil)
	h.do("POST", "/v1/tasks/r2/cancel", "", 200, nil)
	h.do("GET", "/v1/tasks/r2/events?types=run_finished", "", 200, nil) // it ends with the run
	h.do("DELETE", "/v1/sessions/s", "", 200, &s)
	h.do("DELETE", "/v1/sessions/s", "", 404, nil)
	h.do("GET", "/v1/sessions/%3E", "", 400, nil)
}
