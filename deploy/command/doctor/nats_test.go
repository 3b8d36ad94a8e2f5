package doctor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/messages/bus"
)

func withJetStream(o *server.Options) { o.JetStream = true }

// connect gives the test a connection of its own.
func connect(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := bus.Connect(t.Context(), bus.ConnConfig{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

func setUp(t *testing.T, nc *nats.Conn) {
	t.Helper()
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
}

// A dispatcher's settings are compared with the streams that it would set up: all of them, not those that doctor happens to copy.
func TestAgeOfStoredLogs(t *testing.T) {
	ns := startNATS(t, withJetStream)
	nc, _ := connect(t, ns.ClientURL())
	if err := bus.Setup(t.Context(), nc, bus.Streams{LogsMaxAge: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	r, _ := examine(t, []string{"NATS_URL=" + ns.ClientURL(), "LONGSHORE_LOGS_MAX_AGE=24h"}) // no dispatcher answers
	r.expect(t, "streams", doctor.OK, "23")
	r, _ = examine(t, []string{"NATS_URL=" + ns.ClientURL(), "LONGSHORE_LOGS_MAX_AGE=48h"})
	r.expect(t, "stream LOGS", doctor.Fail, "max_age is 24h0m0s, but must be 48h0m0s")
}

// users are two: one that may do everything, and one that may ask for TASKS alone.
func users(o *server.Options) {
	o.JetStream = true
	o.Users = []*server.User{
		{Username: "all", Password: planted},
		{Username: "some", Password: planted, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.TASKS", "$JS.API.CONSUMER.INFO.TASKS.workers"}},
		}},
	}
}

func at(ns *server.Server, user string) string {
	return "nats://" + user + ":" + planted + "@" + ns.Addr().String()
}

func TestNATS(t *testing.T) {
	type expectation struct {
		check  string
		status doctor.Status
		text   string
	}
	for name, tt := range map[string]struct {
		url     func(t *testing.T) string
		healthy bool
		want    []expectation
	}{
		"nothing listens there": {func(t *testing.T) string {
			t.Helper()
			return "nats://" + closedPort(t)
		}, false, []expectation{
			{"nats", doctor.Fail, "nothing listens there"},
		}},
		"no such host": {func(*testing.T) string { return "nats://unknown.invalid:4222" }, false, []expectation{
			{"nats", doctor.Fail, "unknown.invalid:4222: "},
		}},
		"nonsense": {func(t *testing.T) string {
			t.Helper()
			return "nats://" + listen(t, "220 mail.example.com ESMTP\r\n")
		}, false, []expectation{
			{"nats", doctor.Fail, "another program listens there"},
		}},
		"silence": {func(t *testing.T) string {
			t.Helper()
			return "nats://" + listen(t, "")
		}, false, []expectation{
			{"nats", doctor.Fail, "check that NATS_URL is the address of a NATS server"},
		}},
		"a wrong password": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, func(o *server.Options) { o.Username, o.Password = "u", "another" })
			return at(ns, "u")
		}, false, []expectation{{"nats", doctor.Fail, "refuses these credentials"}}},
		"one of two servers": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, withJetStream)
			nc, _ := connect(t, ns.ClientURL())
			setUp(t, nc)
			return "nats://" + closedPort(t) + "," + ns.ClientURL()
		}, false, []expectation{{"nats server", doctor.Warn, "nothing listens there"}, {"streams", doctor.OK, "23"}, {"dispatcher", doctor.Fail, "none answers"}}},
		"logs, events and queue in three streams": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, withJetStream)
			nc, _ := connect(t, ns.ClientURL())
			if err := bus.Setup(t.Context(), nc, bus.Streams{Partitions: 3}); err != nil {
				t.Fatal(err)
			}
			return ns.ClientURL()
		}, false, []expectation{{"streams", doctor.OK, "29"}, {"lanes", doctor.OK, "1 of"}, {"queue", doctor.OK, "0 tasks"}}},
		"no JetStream": {func(t *testing.T) string {
			t.Helper()
			return startNATS(t, func(*server.Options) {}).ClientURL()
		}, false, []expectation{
			{"jetstream", doctor.Fail, "-js"},
			{"streams", doctor.Skip, "JetStream is off"},
			{"dispatcher", doctor.Skip, "no queue"},
			{"clock", doctor.Skip, "no stream"},
		}},
		"no streams": {func(t *testing.T) string {
			t.Helper()
			return startNATS(t, withJetStream).ClientURL()
		}, false, []expectation{
			{"jetstream", doctor.OK, "API level"},
			{"streams", doctor.Fail, "missing: TASKS, RUNS, EVENTS"},
		}},
		"small messages": {func(t *testing.T) string {
			t.Helper()
			return startNATS(t, func(o *server.Options) { o.JetStream, o.MaxPayload = true, 64<<10 }).ClientURL()
		}, false, []expectation{{"max payload", doctor.Fail, "do not fit"}}},
		"a missing stream": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, withJetStream)
			nc, js := connect(t, ns.ClientURL())
			setUp(t, nc)
			if err := js.DeleteStream(t.Context(), bus.StreamBlobs); err != nil {
				t.Fatal(err)
			}
			if err := js.DeleteConsumer(t.Context(), bus.StreamTasks, bus.ConsumerWorkers); err != nil {
				t.Fatal(err)
			}
			return ns.ClientURL()
		}, false, []expectation{
			{"streams", doctor.Fail, "missing: BLOBS → start a dispatcher"},
			{"wake-ups", doctor.Fail, "does not exist"},
		}},
		"other settings": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, withJetStream)
			nc, js := connect(t, ns.ClientURL())
			setUp(t, nc)
			change(t, js, bus.StreamDead, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 7 })
			change(t, js, bus.StreamTasks, func(c *jetstream.StreamConfig) { c.RePublish = nil })
			change(t, js, bus.StreamRuns, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 })
			change(t, js, bus.StreamEvents, func(c *jetstream.StreamConfig) { c.MaxBytes = 1000 })
			if _, err := js.Publish(t.Context(), "events.a.b.c", make([]byte, 900)); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), "dead.a.b.c", nil); err != nil {
				t.Fatal(err)
			}
			return ns.ClientURL()
		}, false, []expectation{
			{"stream DEAD", doctor.Fail, "max_msgs_per_subject is 7, but must be -1 → change it with `nats stream edit DEAD`"},
			{"stream TASKS", doctor.Fail, "as an earlier version made it"},
			{"stream EVENTS", doctor.Warn, "of 1000 bytes"},
			{"dead letters", doctor.Warn, "1 → see `longshore dead list`, with --tenant those of another tenant and with --unaddressed those without one"},
		}},
		"no room left": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, func(o *server.Options) { o.JetStream, o.JetStreamMaxStore = true, 4<<20 })
			nc, js := connect(t, ns.ClientURL())
			if err := bus.Setup(t.Context(), nc, bus.Streams{LogsMaxBytes: 1 << 20}); err != nil { // room for them is reserved
				t.Fatal(err)
			}
			fill(t, js)
			return ns.ClientURL()
		}, false, []expectation{
			{"storage", doctor.Fail, "no space left"},
			{"storage", doctor.Fail, "→ make room on the server's disk, or raise its max_file_store, then restart nats-server"},
		}},
		"a user who may do little": {func(t *testing.T) string {
			t.Helper()
			ns := startNATS(t, users)
			nc, _ := connect(t, at(ns, "all"))
			setUp(t, nc)
			return at(ns, "some")
		}, true, []expectation{
			{"jetstream", doctor.Skip, "this NATS user has no permission for it → run it with the NATS user of a dispatcher"},
			{"streams", doctor.Skip, "RUNS, EVENTS"},
			{"queue", doctor.Skip, "no permission"},
			{"dispatcher", doctor.Skip, "no permission"},
			{"clock", doctor.OK, "differ"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := examine(t, []string{"NATS_URL=" + tt.url(t)}, "--role", "dispatcher")
			if tt.healthy != (err == nil) || err != nil && !errors.Is(err, doctor.ErrUnhealthy) {
				t.Error(err)
			}
			for _, w := range tt.want {
				r.expect(t, w.check, w.status, w.text)
			}
		})
	}
}

