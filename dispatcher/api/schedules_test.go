package api_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestSchedules(t *testing.T) {
	h := open(t)
	const body = `{"cron":"0 3 * * *","timeZone":"Europe/Berlin","task":{"input":"hi"}}`
	var applied control.ScheduleApplied
	if h.do("PUT", "/v1/schedules/nightly", body, 200, &applied, "Longshore-By", "ann"); !applied.Changed || len(applied.Next) != 3 {
		t.Errorf("%+v", applied)
	}
	var st control.ScheduleStatus
	if h.do("GET", "/v1/schedules/nightly", "", 200, &st); st.Schedule.Cron != "0 3 * * *" || st.Schedule.Overlap != control.OverlapSkip || !st.Next[0].Equal(applied.Next[0]) {
		t.Errorf("%+v", st)
	}
	h.do("PUT", "/v1/schedules/nightly?ifRevision=0", body, 409, nil)
	if h.do("POST", "/v1/schedules/nightly/pause", "", 200, &st); !st.Schedule.Paused {
		t.Errorf("%+v", st)
	}
	var list control.ScheduleList
	if h.do("GET", "/v1/schedules", "", 200, &list); len(list.Schedules) != 1 || !list.Schedules[0].Paused || list.Schedules[0].Next != nil {
		t.Errorf("%+v", list)
	}
	var submitted struct{ ID string }
	h.do("POST", "/v1/schedules/nightly/run", "", 202, &submitted)
	h.do("GET", "/v1/tasks/"+submitted.ID+"/events?types=run_finished", "", 200, nil) // it ends with the run
	st = control.ScheduleStatus{}
	if h.do("POST", "/v1/schedules/nightly/resume", "", 200, &st); st.Schedule.Paused || st.Last == nil || st.Last.Run != submitted.ID {
		t.Errorf("%+v", st)
	}
	for range 2 { // also while the run that it has made has not ended
		if h.do("POST", "/v1/schedules/nightly/run", "", 202, &submitted, "Idempotency-Key", "once"); submitted.ID != "once" {
			t.Errorf("with a key it is the run %q", submitted.ID)
		}
	}
	h.do("GET", "/v1/schedules/nightly", "", 404, nil, "Longshore-Tenant", "other")
	h.do("PUT", "/v1/schedules/other", `{"name":"nightly","every":"1h","task":{"input":"hi"}}`, 400, nil)
	h.do("DELETE", "/v1/schedules/nightly", "", 200, nil)
	for _, r := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/pause"}, {"POST", "/resume"}, {"POST", "/run"}} {
		h.do(r[0], "/v1/schedules/nightly"+r[1], "", 404, nil)
	}
	for _, path := range []string{"/v1/schedules/%3E", "/v1/schedules/a.b", "/v1/schedules/*"} {
		h.do("PUT", path, body, 400, nil)
		h.do("GET", path, "", 400, nil)
	}
	for _, bad := range []string{
		"", "{}", "[]", `{"cron":"* * *","task":{"input":"hi"}}`, `{"every":10,"task":{"input":"hi"}}`, `{"every":"1h","task":null}`, `{"every":"1h","task":{"input":""}}`,
		`{"cron":"@daily","timeZone":"Mars/Phobos","task":{"input":"hi"}}`, `{"every":"1h","task":{"input":"hi","id":"x"}}`, `{"every":"1h","tasks":[]}`,
		`{"every":"1h","task":{"input":"hi","agent":"unknown"}}`,
	} {
		h.do("PUT", "/v1/schedules/bad", bad, 400, nil)
	}
}

// A delayed task can be looked at and cancelled before it is due.
func TestDelayedTask(t *testing.T) {
	h := open(t)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	body := `{"id":"later","input":"hi","notBefore":"` + at.Format(time.RFC3339) + `"}`
	h.do("POST", "/v1/tasks", body, 202, nil)
	h.do("POST", "/v1/tasks", body, 202, nil)
	h.do("POST", "/v1/tasks", `{"id":"later","input":"hi"}`, 409, nil)
	var st control.RunStatus
	if h.do("GET", "/v1/tasks/later", "", 200, &st); st.Status != messages.StatusQueued || st.NotBefore == nil || !st.NotBefore.Equal(at) {
		t.Errorf("%+v", st)
	}
	h.do("POST", "/v1/tasks/later/cancel", "", 200, nil)
	h.do("GET", "/v1/tasks/later/events?types=run_finished", "", 200, nil) // it ends with the run
	if h.do("GET", "/v1/tasks/later", "", 200, &st); st.Status != messages.StatusCancelled {
		t.Errorf("%+v", st)
	}
	h.do("POST", "/v1/tasks", `{"input":"hi","notBefore":"2999-01-01T00:00:00Z"}`, 400, nil)
	h.do("POST", "/v1/tasks", `{"input":"hi","notBefore":"2030-01-01T00:00:00Z","deadline":"2029-01-01T00:00:00Z"}`, 400, nil)
}
