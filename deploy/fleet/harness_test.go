//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// apiKey is the key that workers have unless a test gives them another one.
const apiKey = "sk-of-the-fleet-tests"

// town is a dispatcher with its servers, to which a test adds workers.
type town struct {
	t      *testing.T
	dir    string // of the runs' files, shared by the workers
	nats   string
	redis  string
	api    string // of the dev process
	nc     *nats.Conn
	bus    *bus.Bus
	client *dispatcher.Client
	model  *modelServer
	data   string // of the dev process, with its streams
	dev    *process
	keyset string // file of the dev process; empty: nothing is encrypted
}

// agents are the definitions of the tests in addition to the built-in one.
const agents = `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: tools}
spec: {tools: [crash, gate, panics]}
---
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: impatient}
spec: {tools: [gate], toolTimeout: 200ms}
---
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: patient}
spec: {tools: [gate], toolTimeout: 24h}
---
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: endless}
spec: {tools: [write_file], maxSteps: 10000}
`

// buoysAgent has the tools that tell a test who called them.
const buoysAgent = `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: buoys}
spec: {tools: [moor, cast_off], maxSteps: 10000}
`

// open starts `longshore dev` without a worker. A silent worker keeps a task for ackWait. More may be set.
func open(t *testing.T, ackWait time.Duration, script func(*modelCall) reply, more ...string) *town {
	t.Helper()
	w := &town{t: t, dir: t.TempDir(), data: t.TempDir(), model: newModel(t, script)}
	defs, ready := t.TempDir(), filepath.Join(t.TempDir(), "ready.json")
	if err := os.WriteFile(filepath.Join(defs, "tools.yaml"), []byte(agents), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(defs, "buoys.yaml"), []byte(buoysAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(defs, "careful.yaml"), []byte(carefulAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(defs, "delegates.yaml"), []byte(delegatesAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(defs, "hasty.yaml"), []byte(hastyAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append([]string{"LONGSHORE_ACK_WAIT=" + ackWait.String()}, more...)
	if slices.Contains(more, "LONGSHORE_ENCRYPTION=on") {
		w.keyset = fleet.KeysetBeside(w.data)
	}
	w.dev = spawn(t, "dev", env, binary, "dev", "--no-worker", "--data", w.data, "--agents", defs, "--addr", "127.0.0.1:0",
		"--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0", "--ready-file", ready)
	w.dev.line("longshore is ready")
	raw, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	var at struct {
		API   string `json:"api"`
		NATS  string `json:"nats"`
		Redis string `json:"redis"`
	}
	if err := json.Unmarshal(raw, &at); err != nil {
		t.Fatal(err)
	}
	w.nats, w.redis, w.api = at.NATS, at.Redis, at.API
	w.connect()
	return w
}

// openOn starts a dispatcher in the test's process, on servers that the test can stop and start.
func openOn(t *testing.T, servers *embedded.Servers, ackWait time.Duration, script func(*modelCall) reply) *town {
	t.Helper()
	w := &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL, model: newModel(t, script)}
	ctx, cancel := context.WithCancel(context.Background())
	s := settings.Dispatcher{
		NATS: settings.NATS{URL: servers.NATSURL}, HTTPAddr: "127.0.0.1:0", Replicas: 1, Sweep: time.Minute, EventsMaxAge: 2 * time.Hour,
		Serving: settings.Serving{AckWait: ackWait, Retention: time.Hour},
	}
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- fleet.Dispatcher(ctx, s, "test", testLog(t, "dispatcher"), func(string) { close(ready) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("dispatcher: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the dispatcher is not ready")
	}
	w.connect()
	return w
}

// connect gives the test a connection of its own.
func (w *town) connect() {
	w.t.Helper()
	var err error
	if w.nc, err = bus.Connect(w.t.Context(), bus.ConnConfig{URL: w.nats, Name: "test"}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.nc.Close)
	if w.bus, err = bus.Open(w.t.Context(), w.nc, bus.Config{}); err != nil {
		w.t.Fatal(err)
	}
	if w.client, err = dispatcher.New(w.t.Context(), w.nc); err != nil {
		w.t.Fatal(err)
	}
}

// worker starts `longshore worker` and waits until it is ready. Later variables win.
func (w *town) worker(name string, env ...string) *process {
	w.t.Helper()
	p := spawn(w.t, name, append(w.workerEnv(name), env...), binary, "worker")
	p.line(`"message":"ready"`)
	return p
}

// toolWorker starts a worker with the tools crash and gate.
func (w *town) toolWorker(name string, env ...string) *process {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	p := spawn(w.t, name, append(append(w.workerEnv(name), roleVariable+"=worker"), env...), self)
	p.line(`"message":"ready"`)
	return p
}

func (w *town) workerEnv(name string) []string {
	env := append(w.model.env(apiKey),
		"NATS_URL="+w.nats, "REDIS_URL="+w.redis, "LONGSHORE_WORKER="+name, "LONGSHORE_WORKSPACES="+w.dir)
	if len(name)%2 == 0 { // some fleets have both
		env = append(env, "LONGSHORE_EVENT_BUNDLES=true")
	}
	if w.keyset != "" {
		env = append(env, "LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET="+w.keyset)
	}
	return env
}

// logs are the logs of the runs, opened with the keyset of the dev process.
func (w *town) logs() *runlogs.Store {
	w.t.Helper()
	keys, err := fleet.Keys(w.bus, &settings.Encryption{Keyset: w.keyset})
	if err != nil {
		w.t.Fatal(err)
	}
	return runlogs.New(w.bus, runlogs.Config{Sealer: keys})
}

// submit submits a task and returns its run.
func (w *town) submit(text string, change ...func(*messages.Task)) messages.Ref {
	w.t.Helper()
	task := messages.Task{Input: messages.TextInput(text)}
	for _, c := range change {
		c(&task)
	}
	id, err := w.client.Submit(w.t.Context(), task)
	if err != nil {
		w.t.Fatal(err)
	}
	return dispatcher.Run(id)
}

// asked waits until a run waits for an approval of a call that is not the one before.
func (w *town) asked(run messages.Ref, before string) (asked control.WaitingApproval) {
	w.t.Helper()
	eventually(w.t, "the run asks", func() bool {
		list, err := w.client.Approvals().List(w.t.Context(), run.Tenant, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		i := slices.IndexFunc(list.Approvals, func(a control.WaitingApproval) bool { return a.ID == run.Run && a.Call != before })
		if i >= 0 {
			asked = list.Approvals[i]
		}
		return i >= 0
	})
	return asked
}

// deny refuses a call that waits.
func (w *town) deny(run messages.Ref, call string) {
	w.t.Helper()
	if _, err := w.client.Approvals().Deny(w.t.Context(), run, dispatcher.Decision{Call: call, By: "ann"}); err != nil {
		w.t.Error(err)
	}
}

func withTools(t *messages.Task) { t.Agent = "tools" }

// watching is a watcher of a run.
type watching struct {
	w      *town
	run    messages.Ref
	events []messages.Event
	err    error
	done   chan struct{}
}

// watch begins to watch a run.
func (w *town) watch(run messages.Ref) *watching {
	g := &watching{w: w, run: run, done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	go func() {
		defer close(g.done)
		for e, err := range w.client.Watch(ctx, run) {
			if err != nil {
				g.err = err
				return
			}
			g.events = append(g.events, e)
		}
	}()
	w.t.Cleanup(func() { cancel(); <-g.done })
	return g
}

// end waits for the end of the run, checks that the watcher saw each event once and in order, and returns the result.
func (g *watching) end() *messages.AgentResult {
	g.w.t.Helper()
	select {
	case <-g.done:
	case <-time.After(patience):
		g.w.tell(g.run)
		g.w.t.Fatalf("run %s does not end", g.run)
	}
	if g.err != nil {
		g.w.tell(g.run)
		g.w.t.Fatalf("watch %s: %v after %v", g.run, g.err, names(g.events))
	}
	for i, e := range g.events {
		if e.Number() != uint64(i)+1 || !ours(e.Name()) {
			g.w.t.Errorf("event %d of %s: number %s, %s", i+1, g.run, e.Sequence, e.Type)
		}
	}
	g.w.once(g.run)
	r, err := g.w.client.Result(g.w.t.Context(), g.run)
	if err != nil {
		g.w.t.Fatal(err)
	}
	if g.w.t.Failed() {
		g.w.tell(g.run)
	}
	return r
}

// ours reports whether an event is one of a run, not a marker that stands for some that were not seen.
func ours(name string) bool { return !strings.Contains(name, ".") }

// once checks what is stored of a run's events: its end once, and nothing with a number of another event.
func (w *town) once(run messages.Ref) {
	w.t.Helper()
	ends, byNumber := 0, map[uint64]messages.Event{}
	for e, err := range events.New(w.bus).Events(w.t.Context(), run.EventFilter(), time.Time{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if e.Name() == messages.EventRunFinished {
			ends++
		}
		if first, twice := byNumber[e.Number()]; twice {
			if diff := cmp.Diff(first, e); diff != "" {
				w.t.Errorf("two events %s of %s: %s", e.Sequence, run, diff)
			}
		}
		byNumber[e.Number()] = e
	}
	if ends != 1 {
		w.t.Errorf("%d run_finished of %s are stored, want 1", ends, run)
	}
}

// log reads a run's log.
func (w *town) log(run messages.Ref) []record.Entry {
	w.t.Helper()
	var out []record.Entry
	for e, err := range w.logs().Read(w.t.Context(), run, 0, runlog.Tail) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// tell shows a run's log.
func (w *town) tell(run messages.Ref) {
	w.t.Helper()
	for _, e := range w.log(run) {
		w.t.Logf("%s %d: %v attempt %d phase %s claim %s", run, e.Seq, e.Head.Kinds, e.Head.Attempt, e.Head.Phase, e.Head.Claim)
	}
}

// owners are the workers that claimed a run, in order.
func (w *town) owners(run messages.Ref) []string {
	w.t.Helper()
	var out []string
	for _, e := range w.log(run) {
		for _, r := range e.Records {
			if c, ok := r.(*record.Claimed); ok {
				out = append(out, c.Worker)
			}
		}
	}
	return out
}

// names are those of events.
func names(events []messages.Event) []string {
	out := make([]string, len(events))
	for i := range events {
		out[i] = events[i].Name()
	}
	return out
}

// completed checks a result's status and text.
func completed(t *testing.T, r *messages.AgentResult, text string) {
	t.Helper()
	if r.Status != messages.StatusCompleted || r.Result != any(text) {
		t.Errorf("result: %s %v, error %v; want %q", r.Status, r.Result, r.Error, text)
	}
}

// address waits until the process is ready, and is where it serves HTTP.
func (p *process) address() string {
	p.t.Helper()
	var ready struct {
		Data struct {
			HTTP string `json:"http"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(p.line(`"message":"ready"`)), &ready); err != nil {
		p.t.Fatal(err)
	}
	return ready.Data.HTTP
}

// metrics reads a worker's metrics: values by name with labels.
func metrics(t *testing.T, p *process) map[string]string {
	t.Helper()
	return metricsAt(t, "http://"+p.address())
}

// metricsAt reads those of the process at an address.
func metricsAt(t *testing.T, url string) map[string]string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(name, "#") {
			out[name] = value
		}
	}
	return out
}

// testLog is a log of the test.
func testLog(t *testing.T, name string) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(logWriter{t}, nil)).With("process", name)
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// heartbeats receives the in-progress acknowledgements of workers, as long as the caller reads from it.
func (w *town) heartbeats() <-chan struct{} {
	w.t.Helper()
	beats := make(chan struct{})
	for _, name := range w.bus.Partitions(bus.StreamTasks).Names() {
		_, err := w.nc.Subscribe("$JS.ACK."+name+".>", func(m *nats.Msg) {
			if string(m.Data) != "+WPI" {
				return
			}
			select {
			case beats <- struct{}{}:
			default:
			}
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return beats
}

// hear waits for some heartbeats, or for the end of the run.
func (g *watching) hear(n int) {
	g.w.t.Helper()
	beats := g.w.heartbeats()
	for range n {
		select {
		case <-beats:
		case <-g.done:
			return
		case <-time.After(patience):
			g.w.t.Fatal("no heartbeat comes")
		}
	}
}
