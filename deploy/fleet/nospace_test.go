//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// A worker without work says that the NATS server has no room left, and is ready again once there is some.
func TestIdleWorkerNamesNoSpace(t *testing.T) {
	t.Parallel() // it waits for looks at the storage
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 8 << 20, MaxPayload: 2 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	nc, err := nats.Connect(ns.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := bus.Setup(t.Context(), nc, bus.Streams{LogsMaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, dir: t.TempDir(), nats: ns.ClientURL(), redis: "none", model: newModel(t, hello)}
	w.connect()
	p := w.worker("idle")
	readyz(t, p, http.StatusOK, `"ready":true`)

	for err == nil { // until the server refuses
		var m *nats.Msg
		if m, err = nc.Request("blobs.acme.x.y.0-1", make([]byte, 1<<20), patience); err == nil && strings.Contains(string(m.Data), `"error"`) {
			t.Logf("refused: %s", m.Data)
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	const noSpace = "the NATS server cannot store: no space left; make room"
	readyz(t, p, http.StatusServiceUnavailable, noSpace)
	if is := metrics(t, p)["longshore_storage_refused"]; is != "1" {
		t.Errorf("storage_refused is %q", is)
	}
	readyz(t, w.worker("late"), http.StatusServiceUnavailable, noSpace)

	if _, err := nc.Request("$JS.API.STREAM.PURGE.BLOBS", nil, patience); err != nil {
		t.Fatal(err)
	}
	readyz(t, p, http.StatusOK, `"ready":true`)
	if is := metrics(t, p)["longshore_storage_refused"]; is != "0" {
		t.Errorf("storage_refused is %q after room was made", is)
	}
	if _, err := nc.Request("tasks.normal.default.after", []byte(`{"input":"hello"}`), patience); err != nil {
		t.Fatal(err)
	}
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: "after"}
	eventually(t, "a run ends", func() bool {
		ended, err := runlogs.New(w.bus, runlogs.Config{}).Ended(t.Context(), run)
		return err == nil && ended
	})
}

// readyz asks until the readiness is as wanted.
func readyz(t *testing.T, p *process, status int, says string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	var said string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get("http://" + p.address() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if said = resp.Status + ": " + string(body); err == nil && resp.StatusCode == status && strings.Contains(string(body), says) {
			return
		}
	}
	t.Fatalf("%s: %s", p.name, said)
}
