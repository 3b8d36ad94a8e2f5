package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestQuotas(t *testing.T) {
	h := open(t)
	const path = "/v1/quotas/tenant/acme"
	var state control.QuotaState
	header := h.do("GET", path, "", 200, &state)
	if state.Revision != 0 || state.Usage == nil || header.Get("ETag") != `"0"` {
		t.Errorf("%+v, %s", state, header)
	}
	var change control.QuotaChange
	header = h.do("PUT", path, `{"maxQueued":5,"perMinute":60,"costPerDay":1.5}`, 200, &change, "If-Match", `"0"`, "Longshore-By", "ann")
	if change.After.MaxQueued != 5 || change.Before.MaxQueued != 0 || header.Get("ETag") != `"`+strconv.FormatUint(change.Revision, 10)+`"` {
		t.Errorf("%+v, %s", change, header)
	}
	h.do("PUT", path, `{}`, 409, nil, "If-Match", `"0"`)
	h.do("PUT", path+"?ifRevision=0", `{}`, 409, nil)
	h.do("DELETE", path, "", 409, nil, "If-Match", `"0"`)
	for body, field := range map[string]string{
		`{"maxQueued":-1}`: "maxQueued", `{"weight":"1"}`: "weight", `{"tasks":1}`: "tasks", `{"costPerDay":1e300}`: "costPerDay", `nonsense`: "",
		`{"paused":{"at":"2026-01-01T00:00:00Z"}}`: "paused",
	} {
		var p messages.Problem
		h.do("PUT", path, body, 400, &p)
		if field != "" && p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for _, at := range []string{"/v1/quotas/unknown/acme", "/v1/quotas/tenant/a.b", "/v1/quotas/tenant/%3E"} {
		h.do("GET", at, "", 400, nil)
		h.do("PUT", at, "{}", 400, nil)
	}
	h.do("PUT", path, "{}", 400, nil, "If-Match", "W/x")
	var list control.QuotaList
	if h.do("GET", "/v1/quotas", "", 200, &list); len(list.Quotas) != 1 || list.Quotas[0].Quota.PerMinute != 60 {
		t.Errorf("%+v", list)
	}
	h.do("DELETE", path, "", 200, &change)
	if h.do("GET", "/v1/quotas", "", 200, &list); len(list.Quotas) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestTooManyRequests(t *testing.T) {
	h := open(t)
	h.do("PUT", "/v1/quotas/tenant/acme", `{"perMinute":1}`, 200, nil)
	for i := range 3 { // the minute may change once
		resp := h.send("POST", "/v1/tasks", `{"id":"t`+strconv.Itoa(i)+`","input":"hello"}`, "Longshore-Tenant", "acme")
		var p messages.Problem
		err := json.NewDecoder(resp.Body).Decode(&p)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusAccepted {
			continue
		}
		after, convErr := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || convErr != nil || resp.StatusCode != http.StatusTooManyRequests || p.Code != messages.CodeRateLimited || !p.Retryable ||
			p.RetryAfter != after || after < 1 || after > 60 || !strings.Contains(p.Detail, "perMinute") {
			t.Errorf("%s, %s, %+v", resp.Status, resp.Header, p)
		}
		h.do("POST", "/v1/tasks", `{"id":"t0","input":"hello"}`, 202, nil, "Longshore-Tenant", "acme") // as before
		h.do("POST", "/v1/tasks", `{"input":"hello"}`, 202, nil)                                       // of another tenant
		return
	}
	t.Error("nothing was refused")
}

func TestWorkers(t *testing.T) {
	h := open(t)
	var list control.WorkerList
	for end := time.Now().Add(patience); len(list.Workers) == 0 && time.Now().Before(end); {
		h.do("GET", "/v1/workers", "", 200, &list) // a worker that answers late is not listed
	}
	if len(list.Workers) != 1 || list.Workers[0].Slots != 8 || list.Workers[0].Version != "0.0.0" {
		t.Fatalf("%+v", list)
	}
	h.do("POST", "/v1/workers/unknown/drain", "", 404, nil)
	h.do("POST", "/v1/workers/%3E/drain", "", 404, nil)
	var w messages.WorkerStatus
	h.do("POST", "/v1/workers/"+list.Workers[0].ID+"/drain", "", 200, &w)
	if !w.Draining {
		t.Errorf("%+v", w)
	}
	for len(list.Workers) > 0 { // the test's own deadline bounds it
		h.do("GET", "/v1/workers", "", 200, &list)
	}
	h.do("POST", "/v1/tasks", `{"input":"hello"}`, 202, nil) // the dispatcher continues
}
