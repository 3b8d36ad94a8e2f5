//go:build unix

package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// asksAgent asks a person.
const asksAgent = `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: asks}
spec: {tools: [ask_human]}
`

// order is a control operation on a run.
type order struct {
	agent  string
	later  bool        // the run waits for its time; otherwise for a person
	fork   bool        // the run is none yet, but the fork of one that has ended
	record record.Kind // that the log has once the order counts
	wakes  bool        // the record has a wake-up
	ask    func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error
	says   string // the run's result
	status messages.Status
}

// forked ends the id of a fork.
const forked = "-forked"

func orders() map[string]order {
	const again = "01" // the same for all who repeat an order
	done := func(_ any, err error) error { return err }
	return map[string]order{
		"cancel": {
			agent: "careful", record: record.KindCancelRequested, wakes: true, status: messages.StatusCancelled,
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				return done(c.Cancel(ctx, run, "enough"))
			},
		},
		"cancel before its time": {
			later: true, record: record.KindCancelRequested, status: messages.StatusCancelled,
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				return done(c.Cancel(ctx, run, "enough"))
			},
		},
		"approve": {
			agent: "careful", record: record.KindDecided, wakes: true, status: messages.StatusCompleted, says: "Done: Wrote 2 bytes to a.txt",
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				return done(c.Approvals().Approve(ctx, run, dispatcher.Decision{Call: "call_0", Control: again}))
			},
		},
		"deny": {
			agent: "careful", record: record.KindDecided, wakes: true, status: messages.StatusCompleted, says: "not today",
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				return done(c.Approvals().Deny(ctx, run, dispatcher.Decision{Call: "call_0", Reason: "not today", Control: again}))
			},
		},
		"answer": {
			agent: "asks", record: record.KindAnswered, wakes: true, status: messages.StatusCompleted, says: "Done: blue",
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				return done(c.Approvals().Answer(ctx, run, control.AnswerRequest{Text: "blue", Control: again}))
			},
		},
		"fork": {
			fork: true, record: record.KindStarted, wakes: true, status: messages.StatusCompleted, says: "Done: Wrote 2 bytes to a.txt",
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				old := messages.Ref{Tenant: run.Tenant, Run: strings.TrimSuffix(run.Run, forked)}
				return done(c.Runs().Fork(ctx, old, control.ForkRequest{At: 2, NewID: run.Run}))
			},
		},
		"steer": {
			agent: "careful", record: record.KindSteered,
			ask: func(ctx context.Context, c *dispatcher.Client, run messages.Ref) error {
				return done(c.Steer(ctx, run, control.SteerRequest{Message: "be brief", Control: again}))
			},
		},
	}
}

// moments returns the points at which a dispatcher is killed, each by the message that it can no longer send.
func (o *order) moments() map[string]func(published, messages.Ref) bool {
	all := map[string]func(published, messages.Ref) bool{
		"before the record": func(m published, run messages.Ref) bool { return m.Subject == run.LogSubject() },
		"before the reply":  func(m published, _ messages.Ref) bool { return strings.HasPrefix(m.Subject, "_INBOX.") },
	}
	if o.wakes {
		all["before the net"] = func(m published, run messages.Ref) bool {
			return strings.HasPrefix(m.Subject, "sched.net."+run.Tenant+"."+run.Run+".")
		}
		all["before the wake-up"] = func(m published, run messages.Ref) bool { return m.Subject == run.WakeSubject() }
	}
	if o.later {
		all["before the end is told"] = func(m published, run messages.Ref) bool {
			return strings.HasPrefix(m.Subject, "events."+run.Tenant+"."+run.Run+".")
		}
	}
	return all
}

// cutOrder is an order in whose middle a dispatcher was killed.
type cutOrder struct {
	order

	name   string
	run    messages.Ref
	stored bool // the record is in the log
}

// A dispatcher is killed around each message of each control operation. What was recorded takes effect without another request;
// what was not recorded has no effect, and the same request may be sent to another dispatcher. Either way it counts once.
func TestKilledAroundAControlRecord(t *testing.T) {
	t.Parallel()
	h := newControlHall(t)
	h.worker("worker")
	var cuts []*cutOrder
	for name, o := range orders() {
		for moment, is := range o.moments() {
			c := &cutOrder{order: o, name: name + " " + moment}
			c.stored = moment != "before the record" && moment != "before the net"
			h.kill(c, is)
			cuts = append(cuts, c)
		}
	}
	second := h.dispatcher("the last one", h.nats) // its sweep publishes ends that were not published
	defer second.kill()
	for _, c := range cuts {
		if c.stored && c.status != "" {
			h.ends(c)
		}
	}
	for _, c := range cuts {
		if n := h.count(c); (n == 1) != c.stored || n > 1 {
			t.Errorf("%s: it is recorded %d times", c.name, n)
		}
		if err := c.ask(t.Context(), h.client, c.run); err != nil && (!c.stored || !errors.Is(err, dispatcher.ErrEnded)) {
			t.Errorf("%s: asked again: %v", c.name, err)
		}
		if c.status != "" {
			h.ends(c)
		}
		if n := h.count(c); n != 1 {
			t.Errorf("%s: in the end it is recorded %d times", c.name, n)
		}
	}
}

