//go:build unix

package fleet_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// The tests of this file show what servers do between accounts, which tenants are kept apart by.

// A task that a tenant publishes from an account of its own is stored and acknowledged as from within the fleet's.
func TestAccountsPassTasksOn(t *testing.T) {
	g := startGuarded(t)
	js := g.streams(t)
	nc := g.connect("acme-publisher")
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
		if err := json.Unmarshal(ack.Data, &got); err != nil || got.Stream != bus.StreamIntake || got.Duplicate != want {
			t.Errorf("acknowledgement %d: %s", i, ack.Data)
		}
	}
	stream, err := js.Stream(t.Context(), bus.StreamIntake)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "intake.normal.acme.x")
	if err != nil {
		t.Fatal(err)
	}
	for name := range m.Header {
		if name != "Nats-Msg-Id" && !slices.Contains([]string{"Nats-Stream", "Nats-Sequence", "Nats-Subject", "Nats-Time-Stamp"}, name) {
			t.Errorf("header %s was added: %v", name, m.Header)
		}
	}
	if string(m.Data) != `{"input":"hi"}` || m.Header.Get("Nats-Msg-Id") != "acme.x" {
		t.Errorf("stored is %s with %v", m.Data, m.Header)
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

// Whatever subject a user of a tenant names for an answer, the answer stays in his account: of the server to a task, and of
// a dispatcher to a request. Nothing of the fleet is written, asked, acknowledged or told by it.
func TestAccountsKeepAnswers(t *testing.T) {
	f := startGuardedFleet(t, func(c *modelCall) reply { return turn(c, 1) })
	ctx := t.Context()
	theirs := messages.Ref{Tenant: "harbour", Run: "r"}
	if _, err := f.client.Submit(ctx, messages.Task{Tenant: "harbour", ID: "r", Input: messages.TextInput("theirs")}); err != nil {
		t.Fatal(err)
	}
	seen := f.g.connect(observer)
	heard, err := seen.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(seen)
	if err != nil {
		t.Fatal(err)
	}
	before := f.g.lengths(t, js)
	answers := []string{ // each has "answer" in it, or is a whole subject that nothing else uses here
		theirs.LogSubject(), "runs.acme.r.log", "$KV.QUOTAS.tenant.acme", "$KV.AGENTS.default", "$KV.KEYS.k", "blobs.acme.r.h.0-1",
		"events.acme.r.answer", "events.harbour.r.run_finished", "dead.acme.a.r", "sched.sweep.answer", "batches.harbour.b.head",
		"$JS.API.STREAM.PURGE.RUNS", "$JS.API.STREAM.DELETE.EVENTS", "nudge.harbour.r", "workers.drain.answer", "spill.answer",
		"longshore.answer", "longshore.cancel", "longshore.t.harbour.cancel", "tasks.normal.harbour.answer", "live.harbour.r",
		"_INBOX_dispatcher.answer", "_INBOX.answer", "$SRV.PING.answer",
	}
	// The server itself refuses these as subjects of an answer.
	reserved := []string{"$JS.ACK.TASKS.workers.1.1.1.1.0", "_R_.answer"}
	users := map[string][]string{
		"acme-publisher": {"tasks.high.acme.x", "tasks.low.acme.x"},
		"acme-viewer":    {"longshore.t.acme.events"},
		"acme-submitter": {"tasks.normal.acme.x", "longshore.t.acme.status", "longshore.t.acme.events", "longshore.t.acme.queued"},
		"acme-approver":  {"longshore.t.acme.status", "longshore.t.acme.approvals"},
		"acme-operator":  {"longshore.t.acme.schedules.list", "longshore.t.acme.dead.list"},
	}
	for user, subjects := range users {
		nc := f.g.connect(user)
		for _, subject := range subjects {
			for _, answer := range slices.Concat(answers, reserved) {
				m := nats.NewMsg(subject)
				m.Reply, m.Data = answer, []byte("{}")
				if err := nc.PublishMsg(m); err != nil {
					t.Fatal(err)
				}
				m.Header.Set("Nats-Trace-Dest", answer) // where the server would tell how it came
				if err := nc.PublishMsg(m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := nc.Request(subject, []byte("{}"), patience); err != nil { // all that came before were answered
				t.Fatalf("%s %s: %v", user, subject, err)
			}
		}
	}
	if err := seen.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{} // by subject, how often with an answer to come
	for {
		n, _, err := heard.Pending()
		if err != nil || n == 0 {
			break
		}
		m, err := heard.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(answers, m.Subject) || slices.Contains(reserved, m.Subject) {
			t.Errorf("an answer came to %s: %s", m.Subject, m.Data)
		}
		if slices.Contains(answers, m.Reply) || slices.Contains(reserved, m.Reply) {
			t.Errorf("%s is to be answered at %s", m.Subject, m.Reply)
		}
		if strings.HasPrefix(m.Reply, "_R_.") {
			asked[m.Subject]++
		}
	}
	for _, subjects := range users {
		for _, subject := range subjects {
			subject = strings.Replace(subject, "tasks.", "intake.", 1) // as the fleet hears it
			if asked[subject] < len(answers) {
				t.Errorf("%s came %d times, want %d", subject, asked[subject], len(answers))
			}
		}
	}
	after := f.g.lengths(t, js)
	for _, grows := range []string{bus.StreamTasks, bus.StreamIntake, bus.StreamDead} {
		delete(before, grows)
		delete(after, grows)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("streams: %s", diff)
	}
}

// lengths are the last sequences of all streams.
func (g *guarded) lengths(t *testing.T, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	list := js.ListStreams(t.Context())
	for s := range list.Info() {
		out[s.Config.Name] = s.State.LastSeq
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// A user cannot turn a permitted request into a forbidden one by naming the forbidden subject as its reply subject: a dispatcher
// refuses such a message, because its reply subject is not an inbox.
func TestAccountsDoNotTurnAnswersIntoRequests(t *testing.T) {
	f := startGuardedFleet(t, func(c *modelCall) reply { r := turn(c, 1); r.Hold = true; return r })
	f.work("worker")
	ctx := t.Context()
	client, err := dispatcher.NewTenant(ctx, f.g.connect("acme-submitter"), "acme")
	if err != nil {
		t.Fatal(err)
	}
	// The answer is {"id":"r"}, which is a request to cancel it, or to approve that it goes beyond its budget.
	nc := f.g.connect("acme-submitter")
	submit := &nats.Msg{Subject: "longshore.t.acme.submit", Reply: "longshore.t.acme.cancel", Data: []byte(`{"id":"r","input":"hold"}`)}
	if err := nc.PublishMsg(submit); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.model.held:
	case <-time.After(patience):
		t.Fatal("it does not begin")
	}
	// The server itself stops it, and would not between two exports. This is how it would come.
	if err := nc.PublishMsg(&nats.Msg{Subject: "longshore.t.acme.cancel", Data: []byte(`{"id":"r"}`)}); err != nil {
		t.Fatal(err)
	}
	run := messages.Ref{Tenant: "acme", Run: "r"}
	for range 20 {
		if st, err := client.Status(ctx, run); err != nil || st.Cancel || st.Status != messages.StatusRunning {
			t.Fatalf("status %+v, %v", st, err)
		}
	}
	if _, err := client.Cancel(ctx, run, "enough"); err != nil {
		t.Fatal(err)
	}
}

// An account imports what has its name in the place of the tenant, and nothing else of the fleet.
func TestAccountsImportTheirOwn(t *testing.T) {
	for name, swap := range map[string][2]string{
		"tasks of another": {`"intake.normal.acme.*"`, `"intake.normal.harbour.*"`},
		"tasks of all":     {`"intake.normal.acme.*"`, `"intake.normal.*.*"`},
		"the queue":        {`"intake.normal.acme.*"`, `"tasks.normal.acme.*"`},
		"requests":         {`"longshore.t.acme.>"`, `"longshore.t.harbour.>"`},
		"requests of all":  {`"longshore.t.acme.>"`, `"longshore.t.*.>"`},
		"the fleet's":      {`"longshore.t.acme.>"`, `"longshore.>"`},
		"events":           {`"events.acme.>"`, `"events.harbour.>"`},
		"all events":       {`"events.acme.>"`, `"events.*.>"`},
		"live text":        {`"live.acme.*"`, `"live.*.*"`},
		"JetStream":        {`"longshore.t.acme.>"`, `"$JS.API.>"`},
		"logs":             {`"events.acme.>"`, `"runs.acme.*.log"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := guardedConfig(t)
			tenant := filepath.Join(filepath.Dir(path), "tenant-acme.conf")
			raw, err := os.ReadFile(tenant)
			if err != nil {
				t.Fatal(err)
			}
			before, after, ok := strings.Cut(string(raw), swap[0])
			if !ok {
				t.Fatalf("%s is not in the configuration", swap[0])
			}
			if err := os.WriteFile(tenant, []byte(before+swap[1]+after), 0o600); err != nil {
				t.Fatal(err)
			}
			opts, err := server.ProcessConfigFile(path)
			if err == nil {
				opts.Port, opts.StoreDir, opts.NoSigs = -1, t.TempDir(), true
				_, err = server.NewServer(opts)
			}
			if err == nil {
				t.Errorf("%s is imported", swap[1])
			}
		})
	}
}

// A user who may subscribe to everything in a tenant's account receives the tenant's events, live text and answers, and nothing of the
// fleet or of other tenants; what he publishes there goes no further than its imports.
func TestAccountsHearTheirOwn(t *testing.T) {
	g := startGuarded(t)
	js := g.streams(t)
	nc := g.connect(insider)
	heard, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"_R_.>", "$JS.>", "_INBOX_dispatcher.>", "longshore.t.harbour.>", "events.harbour.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	fleet := g.connect(observer)
	ours := []string{"events.acme.r.step_start", "live.acme.r"}
	for _, subject := range slices.Concat([]string{
		"events.harbour.r.step_start", "live.harbour.r", "runs.acme.r.log", "tasks.normal.acme.r", "tasks.normal.harbour.r", "nudge.acme.r",
		"_INBOX_dispatcher.x", "longshore.t.acme.status", "longshore.t.harbour.status", "$KV.AGENTS.a",
	}, ours) {
		if err := fleet.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.connect("harbour-publisher").Request("tasks.low.harbour.r", []byte("{}"), patience); err != nil {
		t.Fatal(err)
	}
	if err := fleet.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	for _, want := range ours {
		if m, err := heard.NextMsg(patience); err != nil || m.Subject != want {
			t.Fatalf("heard %v, %v, want %s", m, err, want)
		}
	}
	if n, _, err := heard.Pending(); err != nil || n != 0 {
		m, _ := heard.NextMsg(patience)
		t.Errorf("heard %d others: %v, %v", n, m, err)
	}

	nc.Close()
	nc = g.connect(insider)
	eventually(t, "both events are stored", func() bool { return g.lengths(t, js)[bus.StreamEvents] == 2 })
	before := g.lengths(t, js)
	for _, subject := range []string{
		"runs.acme.r.log", "events.acme.r.run_finished", "$KV.QUOTAS.tenant.acme", "tasks.normal.harbour.x", "tasks.wake.acme.r", "blobs.acme.r.h.0-1",
	} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for _, subject := range []string{"longshore.status", "longshore.t.harbour.status", "tasks.normal.harbour.x"} {
		if m, err := nc.Request(subject, []byte("{}"), patience); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s is answered: %v, %v", subject, m, err)
		}
	}
	for _, subject := range []string{"INFO", "STREAM.NAMES", "STREAM.INFO.RUNS", "CONSUMER.CREATE.EVENTS.c.events.acme.>", "STREAM.MSG.GET.RUNS"} {
		if m, err := nc.Request("$JS.API."+subject, []byte("{}"), patience); err != nil || !strings.Contains(string(m.Data), "JetStream not enabled for account") {
			t.Errorf("%s is answered: %v, %v", subject, m, err)
		}
	}
	if diff := cmp.Diff(before, g.lengths(t, js)); diff != "" {
		t.Errorf("streams: %s", diff)
	}
}
