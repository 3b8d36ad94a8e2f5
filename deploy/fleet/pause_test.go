//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
)

// buoy is a tool that tells the test which worker calls it.
type buoy struct {
	name   string
	effect messages.Effect
	url    string
	worker string
}

func (b buoy) Spec() messages.ToolSpec {
	return messages.ToolSpec{
		Name: b.name, Description: "Tells the test.", Effect: b.effect, InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

func (b buoy) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/"+c.Run.Run, nil)
	if err != nil {
		return tools.Result{}, err
	}
	req.Body, req.ContentLength = io.NopCloser(&late{strings.NewReader(c.Key), c.Begin}), int64(len(c.Key))
	req.Header.Set("Worker", b.worker)
	req.Header.Set("Tool", b.name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tools.Result{}, err
	}
	defer resp.Body.Close()
	return tools.Text("done"), nil
}

// late is a body that asks whether the call may still be made when it is about to be written.
type late struct {
	io.Reader

	begin func() error
}

func (l *late) Read(p []byte) (int, error) {
	if err := l.begin(); err != nil {
		return 0, err
	}
	return l.Reader.Read(p)
}

// effect is what the far end saw: a model call or a tool call.
type effect struct {
	at          time.Time
	worker, run string
	what        string // "model", or the tool
	key         string
}

// farEnd collects effects where they arrive.
type farEnd struct {
	*httptest.Server

	mu      sync.Mutex
	seen    []effect
	slowest time.Duration // that a request of the test itself took to arrive
}

func newFarEnd(t *testing.T) *farEnd {
	t.Helper()
	f := &farEnd{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key, err := io.ReadAll(r.Body)
		at := time.Now()
		if err != nil {
			return // it was taken back
		}
		if sent, err := time.Parse(time.RFC3339Nano, r.Header.Get("Sent")); err == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.slowest = max(f.slowest, at.Sub(sent))
			return
		}
		f.add(effect{at, r.Header.Get("Worker"), strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Tool"), string(key)})
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *farEnd) add(e effect) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, e)
}

func (f *farEnd) all() []effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// probe sends a request now and then, until the context ends, to learn how long one is on its way in this machine.
func (f *farEnd) probe(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, strings.NewReader("probe"))
		if err != nil {
			return
		}
		req.Header.Set("Sent", time.Now().Format(time.RFC3339Nano))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// arrival is how long a request may have been on its way: the worker that sends it is as busy as the test that probes.
func (f *farEnd) arrival() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 250*time.Millisecond + 2*f.slowest
}

// sawAnotherOwner reports whether a run was worked by more than one worker.
func (f *farEnd) sawAnotherOwner() bool {
	owners := map[string]string{}
	for _, e := range f.all() {
		if first, ok := owners[e.run]; ok && first != e.worker {
			return true
		}
		owners[e.run] = e.worker
	}
	return false
}

// claim is one of a run, with the time at which the server stored it.
type claim struct {
	at     time.Time
	worker string
}

func (w *town) claims(run messages.Ref) (out []claim) {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		w.t.Fatal(err)
	}
	runs, err := js.Stream(w.t.Context(), w.bus.Partitions(bus.StreamRuns).NameOf(run))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range w.log(run) {
		for _, r := range e.Records {
			if c, ok := r.(*record.Claimed); ok {
				m, err := runs.GetMsg(w.t.Context(), e.Seq)
				if err != nil {
					w.t.Fatal(err)
				}
				out = append(out, claim{m.Time, c.Worker})
			}
		}
	}
	return out
}

// foreign are the effects of workers that had lost the run when they began, at most so long before they arrived.
func foreign(effects []effect, claims map[string][]claim, arrival time.Duration) (out []string) {
	for _, e := range effects {
		var owner claim
		for _, c := range claims[e.run] {
			if c.at.Before(e.at.Add(-arrival)) {
				owner = c
			}
		}
		later := slices.ContainsFunc(claims[e.run], func(c claim) bool { // its own claim may be that new
			return c.worker == e.worker && c.at.After(owner.at) && c.at.Before(e.at)
		})
		if owner.worker != "" && owner.worker != e.worker && !later {
			out = append(out, fmt.Sprintf("%s: %s by %s, %v after the claim of %s", e.run, e.what, e.worker, e.at.Sub(owner.at), owner.worker))
		}
	}
	return out
}

// pace is how soon a model answers: soon around the moments that matter to a test, and late between them, when steps would only
// cost CPU time.
type pace struct {
	mu   sync.Mutex
	soon chan struct{} // closed while it answers soon
}

// quicken makes the model answer soon, also the calls that wait.
func (p *pace) quicken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.soon:
	default:
		close(p.soon)
	}
}

func (p *pace) slow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.soon = make(chan struct{})
}

// wait is for the time of one answer.
func (p *pace) wait() {
	p.mu.Lock()
	soon := p.soon
	p.mu.Unlock()
	select {
	case <-soon:
		passes(rand.N(200 * time.Millisecond))
	case <-time.After(time.Second + rand.N(time.Second)):
	}
}

