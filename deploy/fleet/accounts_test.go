//go:build unix

package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/bus"
)

// The tests of this file show what servers do between accounts, which tenants are kept apart by.

// A task that a tenant publishes from an account of its own is stored and acknowledged as from within the fleet's.
func TestAccountsPassTasksOn(t *testing.T) {
	g, nc := startGuarded(t), (*nats.Conn)(nil)
	js := g.streams(t)
	nc = g.connect("acme-publisher")
	for i, want := range []bool{false, true} {
		m := nats.NewMsg("tasks.normal.acme.x")
		m.Data = []byte(`{"input":"hi"}`)
		m.Header.Set("Nats-Msg-Id", "acme.x")
		ack, err := nc.RequestMsg(m, patience)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Stream    string `json:"stream"`
			Duplicate bool   `json:"duplicate"`
		}
		if err := json.Unmarshal(ack.Data, &got); err != nil || got.Stream != bus.StreamTasks || got.Duplicate != want {
			t.Errorf("acknowledgement %d: %s", i, ack.Data)
		}
	}
	stream, err := js.Stream(t.Context(), bus.StreamTasks)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "lanes.*.*.acme.x")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(m.Subject, m.Header)
	if len(m.Header) != 1 || m.Header.Get("Nats-Msg-Id") != "acme.x" {
		t.Errorf("headers %v, want the id alone", m.Header)
	}
}

// streams makes the streams, as a dispatcher does.
func (g *guarded) streams(t *testing.T) jetstream.JetStream {
	t.Helper()
	nc := g.connect("dispatcher")
	if err := bus.Setup(t.Context(), nc, bus.Streams{AckWait: guardedAckWait}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Whatever subject a tenant names for an answer, it is one of its own account.
func TestAccountsKeepAnswers(t *testing.T) {
	g := startGuarded(t)
	js := g.streams(t)
	seen := g.connect(observer)
	heard, err := seen.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := seen.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	_ = js
	nc := g.connect("acme-publisher")
	for _, subject := range []string{"runs.acme.r.log", "runs.harbour.r.log", "$KV.QUOTAS.tenant.acme", "$JS.API.STREAM.PURGE.RUNS", "$JS.ACK.TASKS.workers.1.1.1.1.0", "_R_.x", "longshore.cancel"} {
		if err := nc.PublishMsg(&nats.Msg{Subject: "tasks.normal.acme.y", Reply: subject, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Request("tasks.normal.acme.z", []byte("{}"), patience); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := heard.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(m.Subject, m.Reply, string(m.Data))
		if strings.Contains(m.Subject, "acme.z") {
			break
		}
	}
}