// fill stores until the server refuses, or answers no longer.
func fill(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	var err error
	for err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err = js.Publish(ctx, "blobs.acme.x.y.0-1", make([]byte, 256<<10))
		cancel()
	}
	t.Logf("refused: %v", err)
}

// change changes a stream as an operator would.
func change(t *testing.T, js jetstream.JetStream, stream string, do func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	do(&c)
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestSyncInterval(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*server.Options)
		status doctor.Status
		text   string
	}{
		"the server's own": {func(*server.Options) {}, doctor.Warn, "2m0s: a loss of power takes"},
		"short":            {func(o *server.Options) { o.SyncInterval = 100 * time.Millisecond }, doctor.OK, "100ms"},
		"always":           {func(o *server.Options) { o.SyncAlways = true }, doctor.OK, "always"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := startNATS(t, func(o *server.Options) {
				o.JetStream, o.HTTPHost, o.HTTPPort = true, "127.0.0.1", -1
				tt.change(o)
			})
			r, _ := examine(t, []string{"NATS_URL=" + ns.ClientURL()}, "--monitor", "http://"+ns.MonitorAddr().String()+"/")
			r.expect(t, "sync interval", tt.status, tt.text)
			r.expect(t, "server disk", doctor.OK, " of ")
		})
	}
	ns := startNATS(t, withJetStream)
	for name, address := range map[string]string{"closed port": "http://" + closedPort(t), "nonsense": "http://" + listen(t, "nonsense\r\n")} {
		r, _ := examine(t, []string{"NATS_URL=" + ns.ClientURL()}, "--monitor", address)
		if got := r.of("sync interval"); len(got) != 1 || got[0].Status != doctor.Warn {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
