//go:build unix

package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// A user who may only publish tasks of one tenant cannot remove, delay or run anything of others with headers that JetStream
// obeys. What two tenants publish is worked, and what is none is in the dead letters with the words of always.
func TestPublishersRemoveNothingOfOthers(t *testing.T) {
	f := startGuardedFleet(t, func(*modelCall) reply { return reply{Text: "Done."} })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	publish := func(nc *nats.Conn, subject, body string, header nats.Header) []byte {
		t.Helper()
		answer, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: []byte(body), Header: header})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Data
	}
	acme, harbour := f.g.connect("acme-publisher"), f.g.connect("harbour-publisher")
	var runs []messages.Ref
	queue := func(nc *nats.Conn, tenant string, n int) {
		for range n {
			run := messages.Ref{Tenant: tenant, Run: fmt.Sprintf("r%d", len(runs))}
			if ack := publish(nc, "tasks.low."+run.Tenant+"."+run.Run, `{"input":"hello"}`, nil); !bytes.Contains(ack, []byte(`"stream":"INTAKE"`)) {
				t.Fatalf("acknowledgement: %s", ack)
			}
			runs = append(runs, run)
		}
	}
	queue(harbour, "harbour", 3)
	delayed := messages.Ref{Tenant: "harbour", Run: "later"}
	later := time.Now().Add(time.Hour)
	if _, err := f.client.Submit(ctx, messages.Task{Tenant: "harbour", ID: "later", NotBefore: &later, Input: messages.TextInput("hello")}); err != nil {
		t.Fatal(err)
	}
	id, err := f.client.Submit(ctx, messages.Task{Tenant: "harbour", Input: messages.TextInput("hello")})
	if err != nil {
		t.Fatal(err)
	}
	runs = append(runs, messages.Ref{Tenant: "harbour", Run: id})
	for _, header := range []nats.Header{
		{"Nats-Rollup": {"all"}},
		{"Nats-Rollup": {"sub"}},
		{"Nats-TTL": {"1s"}},
		{"Nats-Expected-Last-Sequence": {"7777"}},
		{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"tasks.wake.harbour.r0"}},
		{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"tasks.low.harbour.evil"}},
		{"Nats-Schedule-Next": {"purge"}, "Nats-Scheduler": {delayed.DelaySubject()}},
	} {
		for _, subject := range []string{"tasks.low.acme.evil", "tasks.high.acme.evil", "tasks.normal.acme.evil"} {
			if ack := publish(acme, subject, `{"input":"hello"}`, header); !bytes.Contains(ack, []byte(`"error"`)) {
				t.Errorf("%v is taken: %s", header, ack)
			}
		}
	}
	queue(harbour, "harbour", 2)
	queue(acme, "acme", 2)
	junk := messages.Ref{Tenant: "acme", Run: "junk"}
	publish(acme, "tasks.normal.acme.junk", "no task", nil)
	f.work("worker")
	for _, run := range runs {
		if err := f.ends(ctx, run, messages.StatusCompleted); err != nil {
			t.Errorf("%s: %v", run, err)
		}
	}
	if st, err := f.client.Status(ctx, delayed); err != nil || st.Status != messages.StatusQueued {
		t.Errorf("a delayed task: %+v, %v", st, err)
	}
	if r, err := f.client.Wait(ctx, junk); err != nil || r.Status != messages.StatusFailed || r.Error == nil || r.Error.Code != messages.CodeInvalidInput {
		t.Errorf("junk: %+v, %v", r, err)
	}
	// Another task under the id of a run is a dead letter, the same again is nothing.
	publish(acme, "tasks.low.acme."+runs[len(runs)-1].Run, `{"input":"hello"}`, nil)
	publish(acme, "tasks.low.acme."+runs[len(runs)-1].Run, `{"input":"other"}`, nil)
	operator, err := dispatcher.NewTenant(ctx, f.g.connect("acme-operator"), "acme")
	if err != nil {
		t.Fatal(err)
	}
	var letters *control.DeadList
	eventually(t, "there are two dead letters", func() bool {
		letters, err = operator.DeadLetters().List(ctx, control.DeadListRequest{DeadFilter: control.DeadFilter{Tenant: "acme"}})
		return err != nil || len(letters.Letters) >= 2
	})
	if err := f.idle(ctx); err != nil {
		t.Error(err)
	}
	if text := fmt.Sprintf("%+v", letters.Letters); err != nil || len(letters.Letters) != 2 || !strings.Contains(text, "id: it is taken by another task") {
		t.Errorf("dead letters: %s, %v", text, err)
	}
}
