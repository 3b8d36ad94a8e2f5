package worker_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
)

// crowd is a model that counts the calls in flight, and holds them until it is told not to.
type crowd struct {
	mu    sync.Mutex
	now   int
	most  int
	began chan string
	holds chan struct{} // closed: calls take a moment only
}

func newCrowd() *crowd { return &crowd{began: make(chan string, 100), holds: make(chan struct{})} }

func (m *crowd) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		m.mu.Lock()
		m.now++
		m.most = max(m.most, m.now)
		m.mu.Unlock()
		select {
		case m.began <- r.Messages[len(r.Messages)-1].Text():
		case <-ctx.Done():
		}
		select {
		case <-m.holds:
			<-time.After(time.Millisecond) // so that calls may meet
		case <-ctx.Done():
		}
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
		if ctx.Err() != nil {
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		reply := &model.Reply{Message: messages.Message{Content: messages.TextContent("done")}, Stop: messages.StopEnd, Usage: messages.Usage{Input: 1}}
		if r.Messages[len(r.Messages)-1].Text() == "two steps" {
			call := messages.ToolCall{ID: "c", Name: "read_file", Arguments: `{"path":"a"}`}
			reply.Message.Content, reply.Stop = []messages.Block{{ToolCall: &call}}, messages.StopToolCalls
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

func (m *crowd) wait(t *testing.T) string {
	t.Helper()
	select {
	case asked := <-m.began:
		return asked
	case <-time.After(patience):
		t.Fatal("the model was not called")
		return ""
	}
}

func (h *house) grant(kind queue.QuotaKind, name string, q queue.Quota) {
	h.t.Helper()
	if _, err := quotas.New(h.bus, h.logs()).PutQuota(h.t.Context(), queue.QuotaRef{Kind: kind, Name: name}, q, "ann", nil); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) go1(text string, change ...func(*messages.Task)) messages.Ref {
	h.t.Helper()
	task := messages.Task{Input: messages.TextInput(text)}
	for _, c := range change {
		c(&task)
	}
	return h.submit(task)
}

func (h *house) waitsFor(run messages.Ref, reason string) {
	h.t.Helper()
	eventually(h.t, run.Run+" waits for "+reason, func() bool {
		st, err := h.client.Status(h.t.Context(), run)
		return err == nil && st.Status == messages.StatusWaiting && st.Waits == reason
	})
}

func (h *house) places(line string) (runs []string) {
	h.t.Helper()
	l, _, err := semaphores.New(h.bus).Semaphore(h.t.Context(), line)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range l.Permits {
		runs = append(runs, p.Ref().Run)
	}
	return runs
}

func TestCapOfATenant(t *testing.T) {
	h := open(t, 30*time.Second)
	h.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 2})
	m := newCrowd()
	w1, _ := h.worker("w1", m, worker.Config{})
	w2, _ := h.worker("w2", m, worker.Config{})
	var runs []messages.Ref
	for i := range 10 {
		runs = append(runs, h.go1(strconv.Itoa(i)))
	}
	m.wait(t)
	m.wait(t)
	waiting := func() (n int) {
		for _, r := range runs {
			if st, err := h.client.Status(t.Context(), r); err == nil && st.Waits == queue.ParkSemaphore {
				n++
			}
		}
		return n
	}
	eventually(t, "eight wait", func() bool { return waiting() == 8 })
	// Those that wait have no slot and no message.
	eventually(t, "slots and messages are given back", func() bool {
		a, b := w1.Stats(), w2.Stats()
		return a.Busy+b.Busy == 2 && a.Held+b.Held == 2
	})
	close(m.holds)
	for _, r := range runs {
		if res := h.result(r); !res.Success {
			t.Errorf("%s: %+v", r.Run, res.Error)
		}
	}
	if m.most != 2 {
		t.Errorf("%d at once, want 2", m.most)
	}
	eventually(t, "the places are given back", func() bool { return len(h.places("tenant.default")) == 0 })
}

func TestCapChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		then queue.Quota
		want int // that begin during the first
	}{
		"raised":  {queue.Quota{MaxRunning: 3}, 2},
		"removed": {queue.Quota{}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second)
			h.grant(queue.QuotaAgent, messages.DefaultAgent, queue.Quota{MaxRunning: 1})
			m := newCrowd()
			h.worker("w", m, worker.Config{})
			runs := []messages.Ref{h.go1("first")}
			m.wait(t)
			for i := range 4 {
				r := h.go1(strconv.Itoa(i), func(task *messages.Task) { task.Tenant = fmt.Sprint("t", i) })
				h.waitsFor(r, queue.ParkSemaphore)
				runs = append(runs, r)
			}
			h.grant(queue.QuotaAgent, messages.DefaultAgent, tc.then)
			var began []string
			for range tc.want {
				began = append(began, m.wait(t))
			}
			slices.Sort(began)
			if diff := cmp.Diff([]string{"0", "1", "2", "3"}[:tc.want], began); diff != "" { // who waited longest
				t.Error(diff)
			}
			close(m.holds)
			for _, r := range runs {
				h.result(r)
			}
		})
	}
}

func TestCapLowered(t *testing.T) {
	h := open(t, 30*time.Second)
	h.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 3})
	m := newCrowd()
	h.worker("w", m, worker.Config{})
	runs := []messages.Ref{h.go1("a"), h.go1("b"), h.go1("c")}
	for range 3 {
		m.wait(t)
	}
	h.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 1})
	last := h.go1("d")
	h.waitsFor(last, queue.ParkSemaphore)
	close(m.holds)
	for _, r := range append(runs, last) {
		h.result(r)
	}
}

func TestConcurrencyKey(t *testing.T) {
	h := open(t, 30*time.Second)
	m := newCrowd()
	h.worker("w1", m, worker.Config{})
	h.worker("w2", m, worker.Config{})
	keyed := func(task *messages.Task) { task.Concurrency = &messages.Concurrency{Key: "deploy"} }
	runs := []messages.Ref{h.go1("a", keyed)}
	m.wait(t)
	for _, text := range []string{"b", "c", "d"} {
		r := h.go1(text, keyed)
		h.waitsFor(r, queue.ParkSemaphore)
		runs = append(runs, r)
	}
	other := h.go1("other", func(task *messages.Task) { task.Tenant = "else"; keyed(task) })
	if asked := m.wait(t); asked != "other" { // the key is the tenant's own
		t.Errorf("%q began", asked)
	}
	if _, err := h.client.Cancel(t.Context(), runs[1], "enough"); err != nil {
		t.Fatal(err)
	}
	if r := h.result(runs[1]); r.Status != messages.StatusCancelled {
		t.Errorf("cancelled while it waits: %+v", r)
	}
	close(m.holds)
	h.result(other)
	for _, r := range runs {
		h.result(r)
	}
	if got := []string{m.wait(t), m.wait(t)}; !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("order: %v", got)
	}
}

// A run that waits for a person is not in flight, and waits for a permit again when it continues.
func TestApprovalGivesThePlaceBack(t *testing.T) {
	s := openSite(t, nil)
	s.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 1})
	s.add("w")
	runs := []messages.Ref{s.begin("wreck it"), s.begin("wreck it"), s.begin("wreck it")}
	for _, r := range runs {
		s.waitsFor(r, queue.ParkApproval)
		a := s.asked(r)
		if _, err := s.client.Approvals().Approve(t.Context(), r, dispatcher.Decision{Call: a.Call}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runs {
		if res := s.result(r); !res.Success {
			t.Errorf("%+v", res.Error)
		}
	}
	eventually(t, "the places are given back", func() bool { return len(s.places("tenant.default")) == 0 })
}

// Without a cap nothing is asked of lines.
func TestNoCapCostsNothing(t *testing.T) {
	h := open(t, 30*time.Second)
	h.grant(queue.QuotaTenant, "other", queue.Quota{MaxRunning: 1})
	m := newCrowd()
	close(m.holds)
	h.worker("w", m, worker.Config{})
	run := h.go1("alone")
	h.result(run)
	entries := 0
	for _, err := range h.logs().Heads(t.Context(), run, 0, 1<<62) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
	}
	if _, revision, err := semaphores.New(h.bus).Semaphore(t.Context(), "tenant.default"); entries != 2 || revision != 0 || err != nil {
		t.Errorf("%d entries, line at %d, %v", entries, revision, err)
	}
}