// TestPausedOwners stops workers for longer than the ack wait, one after the other, under 120 runs of model calls and tool
// calls, and counts effects where they arrive: none begins after another worker's claim, and a once tool runs once.
func TestPausedOwners(t *testing.T) {
	t.Parallel()
	const runs = 120       // so many, and so quick when a worker is stopped and when it continues, that each pause meets appends on their way
	var enough atomic.Bool // until then no run ends, however fast the machine is
	far, model := newFarEnd(t), &pace{soon: make(chan struct{})}
	model.quicken()
	var probing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	probing.Go(func() { far.probe(ctx) })
	defer probing.Wait()
	defer stop()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		worker := strings.TrimPrefix(c.Auth, "Bearer sk-")
		far.add(effect{time.Now(), worker, c.Task, "model", strconv.Itoa(c.Turn)})
		model.wait()
		switch {
		case enough.Load():
			return reply{Text: "moored"}
		case c.Turn%2 == 0:
			return reply{Tool: "cast_off", Args: "{}"}
		default:
			return reply{Tool: "moor", Args: "{}"}
		}
	})
	var workers []*process
	for i := range 3 {
		name := fmt.Sprint("w", i)
		workers = append(workers, w.toolWorker(name, gateVariable+"="+far.URL, "OPENAI_API_KEY=sk-"+name, "LONGSHORE_SLOTS=80"))
	}
	ids := map[string]messages.Ref{}
	for i := range runs {
		run := w.submit(fmt.Sprint("run-", i), func(task *messages.Task) {
			task.ID, task.Agent = fmt.Sprint("run-", i), "buoys"
		})
		ids[run.Run] = run
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, run := range ids {
			if _, err := w.client.Wait(t.Context(), run); err != nil {
				t.Errorf("%s: %v", run, err)
				return
			}
		}
	}()
	pauses := 0
	pause := func(until func()) {
		p := workers[pauses%len(workers)]
		p.signal(syscall.SIGSTOP)
		until()
		p.signal(syscall.SIGCONT)
		pauses++
	}
	aWhile := func() { // its runs go to others, or do so just now
		model.slow()
		passes(shortAckWait + 500*time.Millisecond + rand.N(time.Second))
		model.quicken()
		passes(500 * time.Millisecond)
	}
	for range 2 * len(workers) {
		pause(aWhile)
	}
	// However slow the machine is, one pause lasts until it came to something.
	pause(func() { eventually(t, "another worker takes over a run of one that is paused", far.sawAnotherOwner) })
	enough.Store(true)
	pause(aWhile) // while runs end
	select {
	case <-ended:
	case <-time.After(2 * patience):
		t.Fatal("the runs do not end")
	}
	claims, owners := map[string][]claim{}, 0
	for id, run := range ids {
		claims[id] = w.claims(run)
		owners += len(claims[id])
		w.once(run)
	}
	all := far.all()
	for _, f := range foreign(all, claims, far.arrival()) {
		t.Error(f)
	}
	once := map[string]int{}
	for _, e := range all {
		if e.what == "cast_off" {
			if once[e.key]++; once[e.key] > 1 {
				t.Errorf("%s: a once tool ran %d times", e.run, once[e.key])
			}
		}
	}
	if owners == runs {
		t.Error("another worker made calls of a run that it never claimed")
	}
	t.Logf("%d pauses, %d claims of %d runs, %d effects, each %v on its way at most", pauses, owners, runs, len(all), far.arrival())
}

// held begins runs whose model calls wait for the test, all of them on the one worker there is.
func held(t *testing.T, w *town, n int) (runs []messages.Ref, calls []*modelCall) {
	t.Helper()
	for i := range n {
		runs = append(runs, w.submit(fmt.Sprint("held ", i)))
	}
	for range n {
		calls = append(calls, w.model.next(t))
	}
	return runs, calls
}

// notRepeated answers the calls and checks that each was made once, by one owner.
func notRepeated(t *testing.T, w *town, runs []messages.Ref, calls []*modelCall, owner string) {
	t.Helper()
	for _, c := range calls {
		c.answer <- reply{Text: "moored"}
	}
	for _, run := range runs {
		r, err := w.client.Wait(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, r, "moored")
		if owners := w.owners(run); !slices.Equal(owners, []string{owner}) {
			t.Errorf("%s: owners %v, want %s", run, owners, owner)
		}
	}
	for call, n := range w.model.counts() {
		if n != 1 {
			t.Errorf("call %q was made %d times", call, n)
		}
	}
}

// passes waits for a time in which nothing may happen.
func passes(d time.Duration) { <-time.After(d) }

func holdAll(*modelCall) reply { return reply{Hold: true} }

// A worker that was stopped for longer than the ack wait and continues keeps its runs, although another worker has joined to
// whom their tasks are delivered.
func TestRunsOfAWorkerThatIsBack(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, holdAll)
	first := w.worker("first", "LONGSHORE_SLOTS=40")
	runs, calls := held(t, w, 40)
	first.signal(syscall.SIGSTOP)
	passes(shortAckWait + time.Second)
	first.signal(syscall.SIGCONT)
	second := w.worker("second")
	second.line("run left to another worker")
	passes(2 * shortAckWait) // what was handed over is kept
	notRepeated(t, w, runs, calls, "first")
}

// NATS that stands still for longer than the ack wait makes no worker take runs of another that lives.
func TestStandstillRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, holdAll)
	w.worker("first", "LONGSHORE_SLOTS=40")
	runs, calls := held(t, w, 40)
	second := w.worker("second")
	w.dev.signal(syscall.SIGSTOP)
	passes(shortAckWait + time.Second)
	w.dev.signal(syscall.SIGCONT)
	second.line("run left to another worker")
	passes(2 * shortAckWait)
	notRepeated(t, w, runs, calls, "first")
}

// So does one that was away: workers that come back leave each other's runs alone.
func TestOutageRepeatsNothing(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	w := openOn(t, servers, shortAckWait, holdAll)
	w.worker("first", "LONGSHORE_SLOTS=40")
	runs, calls := held(t, w, 40)
	second := w.worker("second")
	servers.StopNATS()
	passes(shortAckWait + time.Second)
	if err := servers.StartNATS(); err != nil {
		t.Fatal(err)
	}
	second.line("run left to another worker")
	passes(2 * shortAckWait)
	notRepeated(t, w, runs, calls, "first")
}