// A dispatcher is killed when it has recorded several orders and has sent no wake-up for any. No other one comes: the
// nets that it had put up before tell the runs.
func TestNetsOfAKilledDispatcher(t *testing.T) {
	t.Parallel()
	h := newControlHall(t)
	h.worker("worker")
	line := newTap(t, h.nats, func(m published) verdict {
		if strings.HasPrefix(m.Subject, "tasks.wake.default.") {
			return defers // until the line is cut: forever
		}
		return pass
	})
	victim := h.dispatcher("victim", line.url)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var cuts []*cutOrder
	asked, asking := make(chan error, len(orders())), 0
	for name, o := range orders() {
		if !o.wakes {
			continue
		}
		c := &cutOrder{order: o, name: name, run: h.waiting(o), stored: true}
		cuts = append(cuts, c)
		asking++
		go func() { asked <- c.ask(ctx, h.client, c.run) }()
	}
	for _, c := range cuts {
		line.await(t, 0, func(m published) bool { return m.Subject == c.run.WakeSubject() })
	}
	victim.kill()
	cancel()
	for range asking {
		if err := <-asked; err == nil {
			t.Error("a request succeeds")
		}
	}
	for _, c := range cuts {
		select {
		case <-h.watch(c.run).done:
		case <-time.After(patience):
			t.Fatalf("%s: the run does not end", c.name)
		}
	}
	h.dispatcher("the next one", h.nats) // tells the results
	for _, c := range cuts {
		h.ends(c)
		if n := h.count(c); n != 1 {
			t.Errorf("%s: it is recorded %d times", c.name, n)
		}
	}
}

// controlHall is a town whose dispatchers come and go.
type controlHall struct {
	*town

	env []string
}

func newControlHall(t *testing.T) *controlHall {
	t.Helper()
	servers, defs := embeddedtest.Start(t), t.TempDir()
	for name, text := range map[string]string{"careful": carefulAgent, "asks": asksAgent} {
		if err := os.WriteFile(filepath.Join(defs, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := &controlHall{town: &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL}}
	h.model = newModel(t, func(c *modelCall) reply {
		switch {
		case c.Turn > 0:
			return reply{Text: "Done: " + c.Last}
		case c.Task == "asks":
			return reply{Tool: "ask_human", Args: map[string]string{"question": "which colour?"}}
		default:
			return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "hi"}}
		}
	})
	h.env = []string{"LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_AUTH=off", "LONGSHORE_ACK_WAIT=" + shortAckWait.String(), "LONGSHORE_AGENTS=" + defs}
	h.dispatcher("first", h.nats).kill()
	h.connect()
	return h
}

func (h *controlHall) dispatcher(name, nats string) *process {
	h.t.Helper()
	p := spawn(h.t, name, append([]string{"NATS_URL=" + nats}, h.env...), binary, "dispatcher")
	p.line(`"message":"ready"`)
	return p
}

// kill gives an order to a dispatcher that dies at a moment.
func (h *controlHall) kill(c *cutOrder, is func(published, messages.Ref) bool) {
	h.t.Helper()
	c.run = h.waiting(c.order)
	var given atomic.Bool
	line := newTap(h.t, h.nats, func(m published) verdict {
		if given.Load() && is(m, c.run) {
			return cutBefore
		}
		return pass
	})
	victim := h.dispatcher(c.name, line.url)
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	given.Store(true)
	asked := make(chan error, 1)
	go func() { asked <- c.ask(ctx, h.client, c.run) }()
	select {
	case <-line.dead:
	case err := <-asked:
		h.t.Fatalf("%s: it is answered: %v", c.name, err)
	case <-time.After(patience):
		h.t.Fatalf("%s: the dispatcher does not get there", c.name)
	}
	victim.kill()
	cancel()
	if err := <-asked; err == nil {
		h.t.Errorf("%s: the request succeeds", c.name)
	}
}

// waiting is a run that waits for a person, or for its time.
func (h *controlHall) waiting(o order) messages.Ref {
	h.t.Helper()
	task := &messages.Task{ID: messages.NewID(time.Now()), Agent: o.agent, Input: messages.TextInput(cmp.Or(o.agent, "work"))}
	if o.later {
		task.NotBefore = new(time.Now().Add(time.Hour))
	}
	task.SetDefaults()
	if _, err := taskqueue.New(h.bus).Submit(h.t.Context(), task, true); err != nil { // no dispatcher answers now
		h.t.Fatal(err)
	}
	run := task.Ref()
	until := record.PhaseParked
	if o.fork {
		until = record.PhaseFinished
	}
	if !o.later {
		eventually(h.t, "the run is "+string(until), func() bool {
			last, ok, err := runlogs.New(h.bus, runlogs.Config{}).Last(h.t.Context(), run)
			return err == nil && ok && last.Head.Phase == until
		})
	}
	if o.fork {
		run.Run += forked
	}
	return run
}

// ends waits for the end that an order leads to.
func (h *controlHall) ends(c *cutOrder) {
	h.t.Helper()
	r := h.watch(c.run).end()
	if text, _ := r.Result.(string); r.Status != c.status || !strings.Contains(text, c.says) {
		h.t.Errorf("%s: %s %v, error %v", c.name, r.Status, r.Result, r.Error)
	}
}

// count is how often an order is recorded.
func (h *controlHall) count(c *cutOrder) (n int) {
	h.t.Helper()
	for _, e := range h.log(c.run) {
		for _, r := range e.Records {
			if r.Kind() == c.record {
				n++
			}
		}
	}
	return n
}