// What holds the lines is lost: a sweep puts those that wait into them again.
func TestLinesLost(t *testing.T) {
	h := open(t, 30*time.Second)
	h.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 1})
	m := newCrowd()
	h.worker("w", m, worker.Config{})
	first := h.go1("a")
	m.wait(t)
	second := h.go1("b")
	h.waitsFor(second, queue.ParkSemaphore)
	if _, err := h.nc.Request("$JS.API.STREAM.PURGE."+bus.StreamSemaphores, nil, patience); err != nil {
		t.Fatal(err)
	}
	k := controller(h.bus, h.logs())
	caps := quotas.New(h.bus, h.logs()).NewCaps(0)
	k.Semaphores, k.Caps = semaphores.New(h.bus), caps
	if _, err := caps.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Sweep(t.Context(), h.logs().Runs(t.Context())); err != nil {
		t.Fatal(err)
	}
	close(m.holds)
	h.result(first)
	h.result(second)
}

func TestPauseAndResume(t *testing.T) {
	for name, of := range map[string]queue.QuotaRef{
		"tenant": {Kind: queue.QuotaTenant, Name: "default"},
		"agent":  {Kind: queue.QuotaAgent, Name: messages.DefaultAgent},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second)
			h.grant(of.Kind, of.Name, queue.Quota{Paused: &queue.Pause{By: "ann", At: time.Now()}})
			m := newCrowd()
			close(m.holds)
			h.worker("w", m, worker.Config{})
			runs := []messages.Ref{h.go1("a"), h.go1("b"), h.go1("c")}
			for _, r := range runs {
				eventually(t, "it is kept", func() bool {
					st, err := h.client.Status(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					// A paused tenant's tasks are left in the queue by a worker that knows.
					return st.Waits == queue.ParkPaused || st.Status == messages.StatusQueued && h.why(r).Paused != nil
				})
			}
			if _, err := h.client.Cancel(t.Context(), runs[1], "enough"); err != nil {
				t.Fatal(err)
			}
			if r := h.result(runs[1]); r.Status != messages.StatusCancelled {
				t.Errorf("cancelled while it is paused: %+v", r)
			}
			h.grant(of.Kind, of.Name, queue.Quota{})
			for _, r := range []messages.Ref{runs[0], runs[2]} {
				if res := h.result(r); !res.Success {
					t.Errorf("%+v", res.Error)
				}
			}
		})
	}
}

// A run that works continues until its next step.
func TestPauseInTheMiddle(t *testing.T) {
	def := messages.Definition{Name: "reader", Instructions: "Read.", Tools: []string{"read_file"}}
	h := open(t, 30*time.Second, def)
	h.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 1})
	m := newCrowd()
	h.worker("w", m, worker.Config{})
	run := h.go1("two steps", func(task *messages.Task) { task.Agent = "reader" })
	m.wait(t)
	h.grant(queue.QuotaAgent, "reader", queue.Quota{Paused: &queue.Pause{By: "ann", At: time.Now()}})
	var late []messages.Ref
	eventually(t, "the worker knows", func() bool {
		r := h.go1("late", func(task *messages.Task) { task.Agent = "reader" })
		late = append(late, r)
		h.until(r, messages.EventRunWaiting)
		st, err := h.client.Status(t.Context(), r)
		return err == nil && st.Waits == queue.ParkPaused
	})
	close(m.holds)
	h.waitsFor(run, queue.ParkPaused)
	eventually(t, "its place is given back", func() bool { return len(h.places("tenant.default")) == 0 })
	st, err := h.client.Status(t.Context(), run)
	if err != nil || st.Status != messages.StatusWaiting {
		t.Errorf("%+v, %v", st, err)
	}
	h.grant(queue.QuotaAgent, "reader", queue.Quota{})
	if r := h.result(run); !r.Success || r.Steps != 2 {
		t.Errorf("%+v", r)
	}
	for _, r := range late {
		h.result(r)
	}
}

func (h *house) why(run messages.Ref) *control.Why {
	h.t.Helper()
	y, err := h.client.Runs().Why(h.t.Context(), run)
	if err != nil {
		h.t.Fatal(err)
	}
	return y
}

