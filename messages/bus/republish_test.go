package bus_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// What docs/events.md says of a task that is published again under its id, as a client without this package does it.
func TestRepeatedPublish(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	const subject, body = "tasks.normal.acme.r1", `{"input":"Say hello."}`
	const wrongLast = 10071
	msgID := nats.Header{"Nats-Msg-Id": {"acme.r1"}}
	expect := nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {"lanes.*.*.acme.r1"}}
	both := nats.Header{}
	for _, h := range []nats.Header{msgID, expect} {
		maps.Copy(both, h)
	}
	type answer struct {
		Stream    string `json:"stream"`
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
		Error     struct {
			Code int `json:"err_code"`
		} `json:"error"`
	}
	publish := func(h nats.Header) (a answer) {
		t.Helper()
		msg, err := nc.RequestMsgWithContext(bustest.Context(t), &nats.Msg{Subject: subject, Data: []byte(body), Header: h})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(msg.Data, &a); err != nil {
			t.Fatalf("%v: %s", err, msg.Data)
		}
		return a
	}
	first := publish(both)
	if first.Stream != bus.StreamTasks || first.Seq == 0 || first.Duplicate {
		t.Fatalf("the first: %+v", first)
	}
	refused := func(when string) {
		t.Helper()
		for name, h := range map[string]nats.Header{"both": both, "expect": expect} {
			if a := publish(h); a.Error.Code != wrongLast {
				t.Errorf("%s, with %s: %+v", when, name, a)
			}
		}
		if a := publish(msgID); !a.Duplicate || a.Seq != first.Seq {
			t.Errorf("%s, with Nats-Msg-Id alone: %+v", when, a)
		}
	}
	refused("queued")
	d := bustest.Pull(t, b, 1)[0]
	refused("in hand")
	if err := d.Ack(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if a := publish(both); !a.Duplicate || a.Seq != first.Seq {
		t.Errorf("worked, within two minutes: %+v", a)
	}
	// Without Nats-Msg-Id it is as it is after two minutes.
	if a := publish(expect); a.Seq <= first.Seq || a.Duplicate {
		t.Errorf("worked, later: %+v", a)
	}
}
