//go:build unix

package fleet_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// A client that sends a request chooses the reply subject, which the server does not check against the client's permissions: with
// a subject of the fleet the dispatcher would do in his name what he may not.
func TestAnswersGoToInboxesAlone(t *testing.T) {
	f := startGuardedFleet(t, func(c *modelCall) reply { return turn(c, 1) })
	f.work("worker")
	ctx := t.Context()
	theirs, err := f.client.Submit(ctx, messages.Task{Tenant: "harbour", Input: messages.TextInput("theirs")})
	if err != nil {
		t.Fatal(err)
	}
	run := messages.Ref{Tenant: "harbour", Run: theirs}
	if _, err := f.client.Wait(ctx, run); err != nil {
		t.Fatal(err)
	}
	nc := f.g.connect("acme-submitter")
	ours := []byte(`{"id":"none"}`)
	for _, subject := range []string{
		"$JS.API.STREAM.PURGE.RUNS", "$JS.API.STREAM.PURGE.EVENTS", run.LogSubject(), "tasks.normal.harbour.x", "$KV.QUOTAS.tenant.acme",
		"longshore.cancel",
	} {
		if err := nc.PublishMsg(&nats.Msg{Subject: "longshore.t.acme.status", Reply: subject, Data: ours}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // answers to all that came before these
		if _, err := nc.Request("longshore.t.acme.status", ours, patience); err != nil {
			t.Fatal(err)
		}
	}
	workers, err := f.client.Fleet().Workers(ctx)
	if err != nil || len(workers) != 1 {
		t.Fatalf("workers: %v, %v", workers, err)
	}
	task := &nats.Msg{Subject: "tasks.normal.acme.x", Reply: messages.DrainPrefix + workers[0].ID, Data: []byte(`{"input":"hi"}`)}
	if err := nc.PublishMsg(task); err != nil { // here the server answers, and nothing keeps it from that
		t.Fatal(err)
	}
	if _, err := nc.Request("tasks.normal.acme.y", task.Data, patience); err != nil {
		t.Fatal(err)
	}
	if workers, err = f.client.Fleet().Workers(ctx); err != nil || len(workers) != 1 || workers[0].Draining {
		t.Errorf("workers: %v, %v", workers, err)
	}
	if r, err := f.client.Result(ctx, run); err != nil || r.Status != messages.StatusCompleted {
		t.Errorf("the run of another tenant: %v, %v", r, err)
	}
}
