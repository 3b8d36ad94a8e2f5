package doctor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

func TestHealthyFleet(t *testing.T) {
	dev := startFleet(t)
	p := newProvider(t, 200, `{"data":[{"id":"gpt-4o"},{"id":"other"}]}`)
	environ := []string{
		"NATS_URL=" + dev.NATS, "REDIS_URL=" + dev.Redis, "LONGSHORE_WORKSPACES=" + private(t), "LONGSHORE_SCRIPT=" + file(t, script),
		"OPENAI_API_KEY=" + planted, "OPENAI_MODEL=gpt-4o", "OPENAI_BASE_URL=" + p.URL + "/v1",
	}
	// A fleet is ready as soon as its addresses answer; its worker may join a moment later.
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if r, _ := examine(t, environ[:2]); r.of("workers")[0].Status == doctor.OK && strings.Contains(r.of("queue")[0].Found, "0 wake-ups") {
			break
		}
	}
	r, err := examine(t, environ)
	if err != nil || !r.Healthy {
		t.Errorf("%v %+v", err, r.Checks)
	}
	for _, f := range r.Checks {
		if f.Status != doctor.OK && f.Status != doctor.Skip && !strings.HasPrefix(f.Check, "disk") {
			t.Errorf("%+v", f)
		}
	}
	for check, text := range map[string]string{
		"settings": "worker", "nats": "away", "streams": "as the protocol needs", "clock": "differ", "copies": "single", "workers": "1, 0 of 8 slots",
		"dispatcher": "answers", "redis": "away", "model openai": "lists its models", "model scripted": "plays", "prices": "1 model", "workspaces": "",
		"time zones": "known", "dead letters": "none", "queue": "0 tasks and 0 wake-ups", "signing": "off", "sandbox": "confined", "max payload": "2.0 MiB",
	} {
		r.expect(t, check, doctor.OK, text)
	}
	if got := p.seen(); got != "GET /v1/models Bearer "+planted {
		t.Errorf("the provider was asked %q", got)
	}
	out, err := runDoctor(t, environ)
	if err != nil || !strings.Contains(out, "ok    streams             23, as") {
		t.Errorf("%v\n%s", err, out)
	}
	// The settings of this dispatcher are those of the streams; of another one they are not.
	if r, err := examine(t, []string{"NATS_URL=" + dev.NATS}); err != nil {
		t.Errorf("%v %+v", err, r.Checks)
	}
	r, err = examine(t, []string{"NATS_URL=" + dev.NATS, "LONGSHORE_REPLICAS=3", "LONGSHORE_EVENTS_MAX_AGE=300h"})
	if !errors.Is(err, doctor.ErrUnhealthy) {
		t.Error(err)
	}
	r.expect(t, "stream EVENTS", doctor.Fail, "max_age is 336h0m0s, but must be 300h0m0s → change it with `nats stream edit EVENTS`")
	r.expect(t, "stream TASKS", doctor.Fail, "num_replicas is 1, but must be 3")
}

func TestFleetInParts(t *testing.T) {
	dev := startFleet(t, func(c *fleet.DevConfig) { c.NoWorker = true })
	environ := []string{"NATS_URL=" + dev.NATS}
	r, err := examine(t, environ)
	if err != nil {
		t.Error(err)
	}
	r.expect(t, "workers", doctor.Warn, "none answers")
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Submit(t.Context(), textTask("x", "hello")); err != nil {
		t.Fatal(err)
	}
	r, err = examine(t, environ)
	if !errors.Is(err, doctor.ErrUnhealthy) || r.Healthy {
		t.Error(err)
	}
	r.expect(t, "workers", doctor.Fail, "tasks wait: 1 → start one with `longshore worker`")
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":       {"x"},
		"an odd role":       {"--role", "boss"},
		"an odd output":     {"-o", "yaml"},
		"a short timeout":   {"--timeout", "1ms"},
		"an odd monitor":    {"--monitor", "file:///etc"},
		"runs, an argument": {"runs", "x"},
		"runs, odd tenant":  {"runs", "--tenant", "a.b"},
		"runs, odd output":  {"runs", "-o", "yaml"},
		"runs, odd age":     {"runs", "--older", "-1s"},
	} {
		_, err := runDoctor(t, nil, args...)
		if _, usage := errors.AsType[*render.UsageError](err); !usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		environ []string
		args    []string
		check   string
		text    string
	}{
		"nothing":              {nil, nil, "nats", "NATS_URL is missing"},
		"half a worker":        {[]string{"NATS_URL=nats://" + "127.0.0.1:1", "REDIS_URL=none"}, nil, "settings", "a worker would not start: no model provider configured"},
		"no worker":            {[]string{"NATS_URL=nats://127.0.0.1:1"}, []string{"--role", "worker"}, "settings", "no model provider"},
		"an odd number":        {[]string{"NATS_URL=nats://127.0.0.1:1", "LONGSHORE_SLOTS=x", "REDIS_URL=none"}, nil, "settings", "LONGSHORE_SLOTS"},
		"an open dispatcher":   {[]string{"NATS_URL=nats://127.0.0.1:1", "LONGSHORE_HTTP_ADDR=0.0.0.0:1"}, nil, "settings", "a dispatcher would not start"},
		"an odd providers":     {[]string{"NATS_URL=nats://127.0.0.1:1", "REDIS_URL=none", "LONGSHORE_PROVIDERS=/none"}, nil, "settings", "LONGSHORE_PROVIDERS"},
		"NATS with a password": {[]string{"NATS_URL=http://user:" + planted + "@127.0.0.1:1"}, nil, "nats", "scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := examine(t, tt.environ, tt.args...)
			if !errors.Is(err, doctor.ErrUnhealthy) {
				t.Error(err)
			}
			r.expect(t, tt.check, doctor.Fail, tt.text)
		})
	}
}