func TestWhy(t *testing.T) {
	h := open(t, 30*time.Second, messages.Definition{Name: "else", Instructions: "Go."})
	h.grant(queue.QuotaTenant, "default", queue.Quota{MaxRunning: 1})
	m := newCrowd()
	h.worker("w", m, worker.Config{})
	first := h.go1("a")
	m.wait(t)
	if y := h.why(first); y.Worker != "w" || y.Step != 1 || !strings.HasPrefix(y.Text, "Worker w works it, in step 1, ") {
		t.Errorf("%+v", y)
	}
	second := h.go1("b")
	h.waitsFor(second, queue.ParkSemaphore)
	third := h.go1("c")
	h.waitsFor(third, queue.ParkSemaphore)
	want := "It waits for a permit: tenant default has 1 of 1 taken, and 1 run waits before it."
	if y := h.why(third); y.Text != want || y.Line != "tenant.default" || y.Ahead != 1 {
		t.Errorf("%+v", y)
	}
	if _, err := h.client.Fleet().Pause(t.Context(), queue.QuotaRef{Kind: queue.QuotaAgent, Name: "else"}, "ann", "too dear"); err != nil {
		t.Fatal(err)
	}
	talk := func(task *messages.Task) { task.Session = "s" }
	turn := h.go1("d", talk)
	h.waitsFor(turn, queue.ParkSemaphore)
	fourth := h.go1("e", talk)
	h.waitsFor(fourth, queue.ParkSession)
	if y := h.why(fourth); y.Text != "It waits for its turn in session s, which run "+turn.Run+" has." {
		t.Errorf("%+v", y)
	}
	var kept messages.Ref
	eventually(t, "the pause is known", func() bool {
		kept = h.go1("f", func(task *messages.Task) { task.Agent = "else" })
		reason := ""
		eventually(t, "run "+kept.Run+" waits", func() bool {
			st, err := h.client.Status(t.Context(), kept)
			if err != nil {
				t.Fatal(err)
			}
			reason = st.Waits
			return reason != ""
		})
		return reason == queue.ParkPaused
	})
	if y := h.why(kept); !strings.HasPrefix(y.Text, "It waits for the end of a pause: agent else was paused by ann at ") || !strings.HasSuffix(y.Text, " because: too dear.") {
		t.Errorf("%+v", y)
	}
	close(m.holds)
	if h.result(first); h.why(first).Text != "It has ended: completed." {
		t.Errorf("%+v", h.why(first))
	}
	if _, err := h.client.Fleet().Resume(t.Context(), queue.QuotaRef{Kind: queue.QuotaAgent, Name: "else"}, "ann"); err != nil {
		t.Fatal(err)
	}
	h.result(kept)
	h.result(fourth)
}

// A paused provider is passed over. When no other can take a request, its run waits.
func TestPausedProvider(t *testing.T) {
	both := messages.Definition{Name: "both", Instructions: "Go.", Models: []string{"a/x", "b/x"}}
	one := messages.Definition{Name: "one", Instructions: "Go.", Models: []string{"a/x"}}
	h := open(t, 30*time.Second, both, one)
	a, b := newCrowd(), newCrowd()
	close(a.holds)
	close(b.holds)
	caps := quotas.New(h.bus, h.logs()).NewCaps(0)
	of := queue.QuotaRef{Kind: queue.QuotaProvider, Name: "a"}
	if _, err := h.client.Fleet().Pause(t.Context(), of, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := caps.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{{Name: "a", Provider: a}, {Name: "b", Provider: b}}, Default: "a",
		Paused: func(p string) bool {
			_, _ = caps.Load(t.Context())
			return caps.Cap(queue.PauseSemaphore(queue.QuotaRef{Kind: queue.QuotaProvider, Name: p})) == 0
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.worker("w", router, worker.Config{})
	as := func(agent string) func(*messages.Task) { return func(task *messages.Task) { task.Agent = agent } }
	if r := h.result(h.go1("x", as("both"))); !r.Success || len(b.began) != 1 || len(a.began) != 0 {
		t.Errorf("%+v", r)
	}
	run := h.go1("y", as("one"))
	h.waitsFor(run, queue.ParkPaused)
	if y := h.why(run); y.Paused == nil || y.Paused.Name != "a" {
		t.Errorf("%+v", y)
	}
	if _, err := h.client.Fleet().Resume(t.Context(), of, "ann"); err != nil {
		t.Fatal(err)
	}
	if r := h.result(run); !r.Success || len(a.began) != 1 {
		t.Errorf("%+v", r)
	}
}
