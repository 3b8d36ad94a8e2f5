//go:build unix

package fleet_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/control"
)

// toldServer takes webhooks. It keeps the delivery of each.
type toldServer struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string]int // by delivery
	came chan struct{}  // has an element once something came
}

func newTold(t *testing.T) *toldServer {
	t.Helper()
	s := &toldServer{told: map[string]int{}, came: make(chan struct{}, 1)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.told[r.Header.Get("Webhook-Id")]++
		s.mu.Unlock()
		select {
		case s.came <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestKilledDispatcher kills the dispatcher in the middle of a batch with a webhook, while a schedule is armed. Another
// one ends all of it.
func TestKilledDispatcher(t *testing.T) {
	t.Parallel()
	const lines = 200
	servers, hook := embeddedtest.Start(t), newTold(t)
	env := []string{
		"NATS_URL=" + servers.NATSURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_AUTH=off", "LONGSHORE_ACK_WAIT=" + shortAckWait.String(),
		"LONGSHORE_WEBHOOK_SECRET=a-secret-of-the-fleet-tests", "LONGSHORE_WEBHOOK_HOSTS=127.0.0.1",
	}
	start := func(name string) *process {
		p := spawn(t, name, env, binary, "dispatcher")
		p.line(`"message":"ready"`)
		return p
	}
	var answered atomic.Int32
	killed := make(chan struct{})
	w := &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL, model: newModel(t, func(c *modelCall) reply {
		if answered.Add(1) > lines/2 { // so that the batch is in the middle at the kill, however fast the machine is
			select {
			case <-killed:
			case <-c.gone:
			}
		}
		return reply{Text: "did " + c.Task}
	})}
	first := start("first")
	w.connect()
	w.worker("worker", "LONGSHORE_SLOTS=8")
	schedule := control.Schedule{Name: "often", Every: messages.Duration(10 * time.Second), Task: messages.Task{Input: messages.TextInput("tick")}}
	if _, err := w.client.Schedules().Put(t.Context(), schedule, "", nil); err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	for i := range lines {
		fmt.Fprintf(&file, `{"custom_id":"%d","input":"line %d"}`+"\n", i, i)
	}
	spec := dispatcher.BatchSpec{BatchRef: dispatcher.BatchOf("b")}
	spec.Webhook, spec.Concurrency = &messages.Webhook{URL: hook.URL}, 20
	if _, err := w.client.Batches().Submit(t.Context(), spec, dispatcher.ReadLines(strings.NewReader(file.String()))); err != nil {
		t.Fatal(err)
	}
	batch := func() *messages.Batch {
		b, err := w.client.Batches().Get(t.Context(), spec.BatchRef)
		if err != nil {
			return &messages.Batch{}
		}
		return b
	}
	eventually(t, "some lines have ended", func() bool { return batch().Counts.Ended() >= lines/10 })
	first.kill()
	died := time.Now()
	cut, _, err := batches.New(w.bus).Get(t.Context(), spec.BatchRef)
	if err != nil || cut.Status != messages.BatchInProgress || cut.Counts.Submitted == lines {
		t.Fatalf("it was not in the middle of the batch: %+v, %v", cut, err)
	}
	close(killed)
	start("second")
	eventually(t, "the batch ends", func() bool { return batch().Status.Ended() })
	b := batch()
	if b.Status != messages.BatchCompleted || b.Counts.Completed != lines || b.Counts.Submitted != lines {
		t.Fatalf("%+v", b)
	}
	seen := map[string]int{}
	for o, err := range w.client.Batches().Results(t.Context(), spec.BatchRef, dispatcher.ByInput) {
		if err != nil {
			t.Fatal(err)
		}
		seen[o.CustomID]++
		w.once(messages.Ref{Tenant: spec.Tenant, Run: o.Task})
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("line %s ended %d times", id, n)
		}
	}
	if len(seen) != lines {
		t.Errorf("%d lines ended", len(seen))
	}
	for task, n := range w.model.counts() {
		if n != 1 && task != "tick 0" { // the schedule's, once in each of its runs
			t.Errorf("%s was asked %d times", task, n)
		}
	}
	select {
	case <-hook.came:
	case <-time.After(2 * patience):
		t.Fatal("the webhook does not come")
	}
	hook.mu.Lock()
	if len(hook.told) != 1 {
		t.Errorf("deliveries: %v", hook.told)
	}
	hook.mu.Unlock()
	eventually(t, "the schedule continues", func() bool {
		st, err := w.client.Schedules().Get(t.Context(), control.ScheduleRef{Tenant: messages.DefaultTenant, Name: "often"})
		return err == nil && st.Last != nil && st.Last.At.After(died) && st.Last.Run != ""
	})
}
