//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	auditcmd "github.com/longshore-run/longshore/deploy/command/audit"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/observability/audit"
)

// guardedFleet is a dispatcher and a worker, each with its own user.
type guardedFleet struct {
	g      *guarded
	http   string
	keys   string // of LONGSHORE_CONTROL_KEYS
	work   func(name string) (stop func())
	client *dispatcher.Client // the operator's
	model  *modelServer

	encryption settings.Encryption // of all processes
}

// guardedAgents are agents that ask people.
const guardedAgents = carefulAgent + `---
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: hasty}
spec: {tools: [write_file], approve: {always: [write_file], expires: 1s}}
---
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: asker}
spec: {tools: [ask_human]}
`

func startGuardedFleet(t *testing.T, script func(*modelCall) reply) *guardedFleet {
	t.Helper()
	f := &guardedFleet{g: startGuarded(t), model: newModel(t, script), encryption: encrypted(t)}
	defs := t.TempDir()
	for i, def := range strings.Split(guardedAgents, "---\n") {
		if err := os.WriteFile(filepath.Join(defs, fmt.Sprintf("agent-%d.yaml", i)), []byte(def), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) settings.NATS {
		return settings.NATS{URL: f.g.address(user), InboxPrefix: inboxOf(user)}
	}
	key, err := bus.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(seed, []byte(key.Seed()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.keys = key.Public()
	f.http, _ = f.process(t, "dispatcher", func(ctx context.Context, ready func(string)) error {
		return fleet.Dispatcher(ctx, settings.Dispatcher{
			NATS: as("dispatcher"), HTTPAddr: "127.0.0.1:0", Agents: defs, Replicas: 1, Sweep: time.Hour, EventsMaxAge: 2 * time.Hour,
			Serving: settings.Serving{
				AckWait: guardedAckWait, Retention: time.Hour, LiteTimeout: patience,
				RunIndex: settings.RunIndex{Index: filepath.Join(t.TempDir(), "index.db")},
			},
			SigningKey: seed, ControlKeys: f.keys, Encryption: f.encryption,
		}, "test", testLog(t, "dispatcher"), ready)
	})
	files := t.TempDir()
	f.work = func(name string) func() {
		_, stop := f.process(t, name, func(ctx context.Context, ready func(string)) error {
			return fleet.Worker(ctx, settings.Worker{
				NATS:     as("worker"),
				Models:   settings.Models{OpenAIKey: apiKey, OpenAIURL: f.model.URL + "/v1", OpenAIModel: "fake"},
				RedisURL: "none", HTTPAddr: "127.0.0.1:0", Name: name, Runs: settings.Runs{
					Slots: 16, DrainTimeout: time.Second, MaxAttempts: 5,
					ModelTimeout: patience, MemoryTTL: time.Hour,
				}, Workspaces: files, ControlKeys: f.keys, Encryption: f.encryption,
			}, "test", testLog(t, name), fleet.Parts{}, ready)
		})
		return stop
	}
	if f.client, err = dispatcher.New(t.Context(), f.g.connect("operator")); err != nil {
		t.Fatal(err)
	}
	return f
}

// process runs a process of the fleet in this one, and returns its HTTP address and what ends it.
func (f *guardedFleet) process(t *testing.T, name string, run func(ctx context.Context, ready func(string)) error) (string, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, func(addr string) { ready <- addr }) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	t.Cleanup(stop)
	select {
	case addr := <-ready:
		return addr, stop
	case <-time.After(patience):
		t.Fatalf("%s is not ready: %s", name, strings.Join(subjectsDenied(f.g.violations()), "\n"))
		return "", nil
	}
}

// Everything that a fleet does is done with the permissions of deploy/nats, and the server refuses none of it. What this
// test lists is to be added there, to the role of the user that it names.
func TestPermissionsOfAFleet(t *testing.T) {
	f := startGuardedFleet(t, guardedScript)
	f.work("worker")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const grace = 3 * time.Second // for more of them to be listed: who lacks a permission hangs
	var once sync.Once
	f.g.onRefusal(func() { once.Do(func() { time.AfterFunc(grace, cancel) }) })
	var wg sync.WaitGroup
	for name, do := range map[string]func(context.Context, *guardedFleet) error{
		"a task":           guardedTask,
		"a large task":     guardedBlob,
		"a cancel":         guardedCancel,
		"an approval":      guardedApproval,
		"an expiry":        guardedExpiry,
		"a question":       guardedQuestion,
		"a session":        guardedSession,
		"a batch":          guardedBatch,
		"a fork":           guardedFork,
		"a dead letter":    guardedDead,
		"agents, prompts":  guardedCatalog,
		"HTTP":             guardedHTTP,
		"live text":        guardedLive,
		"lists and a log":  guardedReads,
		"an auditor":       guardedAudit,
		"a tenant's roles": guardedTenant,
	} {
		wg.Go(func() {
			if err := do(ctx, f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	if err := f.sweep(ctx); err != nil {
		t.Errorf("a sweep: %v", err)
	}
	for _, v := range subjectsDenied(f.g.violations()) {
		t.Errorf("denied to %s", v)
	}
}

// sweep has a worker look at all runs, and waits until the queue is empty.
func (f *guardedFleet) sweep(ctx context.Context) error {
	b, err := bus.Open(ctx, f.g.connect("dispatcher"), bus.Config{})
	if err == nil {
		err = taskqueue.NewSweeps(b).ScheduleSweep(ctx, time.Hour)
	}
	if err != nil {
		return err
	}
	return f.idle(ctx)
}

// idle waits until no task message is left.
func (f *guardedFleet) idle(ctx context.Context) error {
	js, err := jetstream.New(f.g.connect("dispatcher"))
	if err != nil {
		return err
	}
	for {
		stream, err := js.Stream(ctx, bus.StreamTasks)
		if err != nil {
			return err
		}
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter("lanes.>"))
		if err != nil || len(info.State.Subjects) == 0 {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%v are left: %w", info.State.Subjects, context.Cause(ctx))
		}
	}
}

// guardedScript writes a file and ends, unless the task says otherwise.
func guardedScript(c *modelCall) reply {
	switch {
	case c.Turn > 0:
		return reply{Text: "Done: " + c.Last}
	case strings.HasPrefix(c.Task, "hold"):
		return reply{Hold: true}
	case strings.HasPrefix(c.Task, "ask"):
		return reply{Tool: "ask_human", Args: map[string]string{"question": "Which?"}}
	case strings.HasPrefix(c.Task, "write"):
		return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "hi"}}
	default:
		return reply{Text: "Done."}
	}
}

// run submits a task and waits for its end.
func (f *guardedFleet) run(ctx context.Context, task messages.Task, want messages.Status) (messages.Ref, error) {
	id, err := f.client.Submit(ctx, task)
	if err != nil {
		return messages.Ref{}, err
	}
	return dispatcher.Run(id), f.ends(ctx, dispatcher.Run(id), want)
}

func (f *guardedFleet) ends(ctx context.Context, run messages.Ref, want messages.Status) error {
	r, err := f.client.Wait(ctx, run)
	switch {
	case err != nil:
		return err
	case r.Status != want:
		return fmt.Errorf("%s is %s, want %s", run, r.Status, want)
	}
	return nil
}

// waits returns once a run waits for something.
func (f *guardedFleet) waits(ctx context.Context, run messages.Ref, what string) error {
	for e, err := range f.client.Watch(ctx, run) {
		if err != nil {
			return err
		}
		var d messages.RunWaiting
		if e.Name() == messages.EventRunWaiting && json.Unmarshal(e.Data, &d) == nil && d.Reason == what {
			return nil
		}
	}
	return fmt.Errorf("%s ended and never waited for %s", run, what)
}

func guardedTask(ctx context.Context, f *guardedFleet) error {
	_, err := f.run(ctx, messages.Task{Input: messages.TextInput("write it")}, messages.StatusCompleted)
	return err
}

func guardedBlob(ctx context.Context, f *guardedFleet) error {
	_, err := f.run(ctx, messages.Task{Input: messages.TextInput("large " + strings.Repeat("x", 200<<10))}, messages.StatusCompleted)
	return err
}

func guardedCancel(ctx context.Context, f *guardedFleet) error {
	id, err := f.client.Submit(ctx, messages.Task{Input: messages.TextInput("hold on")})
	if err != nil {
		return err
	}
	select {
	case <-f.model.held:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, err := f.client.Cancel(ctx, dispatcher.Run(id), "enough"); err != nil {
		return err
	}
	return f.ends(ctx, dispatcher.Run(id), messages.StatusCancelled)
}

func guardedApproval(ctx context.Context, f *guardedFleet) error {
	id, err := f.client.Submit(ctx, messages.Task{Agent: "careful", Input: messages.TextInput("write when you may")})
	if err == nil {
		err = f.waits(ctx, dispatcher.Run(id), queue.ParkApproval)
	}
	if err != nil {
		return err
	}
	list, err := f.client.Approvals().List(ctx, messages.DefaultTenant, 0)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list.Approvals, func(a control.WaitingApproval) bool { return a.ID == id })
	if i < 0 {
		return errors.New("it is not in the list")
	}
	if _, err := f.client.Approvals().Approve(ctx, dispatcher.Run(id), dispatcher.Decision{Call: list.Approvals[i].Call}); err != nil {
		return err
	}
	return f.ends(ctx, dispatcher.Run(id), messages.StatusCompleted)
}

func guardedExpiry(ctx context.Context, f *guardedFleet) error {
	_, err := f.run(ctx, messages.Task{Agent: "hasty", Input: messages.TextInput("write soon")}, messages.StatusCompleted)
	return err
}

func guardedQuestion(ctx context.Context, f *guardedFleet) error {
	id, err := f.client.Submit(ctx, messages.Task{Agent: "asker", Input: messages.TextInput("ask me")})
	if err == nil {
		err = f.waits(ctx, dispatcher.Run(id), queue.ParkAnswer)
	}
	if err != nil {
		return err
	}
	if _, err := f.client.Approvals().Answer(ctx, dispatcher.Run(id), control.AnswerRequest{Text: "that one"}); err != nil {
		return err
	}
	return f.ends(ctx, dispatcher.Run(id), messages.StatusCompleted)
}

func guardedSession(ctx context.Context, f *guardedFleet) error {
	var runs []messages.Ref
	for range 2 {
		id, err := f.client.Submit(ctx, messages.Task{Session: "talk", Input: messages.TextInput("write in turn")})
		if err != nil {
			return err
		}
		runs = append(runs, dispatcher.Run(id))
	}
	for _, r := range runs {
		if err := f.ends(ctx, r, messages.StatusCompleted); err != nil {
			return err
		}
	}
	if _, err := f.client.Sessions().Get(ctx, messages.DefaultTenant, "talk"); err != nil {
		return err
	}
	_, err := f.client.Sessions().Delete(ctx, messages.DefaultTenant, "talk")
	return err
}

func guardedBatch(ctx context.Context, f *guardedFleet) error {
	var lines strings.Builder
	for i := range 3 {
		fmt.Fprintf(&lines, `{"custom_id":"line-%d","input":"write line %d"}`+"\n", i, i)
	}
	head, err := f.client.Batches().Submit(ctx, dispatcher.BatchSpec{}, dispatcher.ReadLines(strings.NewReader(lines.String())))
	if err != nil {
		return err
	}
	for !head.Status.Ended() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the batch is %s: %w", head.Status, context.Cause(ctx))
		}
		if head, err = f.client.Batches().Get(ctx, head.BatchRef); err != nil {
			return err
		}
	}
	if head.Counts.Completed != 3 {
		return fmt.Errorf("%d of 3 lines are completed", head.Counts.Completed)
	}
	for _, err := range f.client.Batches().Results(ctx, head.BatchRef, dispatcher.ByInput) {
		if err != nil {
			return err
		}
	}
	return nil
}

func guardedFork(ctx context.Context, f *guardedFleet) error {
	run, err := f.run(ctx, messages.Task{Input: messages.TextInput("write to be forked")}, messages.StatusCompleted)
	if err != nil {
		return err
	}
	forked, err := f.client.Runs().Fork(ctx, run, control.ForkRequest{At: 2})
	if err != nil {
		return err
	}
	return f.ends(ctx, dispatcher.Run(forked.ID), messages.StatusCompleted)
}

func guardedDead(ctx context.Context, f *guardedFleet) error {
	nc := f.g.connect("acme-publisher")
	if err := nc.Publish("tasks.normal.acme.junk", []byte("no task")); err != nil {
		return err
	}
	return f.ends(ctx, messages.Ref{Tenant: "acme", Run: "junk"}, messages.StatusFailed)
}

func guardedCatalog(ctx context.Context, f *guardedFleet) error {
	admin, err := dispatcher.New(ctx, f.g.connect("admin"))
	if err != nil {
		return err
	}
	if _, err := admin.Prompts().Put(ctx, messages.Prompt{ID: "hello", Text: "Be kind."}, nil); err != nil {
		return fmt.Errorf("put a prompt: %w", err)
	}
	def := messages.Definition{Name: "prompted", Tools: []string{"write_file"}, Prompt: &messages.PromptRef{ID: "hello"}}
	if _, err := admin.Agents().Apply(ctx, def, "ann", nil); err != nil {
		return fmt.Errorf("apply an agent: %w", err)
	}
	if _, err := admin.Agents().List(ctx); err != nil {
		return fmt.Errorf("list agents: %w", err)
	}
	_, err = f.run(ctx, messages.Task{Agent: "prompted", Input: messages.TextInput("write")}, messages.StatusCompleted)
	return err
}

func guardedHTTP(ctx context.Context, f *guardedFleet) error {
	for _, r := range []struct{ method, path, body string }{
		{http.MethodPost, "/v1/tasks?wait=20s", `{"input":"write by HTTP","id":"http-1"}`},
		{http.MethodGet, "/v1/tasks/http-1", ""},
		{http.MethodGet, "/v1/tasks/http-1/events", ""},
		{http.MethodGet, "/v1/tasks?limit=5", ""},
		{http.MethodGet, "/v1/approvals", ""},
		{http.MethodGet, "/v1/agents", ""},
	} {
		req, err := http.NewRequestWithContext(ctx, r.method, "http://"+f.http+r.path, strings.NewReader(r.body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		if resp.StatusCode >= http.StatusMultipleChoices {
			return fmt.Errorf("%s %s: %s %s", r.method, r.path, resp.Status, body)
		}
	}
	return nil
}

func guardedLive(ctx context.Context, f *guardedFleet) error {
	run := dispatcher.Run("live-1")
	live, stop := context.WithCancel(ctx)
	defer stop()
	began := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		close(began)
		for range f.client.Live(live, run) { // that it may be heard is enough
		}
	})
	<-began
	_, err := f.run(ctx, messages.Task{ID: run.Run, Input: messages.TextInput("write aloud")}, messages.StatusCompleted)
	stop()
	wg.Wait()
	return err
}

func guardedReads(ctx context.Context, f *guardedFleet) error {
	run, err := f.run(ctx, messages.Task{Input: messages.TextInput("write to be read")}, messages.StatusCompleted)
	if err != nil {
		return err
	}
	if _, err := f.client.Runs().List(ctx, dispatcher.RunFilter{}); err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	if _, err := f.client.Batches().List(ctx, messages.DefaultTenant, 0); err != nil {
		return fmt.Errorf("list batches: %w", err)
	}
	if _, err := f.client.Status(ctx, run); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	for _, err := range f.client.Runs().Log(ctx, run) {
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
	}
	for _, err := range f.client.Runs().Logs(ctx, run, dispatcher.LogOptions{Follow: true}) {
		if err != nil {
			return fmt.Errorf("log entries: %w", err)
		}
	}
	return nil
}

func guardedAudit(ctx context.Context, f *guardedFleet) error {
	run, err := f.run(ctx, messages.Task{Input: messages.TextInput("write for the audit")}, messages.StatusCompleted)
	if err != nil {
		return err
	}
	b, err := bus.Open(ctx, f.g.connect("auditor"), bus.Config{Streams: []string{bus.StreamEvents, bus.StreamRuns}})
	if err != nil {
		return err
	}
	n := 0
	keys, err := fleet.Keys(b, &f.encryption)
	if err != nil {
		return err
	}
	for _, err := range runlogs.New(b, runlogs.Config{Sealer: keys}).Read(ctx, run, 0, ^uint64(0)) {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		n++
	}
	for _, err := range events.New(b).Events(ctx, run.EventFilter(), time.Time{}) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		n++
	}
	for _, err := range events.New(b).Watch(ctx, run) {
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	for _, err := range logentries.New(b).Read(ctx, run, logentries.Query{}) {
		if err != nil {
			return fmt.Errorf("read log entries: %w", err)
		}
	}
	if n < 3 {
		return fmt.Errorf("the auditor sees %d entries and events", n)
	}
	return guardedAuditor(ctx, f, run)
}

// guardedAuditor runs an auditor until it has compared a run, and holds that nothing is wrong with any.
func guardedAuditor(ctx context.Context, f *guardedFleet, run messages.Ref) error {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	key, err := audit.NewKey()
	if err != nil {
		return err
	}
	s := settings.Audit{
		NATS: settings.NATS{URL: f.g.address("auditor"), InboxPrefix: inboxOf("auditor")}, Dir: filepath.Join(dir, "audit"),
		KeyFile: filepath.Join(dir, "key"), HTTPAddr: "127.0.0.1:0", ControlKeys: f.keys, Store: audit.Bucket, Encryption: f.encryption,
	}
	if err := os.WriteFile(s.KeyFile, []byte(key.Seed()), 0o600); err != nil {
		return err
	}
	auditing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- auditcmd.Run(auditing, s, "test", slog.New(slog.DiscardHandler), nil) }()
	compared := false
	var wrong error
	for !compared && wrong == nil && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond) // between looks at the folder
		_, err := audit.Verify(ctx, audit.VerifyConfig{Dir: s.Dir, Entry: func(_ string, e *audit.Entry) error {
			compared = compared || e.Kind == audit.KindCompared && e.Subject == run.LogSubject()
			if e.Kind == audit.KindFinding {
				wrong = fmt.Errorf("the auditor finds something: %s %s", e.Subject, e.Body)
			}
			return nil
		}})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			wrong = err
		}
	}
	stop()
	if err := errors.Join(wrong, <-ended); err != nil {
		return err
	}
	if !compared {
		return errors.New("the auditor compares nothing")
	}
	return guardedCopies(ctx, f, s.Dir, filepath.Join(dir, "copy"))
}

