package service_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// asker is a dispatcher whose runs the test parks.
type asker struct {
	t          *testing.T
	client     *dispatcher.Client
	served     *nats.Conn // the dispatcher's
	bus        *bus.Bus
	controller *runlog.Controller
}

func openAsker(t *testing.T) *asker {
	t.Helper()
	servers := embeddedtest.Start(t, embedded.Config{NoRedis: true})
	nc, served := embeddedtest.Conn(t, servers), embeddedtest.Conn(t, servers)
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(serve(t, served, service.Config{}))
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Asks: semaphores.New(b), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	return &asker{t, c, served, b, k}
}

// park parks a run until its only call is approved, and settles that as its worker does.
func (a *asker) park(id string, until time.Time) (messages.Ref, *messages.Approval) {
	a.t.Helper()
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: id}
	task := messages.Task{ID: id, Input: messages.TextInput("Go.")}
	task.SetDefaults()
	call := messages.ToolCall{ID: "c1", Name: "load", Arguments: `{}`}
	asks := messages.NewApproval(task.Agent, 1, "", call)
	_, err := a.controller.Begin(a.t.Context(), run,
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: time.Now()},
		&record.Claimed{Claim: "k", Worker: "w", Ticket: 1},
		&record.Parked{Reason: queue.ParkApproval, Call: call.ID, Until: &until, Approval: asks},
	)
	if err == nil {
		err = a.controller.Settle(a.t.Context(), run)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return run, asks
}

// list is what waits, and how many messages the dispatcher read for it.
func (a *asker) list() (ids []string, read uint64) {
	a.t.Helper()
	before := a.served.Stats().InMsgs
	list, err := a.client.Approvals().List(a.t.Context(), messages.DefaultTenant, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, w := range list.Approvals {
		ids = append(ids, w.ID)
	}
	return ids, a.served.Stats().InMsgs - before
}

// ended stores the events of runs that asked and have ended since.
func (a *asker) ended(n int) {
	a.t.Helper()
	js, err := a.served.JetStream()
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range n {
		run := messages.Ref{Tenant: messages.DefaultTenant, Run: fmt.Sprint("old", i)}
		e := record.FinishedEvent(run, &record.Head{ID: "h", Time: time.Now(), FirstEvent: 1, Events: 9}, &record.Finished{})
		body, err := json.Marshal(e)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, name := range []string{messages.EventApprovalRequested, messages.EventRunFinished} {
			if _, err := js.PublishAsync(a.bus.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(name)), body, nats.StallWait(patience)); err != nil {
				a.t.Fatal(err)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		a.t.Fatal("events are not stored")
	}
}

// The list costs what waits: not what has ended, and not what has been decided.
func TestApprovalsReadWhatIsOpen(t *testing.T) {
	a := openAsker(t)
	until := time.Now().Add(time.Hour)
	a.park("open", until)
	a.ended(2000)
	ids, read := a.list()
	if len(ids) != 1 || ids[0] != "open" {
		t.Errorf("waiting: %v", ids)
	}
	const most = 1500 // with the ends that the dispatcher takes meanwhile: its retention holds some hundreds
	if read > most {
		t.Errorf("read %d messages to list one", read)
	}
}

// A run is listed as long as it waits, however long its events are kept, and no longer.
func TestApprovalsAreListedWhileTheyWait(t *testing.T) {
	a := openAsker(t)
	until := time.Now().Add(time.Hour)
	first, asks := a.park("first", until)
	a.park("second", until)
	third, _ := a.park("third", until)
	if err := purgeEvents(a); err != nil {
		t.Fatal(err)
	}
	if ids, _ := a.list(); fmt.Sprint(ids) != "[third second first]" {
		t.Errorf("waiting: %v", ids)
	}
	if _, err := a.client.Approvals().Approve(t.Context(), first, dispatcher.Decision{Call: "c1", Hash: asks.Hash}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Cancel(t.Context(), third, "not needed"); err != nil {
		t.Fatal(err)
	}
	if ids, _ := a.list(); fmt.Sprint(ids) != "[second]" {
		t.Errorf("waiting: %v", ids)
	}
	n := 0
	for _, err := range semaphores.New(a.bus).Standing(t.Context(), queue.PeopleList, messages.DefaultTenant) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d runs stand in the line", n)
	}
}

// What a loss took is listed again by a sweep; what a crash left behind is taken out by the next list.
func TestApprovalsAreRepaired(t *testing.T) {
	a := openAsker(t)
	run, asks := a.park("lost", time.Now().Add(time.Hour))
	at, err := semaphores.New(a.bus).Waiting(t.Context(), queue.PeopleList, run)
	if err == nil {
		err = semaphores.New(a.bus).Unwait(t.Context(), queue.PeopleList, run, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	if ids, _ := a.list(); len(ids) != 0 {
		t.Errorf("waiting: %v", ids)
	}
	for range 2 { // again is harmless
		if _, err := a.controller.Sweep(t.Context(), func(yield func(messages.Ref, error) bool) { yield(run, nil) }); err != nil {
			t.Fatal(err)
		}
	}
	if ids, _ := a.list(); fmt.Sprint(ids) != "[lost]" {
		t.Errorf("waiting after a sweep: %v", ids)
	}
	careless := *a.controller
	careless.Asks = nil // it dies before it takes the run out
	if _, err := careless.Control(t.Context(), run, &record.Decided{ID: "d", Park: parkOf(a, run), Step: 1, Call: "c1", Hash: asks.Hash}); err != nil {
		t.Fatal(err)
	}
	if ids, _ := a.list(); len(ids) != 0 {
		t.Errorf("waiting: %v", ids)
	}
	if at, err := semaphores.New(a.bus).Waiting(t.Context(), queue.PeopleList, run); at != 0 || err != nil {
		t.Errorf("it stands at %d, %v", at, err)
	}
}

func parkOf(a *asker, run messages.Ref) uint64 {
	a.t.Helper()
	last, _, err := runlogs.New(a.bus, runlogs.Config{}).Last(a.t.Context(), run)
	if err != nil {
		a.t.Fatal(err)
	}
	return last.Head.ParkSeq
}

func purgeEvents(a *asker) error {
	js, err := a.served.JetStream()
	if err != nil {
		return err
	}
	for _, name := range a.bus.Partitions(bus.StreamEvents).Names() {
		if err := js.PurgeStream(name); err != nil {
			return err
		}
	}
	return nil
}
