package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

func TestSteer(t *testing.T) {
	h := openCareful(t)
	h.do("POST", "/v1/tasks", `{"id":"a","agent":"careful","input":"ask me"}`, http.StatusAccepted, nil)
	h.waits("a")
	var status control.RunStatus
	for range 2 { // the same again is the same
		h.do("POST", "/v1/tasks/a/steer", `{"message":"Take the cheap one.","by":"ann","id":"x"}`, http.StatusOK, &status)
	}
	if status.Status != messages.StatusWaiting || status.Waits != queue.ParkAnswer {
		t.Errorf("it waits no more: %+v", status)
	}
	h.do("POST", "/v1/tasks/a/steer", `{"message":"And be quick."}`, http.StatusOK, nil, "Idempotency-Key", "once more")
	for name, tc := range map[string]struct {
		path, body string
		status     int
		field      string
	}{
		"nothing":         {"/v1/tasks/a/steer", `{}`, http.StatusBadRequest, "message"},
		"no body":         {"/v1/tasks/a/steer", ``, http.StatusBadRequest, "body"},
		"too much":        {"/v1/tasks/a/steer", `{"message":"` + strings.Repeat("a", control.MaxSteer+1) + `"}`, http.StatusBadRequest, "message"},
		"an odd id":       {"/v1/tasks/a/steer", `{"message":"m","id":"a.b"}`, http.StatusBadRequest, "id"},
		"an unknown run":  {"/v1/tasks/x/steer", `{"message":"m"}`, http.StatusNotFound, ""},
		"an unknown word": {"/v1/tasks/a/steer", `{"message":"m","why":"x"}`, http.StatusBadRequest, "why"},
		"another text":    {"/v1/tasks/a/steer", `{"message":"m","id":"x"}`, http.StatusConflict, ""},
	} {
		var p messages.Problem
		if h.do("POST", tc.path, tc.body, tc.status, &p); p.Field != tc.field {
			t.Errorf("%s: %+v", name, p)
		}
	}
	h.do("POST", "/v1/tasks/a/answers", `{"text":"the blue one"}`, http.StatusOK, nil)
	var told []string
	for _, e := range h.until("a", messages.EventRunFinished) {
		if e.name == messages.EventSteered {
			told = append(told, e.data)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], `"by":"ann","message":"Take the cheap one."`) {
		t.Errorf("%s", told)
	}
	h.do("POST", "/v1/tasks/a/steer", `{"message":"Too late."}`, http.StatusConflict, nil)
	h.do("POST", "/v1/tasks/a/steer", `{"message":"Take the cheap one.","id":"x"}`, http.StatusOK, nil) // it was told in time
}

// A run takes so many messages and no more.
func TestSteerIsBounded(t *testing.T) {
	h := openCareful(t)
	h.do("POST", "/v1/tasks", `{"id":"a","agent":"careful","input":"ask me"}`, http.StatusAccepted, nil)
	h.waits("a")
	for range runlog.MaxSteers {
		h.do("POST", "/v1/tasks/a/steer", `{"message":"m"}`, http.StatusOK, nil)
	}
	var p messages.Problem
	if h.do("POST", "/v1/tasks/a/steer", `{"message":"m"}`, http.StatusConflict, &p); !strings.Contains(p.Detail, "100") {
		t.Errorf("%+v", p)
	}
}
