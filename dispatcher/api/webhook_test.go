package api_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// A whole fleet tells of a run, of one that was cancelled, and of a batch.
func TestWebhooks(t *testing.T) {
	came := make(chan messages.Event, 9)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e messages.Event
		if err := strict.Decode(body, &e); err != nil || r.Header.Get("webhook-signature") == "" {
			t.Errorf("%v: %s", err, body)
		}
		came <- e
	}))
	defer s.Close()
	play, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}, Serving: settings.Serving{Webhooks: settings.Webhooks{WebhookSecret: "a secret of enough characters", WebhookHosts: []string{"127.0.0.1"}}}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	}()
	h := &hall{t, dev, "http://" + dev.API}
	next := func() messages.Event {
		t.Helper()
		select {
		case e := <-came:
			return e
		case <-time.After(patience):
			t.Fatal("no webhook came")
			return messages.Event{}
		}
	}
	hook := `"webhook":{"url":"` + s.URL + `/?key=hidden"}`
	h.do("POST", "/v1/tasks", `{"input":"hi","id":"r1",`+hook+`}`, 202, nil)
	e := next()
	var d messages.RunFinished
	if err := json.Unmarshal(e.Data, &d); err != nil || e.Subject != "r1" || !d.Result.Success || d.Result.Result != "hello" {
		t.Errorf("%+v %s", e, e.Data)
	}
	var told struct {
		Webhook control.WebhookState `json:"webhook"`
	}
	for end := time.Now().Add(patience); told.Webhook.State != control.WebhookDelivered; time.Sleep(10 * time.Millisecond) {
		if h.do("GET", "/v1/tasks/r1", "", 200, &told); time.Now().After(end) {
			t.Fatalf("the status says %+v", told)
		}
	}
	h.do("POST", "/v1/tasks", `{"input":"wait","id":"r2",`+hook+`}`, 202, nil)
	h.do("GET", "/v1/tasks/r2", "", 200, nil)
	h.do("POST", "/v1/tasks/r2/cancel", "", 200, nil)
	if e := next(); e.Subject != "r2" || !strings.Contains(string(e.Data), `"status":"cancelled"`) {
		t.Errorf("%+v %s", e, e.Data)
	}
	h.do("POST", "/v1/batches?id=b1&webhookEvents=completed&webhook="+s.URL, `{"custom_id":"a","input":"hi"}`, 200, nil)
	if e := next(); e.Type != messages.TypeBatchFinished || e.Subject != "b1" {
		t.Errorf("%+v %s", e, e.Data)
	}
	h.do("POST", "/v1/tasks", `{"input":"hi","webhook":{"url":"http://hooks.example.com/"}}`, 400, nil)
	h.do("POST", "/v1/tasks", `{"input":"hi","webhook":{"url":"https://[::1]/"}}`, 400, nil)
	h.do("POST", "/v1/tasks", `{"input":"hi","webhook":{"url":"x","secret":"y"}}`, 400, nil)
	h.do("POST", "/v1/batches?webhook=http://hooks.example.com/", `{"custom_id":"a","input":"hi"}`, 400, nil)
}