// guardedCopies gets back what an auditor has copied before it ended.
func guardedCopies(ctx context.Context, f *guardedFleet, dir, to string) error {
	js, err := jetstream.New(f.g.connect("auditor"))
	if err != nil {
		return err
	}
	store, err := js.ObjectStore(ctx, audit.Bucket)
	if err != nil {
		return err
	}
	if _, err := audit.Fetch(ctx, store, to); err != nil {
		return err
	}
	was, err := audit.Verify(ctx, audit.VerifyConfig{Dir: dir})
	if err != nil {
		return err
	}
	copied, err := audit.Verify(ctx, audit.VerifyConfig{Dir: to})
	if err == nil && (copied.Findings > 0 || copied != was) {
		return fmt.Errorf("the audit is %+v, its copy %+v", was, copied)
	}
	return err
}

func guardedTenant(ctx context.Context, f *guardedFleet) error {
	client := func(user string) (*dispatcher.Client, error) {
		return dispatcher.NewTenant(ctx, f.g.connect(user), "acme")
	}
	submitter, err := client("acme-submitter")
	if err != nil {
		return err
	}
	approver, err := client("acme-approver")
	if err != nil {
		return err
	}
	viewer, err := client("acme-viewer")
	if err != nil {
		return err
	}
	id, err := submitter.Submit(ctx, messages.Task{Tenant: "acme", Agent: "careful", Input: messages.TextInput("write for acme")})
	if err != nil {
		return err
	}
	run := messages.Ref{Tenant: "acme", Run: id}
	for e, err := range viewer.Watch(ctx, run) {
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if e.Name() != messages.EventRunWaiting {
			continue
		}
		list, err := approver.Approvals().List(ctx, "acme", 0)
		if err != nil || len(list.Approvals) != 1 {
			return fmt.Errorf("approvals: %v, %w", list, err)
		}
		if _, err := approver.Approvals().Approve(ctx, run, dispatcher.Decision{Call: list.Approvals[0].Call, By: "ann"}); err != nil {
			return fmt.Errorf("approve: %w", err)
		}
	}
	for _, err := range viewer.Runs().Logs(ctx, run, dispatcher.LogOptions{}) {
		if !errors.Is(err, dispatcher.ErrBound) {
			return fmt.Errorf("log entries: %w", err)
		}
	}
	r, err := submitter.Result(ctx, run)
	if err != nil || r.Status != messages.StatusCompleted {
		return fmt.Errorf("result: %v, %w", r, err)
	}
	return nil
}
