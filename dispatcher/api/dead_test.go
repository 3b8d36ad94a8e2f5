package api_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// publish sends a message past all checks.
func (h *hall) publish(subject, body string) {
	h.t.Helper()
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		h.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request(subject, []byte(body), patience); err != nil {
		h.t.Fatal(err)
	}
}

// letters waits until so many dead letters fit a query.
func (h *hall) letters(query string, n int) (list control.DeadList) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		list = control.DeadList{}
		h.do("GET", "/v1/dead-letters"+query, "", 200, &list)
		switch {
		case len(list.Letters) == n:
			return list
		case time.Now().After(end):
			h.t.Fatalf("%d dead letters, want %d: %+v", len(list.Letters), n, list)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	h := open(t)
	h.letters("", 0)
	h.publish("tasks.normal.default.bad", `{"input":"hi","agent":"unknown"}`)
	h.publish("tasks.normal.default.worse", `{"input":`)
	h.publish("tasks.urgent.default.worst", `{"input":"hi"}`) // names no run
	h.letters("", 2)
	bad := h.letters("?code=unknown_agent&agent=unknown&kind=run", 1).Letters[0]
	if bad.Run != "bad" {
		t.Errorf("%+v", bad)
	}
	path := fmt.Sprintf("/v1/dead-letters/%d", bad.Seq)
	var l control.DeadLetter
	if h.do("GET", path, "", 200, &l); string(l.Task) != `{"input":"hi","agent":"unknown"}` {
		t.Errorf("%+v", l)
	}
	h.do("GET", path, "", 404, nil, "Longshore-Tenant", "other")
	h.do("GET", path, "", 400, nil, "Longshore-Tenant", "_")
	h.do("GET", path+"?unaddressed=true", "", 404, nil)
	h.do("GET", "/v1/dead-letters/0", "", 400, nil)
	h.do("GET", "/v1/dead-letters/x", "", 400, nil)
	h.do("GET", "/v1/dead-letters?since=now", "", 400, nil)
	h.do("GET", "/v1/dead-letters?kind=x", "", 400, nil)
	h.do("GET", "/v1/dead-letters?limit=101", "", 400, nil)
	h.do("POST", path+"/redrive", "", 400, nil) // still unknown
	h.do("POST", path+"/redrive", `{"input":1}`, 400, nil)
	h.do("POST", path+"/redrive", `{"input":"hi"}`, 404, nil, "Longshore-Tenant", "other")
	var done control.DeadRedriven
	h.do("POST", path+"/redrive", `{"id":"bad","input":"hi"}`, 200, &done)
	h.do("POST", path+"/redrive", `{"input":"hi"}`, 404, nil)
	h.do("GET", "/v1/tasks/"+done.ID+"/events?types=run_finished", "", 200, nil) // it ends with the run
	var r messages.AgentResult
	if h.do("GET", "/v1/tasks/"+done.ID+"/result", "", 200, &r); !r.Success {
		t.Errorf("%+v", r)
	}

	var out control.DeadBulk
	if h.do("POST", "/v1/dead-letters:redrive", "", 200, &out); len(out.Failed) != 1 || out.Failed[0].Error.Field == "" {
		t.Errorf("%+v", out)
	}
	h.do("POST", "/v1/dead-letters:purge", "", 400, nil)
	out = control.DeadBulk{}
	if h.do("POST", "/v1/dead-letters:purge?confirm=true&code="+url.QueryEscape("invalid_input"), "", 200, &out); len(out.Purged) != 1 {
		t.Errorf("%+v", out)
	}
	h.letters("", 0)
	worst := h.letters("?unaddressed=true", 1).Letters[0]
	if worst.Kind != control.DeadMessage || worst.Tenant != "" {
		t.Errorf("%+v", worst)
	}
	h.do("DELETE", fmt.Sprintf("/v1/dead-letters/%d", worst.Seq), "", 404, nil)
	h.do("DELETE", fmt.Sprintf("/v1/dead-letters/%d?unaddressed=true", worst.Seq), "", 200, nil)
	h.letters("?unaddressed=true", 0)
}
