package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/dispatcher/service/runindex"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/memory/longterm/served"
)

// fleet is a real one without workers: a server, its streams and a dispatcher.
type fleet struct {
	servers    *embedded.Servers
	controller *runlog.Controller
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetWith(t, func(*bus.Bus) runindex.Index { return nil })
}

// newFleetWith has a dispatcher with an index of runs.
func newFleetWith(t *testing.T, index func(*bus.Bus) runindex.Index) *fleet {
	t.Helper()
	f := newStreams(t)
	nc := embeddedtest.Conn(t, f.servers)
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	f.controller = &runlog.Controller{
		Log: logs, Queue: taskqueue.New(b), Events: logs, Sessions: sessions.New(b, logs), Asks: semaphores.New(b), Workspaces: files.New(b), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) },
	}
	s := service.New(service.Config{Conn: nc, Bus: b, Controller: f.controller, Version: "0.0.0", Index: index(b), Memory: served.New(memstore.New(memstore.Config{}), "")})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		// A test may end while the dispatcher still starts what it does on the side.
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	return f
}

// newStreams is a fleet without a dispatcher.
func newStreams(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{servers: embeddedtest.Start(t, embedded.Config{NoRedis: true})}
	if err := bus.Setup(t.Context(), embeddedtest.Conn(t, f.servers), bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) connect(ctx context.Context) (*dispatcher.Client, func(), error) {
	nc, err := f.servers.Conn()
	if err != nil {
		return nil, nil, err
	}
	c, err := dispatcher.New(ctx, nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return c, nc.Close, nil
}

// run executes a command line that must succeed.
func (f *fleet) run(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := executeWith(t, f.connect, "from the standard input", args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return stdout, stderr
}

// raw is run with an output that is no terminal.
func (f *fleet) raw(t *testing.T, args ...string) string {
	t.Helper()
	root := &cobra.Command{Use: "longshore"}
	root.AddCommand(cli.Commands(f.connect, report.Options{Raw: true})...)
	cli.Usage(root)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %v, told %q", args, err, &errs)
	}
	return out.String()
}

// fails executes a command line that must fail with a text.
func (f *fleet) fails(t *testing.T, want string, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := executeWith(t, f.connect, "", args...)
	if err == nil {
		t.Fatalf("%v: no error", args)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("%v: %s", args, diff)
	}
	if _, is := errors.AsType[*render.UsageError](err); is {
		t.Errorf("%v: a usage error", args)
	}
	return stdout, stderr
}

// execute executes a command line until ctx ends.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer, args ...string) error {
	root.SetOut(io.Discard)
	root.SetErr(stderr)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// work writes the log of a run as a worker would, from its claim to its end, and takes its task from the queue.
func (f *fleet) work(t *testing.T, run messages.Ref, result messages.AgentResult) {
	t.Helper()
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Say\x1b[2J hello.")}
	task.SetDefaults()
	now := time.Now()
	result.ID, result.StartedAt, result.FinishedAt, result.Steps = run.Run, now, now, 1
	if _, err := f.controller.Begin(t.Context(), run,
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: now},
		&record.Claimed{Claim: "c", Worker: "w", Ticket: 1},
		&record.StepStarted{Step: 1},
		&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("Hello.")}, Stop: messages.StopEnd},
		&record.StepEnded{Step: 1, Status: messages.StepCompleted},
		&record.Finished{Result: result},
	); err != nil {
		t.Fatal(err)
	}
	if err := f.controller.Settle(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

func TestSubmit(t *testing.T) {
	f := newFleet(t)
	stdout, stderr := f.run(t, "submit", "Say hello.", "--id", "greeting")
	if diff := cmp.Diff([]string{"greeting\n", "watch it with `longshore watch greeting`\n"}, []string{stdout, stderr}); diff != "" {
		t.Error(diff)
	}
	if again, _ := f.run(t, "submit", "Say hello.", "--id", "greeting"); again != "greeting\n" {
		t.Errorf("the same task again: %q", again)
	}
	f.fails(t, "the id greeting belongs to another task: choose another --id, or leave it out to get a new one",
		"submit", "Say goodbye.", "--id", "greeting")
	stdout, stderr = f.run(t, "submit", "-", "--id", "piped", "--tenant", "acme", "-o", "json")
	if diff := cmp.Diff([]string{`{"id":"piped"}` + "\n", ""}, []string{stdout, stderr}); diff != "" {
		t.Error(diff)
	}
	f.run(t, "submit", "from the standard input", "--id", "piped", "--tenant", "acme") // the same task
	_, stderr = f.run(t, "submit", "x", "--id", "other", "--tenant", "acme")
	if want := "watch it with `longshore watch other --tenant acme`\n"; stderr != want {
		t.Errorf("got %q, want %q", stderr, want)
	}
	if id, _ := f.run(t, "submit", "x"); !strict.ValidToken(strings.TrimSpace(id)) {
		t.Errorf("the new id is %q", id)
	}
}

func TestSubmitToUnknownAgent(t *testing.T) {
	f := newFleet(t)
	_, _, err := executeWith(t, f.connect, "", "submit", "x", "--agent", "unknown")
	if !errors.Is(err, dispatcher.ErrUnknownAgent) || !strings.Contains(err.Error(), "unknown") ||
		!strings.HasSuffix(err.Error(), `leave out --agent for the agent "default"`) {
		t.Errorf("got %v", err)
	}
}

func TestSubmittedTaskHoldsEveryFlag(t *testing.T) {
	f := newFleet(t)
	f.run(t, "submit", "x", "--id", "full", "--agent", "default", "--session", "s", "--priority", "high",
		"--label", "team=core", "--label", "q=a=b", "--max-steps", "3", "--context", ` {"a": 1} `)
	c, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	// The same id is accepted for the same task alone.
	if _, err := c.Submit(t.Context(), messages.Task{
		ID: "full", Session: "s", Priority: messages.PriorityHigh, Input: messages.TextInput("x"),
		Labels: map[string]string{"team": "core", "q": "a=b"}, Limits: &messages.Limits{MaxSteps: 3},
		Context: json.RawMessage(`{"a":1}`),
	}); err != nil {
		t.Error(err)
	}
}

func TestAttach(t *testing.T) {
	f := newFleet(t)
	dir := t.TempDir()
	png, pdf := []byte("\x89PNG\r\n\x1a\nrest"), []byte("%PDF-1.7 rest")
	for name, data := range map[string][]byte{"a.png": png, "b.pdf": pdf, "c.txt": []byte("three ships\n"), "d.bin": {0xff, 0xfe}} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	f.run(t, "submit", "Compare them.", "--id", "attached", "--attach", at("a.png"), "--attach", at("b.pdf"), "--attach", at("c.txt"))
	c, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := c.Submit(t.Context(), messages.Task{ID: "attached", Input: messages.Input{ // is accepted for the same task alone
		{Text: "Compare them."},
		{Image: &messages.Image{MediaType: "image/png", Data: png}},
		{File: &messages.File{Name: "b.pdf", MediaType: messages.TypePDF, Data: pdf}},
		{Text: "\n\nc.txt:\nthree ships\n"},
	}}); err != nil {
		t.Error(err)
	}
	if out, _ := f.run(t, "status", "attached"); !strings.Contains(out, "Compare them.[image png, 1 kB][file b.pdf, 1 kB]") {
		t.Errorf("status: %q", out)
	}
	_, _, err = executeWith(t, f.connect, "", "submit", "x", "--attach", at("d.bin"))
	if _, is := errors.AsType[*render.UsageError](err); !is || err.Error() != at("d.bin")+" is neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text in UTF-8" {
		t.Errorf("a file of no known kind: %v", err)
	}
}

func TestCancelQueuedRun(t *testing.T) {
	f := newFleet(t)
	f.run(t, "submit", "Say hello.", "--id", "greeting")
	if out, _ := f.run(t, "status", "greeting"); !strings.Contains(out, "status     queued\n") || !strings.Contains(out, "agent      default\ninput      Say hello.\n") {
		t.Errorf("status: %q", out)
	}
	f.fails(t, "run greeting has not ended: wait for it with `longshore result greeting --wait`, or follow it with `longshore watch greeting`",
		"result", "greeting")
	f.fails(t, "run greeting has not ended within 50ms and continues: see `longshore status greeting`",
		"result", "greeting", "--wait", "--timeout", "50ms")
	if out, _ := f.run(t, "cancel", "greeting", "--reason", "no need"); out != "run greeting is cancelled\n" {
		t.Errorf("cancel: %q", out)
	}
	f.fails(t, "run greeting has already ended: see `longshore result greeting`", "cancel", "greeting")
	out, _ := f.run(t, "status", "greeting", "-o", "json")
	var status control.RunStatus
	if err := json.Unmarshal([]byte(out), &status); err != nil || status.Status != messages.StatusCancelled {
		t.Errorf("status: %q: %v", out, err)
	}
	const failed = "run greeting cancelled: no need"
	stdout, stderr := f.fails(t, failed, "result", "greeting")
	if diff := cmp.Diff([]string{"", failed + "\n"}, []string{stdout, stderr}); diff != "" {
		t.Error(diff)
	}
	stdout, _ = f.fails(t, failed, "watch", "greeting")
	if stdout != "" {
		t.Errorf("a result of a cancelled run: %q", stdout)
	}
}

func TestFailedRunIsRunFailed(t *testing.T) {
	f := newFleet(t)
	run := dispatcher.Run("bad")
	f.work(t, run, messages.AgentResult{
		Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodeBudget, Message: "too\x1b[2J dear"},
	})
	for _, args := range [][]string{{"result", "bad"}, {"watch", "bad"}, {"result", "bad", "--wait", "-o", "json"}, {"watch", "bad", "-o", "json"}} {
		stdout, stderr, err := executeWith(t, f.connect, "", args...)
		failed, ok := errors.AsType[*render.RunFailed](err)
		if !ok || failed.ID != "bad" || failed.Status != messages.StatusFailed || failed.Err.Code != messages.CodeBudget {
			t.Errorf("%v: got %v", args, err)
		}
		if !strings.Contains(stderr, `too\x1b[2J dear`) || strings.Contains(stderr+err.Error()+stdout, "\x1b") {
			t.Errorf("%v: %q, %q, %v", args, stdout, stderr, err)
		}
	}
}

func TestWatchAndResultOfCompletedRun(t *testing.T) {
	f := newFleet(t)
	run := messages.Ref{Tenant: "acme", Run: "greeting"}
	long := strings.Repeat("Hello. ", 5000) // more than an event holds
	f.work(t, run, messages.AgentResult{Success: true, Status: messages.StatusCompleted, Result: long})
	stdout, stderr := f.run(t, "watch", "greeting", "--tenant", "acme")
	if stdout != long+"\n" {
		t.Errorf("watch printed %d bytes", len(stdout))
	}
	if !strings.Contains(stderr, `Say\x1b[2J hello.`) || !strings.Contains(stderr, " step 1: Hello. (0 tokens, 0ms)\n") {
		t.Errorf("watch told %q", stderr)
	}
	if stdout, _ = f.run(t, "result", "greeting", "--tenant", "acme", "--wait"); stdout != long+"\n" {
		t.Errorf("result printed %d bytes", len(stdout))
	}
	stdout, _ = f.run(t, "result", "greeting", "--tenant", "acme", "--transcript")
	if !strings.HasPrefix(stdout, "system:\n  You are") || !strings.HasSuffix(stdout, "\nuser:\n  Say\\x1b[2J hello.\n\nassistant, step 1:\n  Hello.\n\n") {
		t.Errorf("the transcript: %q", stdout)
	}
	stdout, _ = f.run(t, "result", "greeting", "--tenant", "acme", "--format", "task-result")
	var short control.TaskResult
	if err := strict.Decode([]byte(stdout), &short); err != nil || short.Status != messages.StatusCompleted || short.Summary != long || short.Logs == nil {
		t.Errorf("a task result: %v %q", err, stdout)
	}
	stdout, _ = f.run(t, "result", "greeting", "--tenant", "acme", "--transcript", "-o", "json")
	var said messages.AgentResult
	if err := strict.Decode([]byte(stdout), &said); err != nil || said.Transcript == nil || len(said.Transcript.Messages) != 3 || said.Transcript.Next != "" {
		t.Errorf("a transcript as JSON: %v %+v", err, said.Transcript)
	}
	stdout, _ = f.run(t, "result", "greeting", "--tenant", "acme", "-o", "json")
	var result messages.AgentResult
	if err := strict.Decode([]byte(stdout), &result); err != nil || result.Result != long {
		t.Errorf("result as JSON: %v", err)
	}
}

func TestWatchWritesEventsAsStored(t *testing.T) {
	f := newFleet(t)
	run := dispatcher.Run("greeting")
	f.work(t, run, messages.AgentResult{Success: true, Status: messages.StatusCompleted, Result: "<Hello> & \u2028 \u009b"})
	stdout := f.raw(t, "watch", "greeting", "-o", "json")
	js, err := jetstream.New(embeddedtest.Conn(t, f.servers))
	if err != nil {
		t.Fatal(err)
	}
	all := bustest.EventStreams(t, embeddedtest.Conn(t, f.servers))
	stream, err := js.Stream(t.Context(), all[bus.PartitionOf(run, len(all))])
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for seq := range stream.CachedInfo().State.LastSeq {
		m, err := stream.GetMsg(t.Context(), seq+1)
		if err != nil {
			t.Fatal(err)
		}
		want.Write(m.Data)
		want.WriteByte('\n')
	}
	if diff := cmp.Diff(want.String(), stdout); diff != "" {
		t.Error(diff)
	}

	// A terminal gets the same with escapes.
	shown, _ := f.run(t, "watch", "greeting", "-o", "json")
	if strings.Contains(shown, "\u009b") || !strings.Contains(shown, `\u009b`) {
		t.Errorf("a terminal gets %q", shown)
	}
	if want := strings.ReplaceAll(want.String(), "\u009b", `\u009b`); shown != want {
		t.Error(cmp.Diff(want, shown))
	}
}

func TestWatchOfARunWhoseLogIsGone(t *testing.T) {
	f := newFleet(t)
	run := dispatcher.Run("greeting")
	f.work(t, run, messages.AgentResult{Success: true, Status: messages.StatusCompleted, Result: "Hello."})
	b := bustest.Reopen(t, embeddedtest.Conn(t, f.servers))
	if err := b.Partitions(bus.StreamRuns).Of(run).Clear(t.Context(), run.LogSubject()); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := f.run(t, "watch", "greeting")
	if stdout != "Hello.\n" || !strings.Contains(stderr, "the run's log is gone: this is the shortened result of its last event") {
		t.Errorf("it printed %q and told %q", stdout, stderr)
	}
	f.fails(t, "run greeting of tenant default: the run has ended and was removed after its retention (LONGSHORE_RETENTION)", "result", "greeting")
}

func TestRecordedEventsKeepTheirBytes(t *testing.T) {
	for _, file := range []string{"report.jsonl", "failed.jsonl"} {
		events, lines := recorded(t, file)
		for i, e := range events {
			b, err := json.Marshal(&e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines[i], string(b)); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestWatchOfUnknownRunSaysSoAndWaits(t *testing.T) {
	f := newFleet(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, done, err := f.connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for _, format := range []string{"text", "json"} {
		id := "late-" + format
		told := make(chan struct{})
		stderr := writerFunc(func(p []byte) (int, error) {
			if strings.Contains(string(p), "run "+id+" of tenant default is not known (yet): waiting for its first event") {
				close(told)
			}
			return len(p), nil
		})
		ended := make(chan error, 1)
		root := newRoot(t, f.connect)
		go func() { ended <- execute(ctx, root, stderr, "watch", id, "-o", format) }()
		<-told
		if _, err := c.Submit(ctx, messages.Task{ID: id, Input: messages.TextInput("x")}); err != nil {
			t.Fatal(err)
		}
		f.work(t, dispatcher.Run(id), messages.AgentResult{Success: true, Status: messages.StatusCompleted, Result: "Hello."})
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestInterruptedWatchSaysThatTheRunGoesOn(t *testing.T) {
	f := newFleet(t)
	f.run(t, "submit", "x", "--id", "slow")
	for _, args := range [][]string{{"watch", "slow"}, {"watch", "slow", "-o", "json"}, {"result", "slow", "--wait"}} {
		ctx, cancel := context.WithCancel(t.Context())
		root := newRoot(t, func(ctx context.Context) (*dispatcher.Client, func(), error) {
			defer cancel() // once it is connected
			return f.connect(ctx)
		})
		err := execute(ctx, root, io.Discard, args...)
		want := "Detached; run slow is still running. Follow: longshore watch slow. Stop: longshore cancel slow."
		if _, is := errors.AsType[*render.Interrupted](err); !is || err.Error() != want || !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestNobodyKnowsTheRun(t *testing.T) {
	f := newFleet(t)
	for _, name := range []string{"status", "result", "cancel"} {
		f.fails(t, "no run x of tenant acme: `longshore list --tenant acme` shows those of the last day; --tenant names another tenant", name, "x", "--tenant", "acme")
	}
	f.fails(t, "no run x of tenant default: `longshore list` shows those of the last day; --tenant names another tenant", "result", "x", "--wait")
}

func TestNoDispatcher(t *testing.T) {
	f := newStreams(t)
	for _, name := range []string{"status", "result", "cancel"} {
		f.fails(t, "no dispatcher answers: start one with `longshore dispatcher`, or a whole fleet with `longshore dev`", name, "x")
	}
}

func TestList(t *testing.T) {
	f := newFleet(t)
	stdout, stderr := f.run(t, "list")
	if diff := cmp.Diff([]string{"", "no runs of tenant default within 1d00h\n"}, []string{stdout, stderr}); diff != "" {
		t.Error(diff)
	}
	f.work(t, dispatcher.Run("first"), messages.AgentResult{Success: true, Status: messages.StatusCompleted, Result: "Hello."})
	f.work(t, dispatcher.Run("second"), messages.AgentResult{Status: messages.StatusFailed})
	f.work(t, messages.Ref{Tenant: "acme", Run: "theirs"}, messages.AgentResult{Status: messages.StatusFailed})
	f.run(t, "submit", "Say hello.", "--id", "third")
	f.run(t, "cancel", "third")
	stdout, stderr = f.run(t, "list")
	var got [][]string
	for l := range strings.Lines(stdout) {
		cells := strings.Fields(l)
		got = append(got, append(cells[:4:4], strings.Join(cells[6:], " ")))
	}
	want := [][]string{
		{"ID", "AGENT", "STATUS", "STEPS", "INPUT"},
		{"third", "default", "cancelled", "0", "Say hello."},
		{"second", "default", "failed", "1", `Say\x1b[2J hello.`},
		{"first", "default", "completed", "1", `Say\x1b[2J hello.`},
	}
	if diff := cmp.Diff(want, got); diff != "" || stderr != "" {
		t.Errorf("%s, told %q", diff, stderr)
	}
	stdout, stderr = f.run(t, "list", "--limit", "1", "--status", "completed,failed", "-o", "json")
	var run struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(stdout), &run); err != nil || run.ID != "second" || run.Status != "failed" {
		t.Errorf("as JSON: %q: %v", stdout, err)
	}
	if want := "the newest 1 of 2 runs: see more with --limit\n"; stderr != want {
		t.Errorf("got %q, want %q", stderr, want)
	}
	if stdout, _ = f.run(t, "list", "--tenant", "acme"); !strings.Contains(stdout, "theirs") || strings.Contains(stdout, "second") {
		t.Errorf("of another tenant: %q", stdout)
	}
}

// A watch may have a time limit: for an unknown run, and for one that is still running.
func TestWatchWithin(t *testing.T) {
	f := newFleet(t)
	f.fails(t, "run nothing of tenant default is not known within 300ms", "watch", "nothing", "--timeout", "300ms")
	f.run(t, "submit", "x", "--id", "queued")
	for _, format := range []string{"text", "json"} {
		f.fails(t, "run queued has not ended within 300ms and continues: see `longshore status queued`",
			"watch", "queued", "--timeout", "300ms", "-o", format)
	}
}

func TestSteerAndFeedback(t *testing.T) {
	f := newFleet(t)
	run := dispatcher.Run("r")
	task := messages.Task{ID: run.Run, Input: messages.TextInput("x")}
	task.SetDefaults()
	plan := &messages.Plan{Steps: []messages.PlanStep{{ID: "fetch", Description: "Fetch it.", Tool: "read_file"}}}
	if _, err := f.controller.Begin(t.Context(), run,
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: time.Now()}, &record.Claimed{Claim: "c", Worker: "w", Ticket: 1},
		&record.Planned{Decision: record.DecisionReady, Plan: plan},
	); err != nil {
		t.Fatal(err)
	}
	if stdout, _ := f.run(t, "steer", "r", "Be brief."); !strings.HasPrefix(stdout, "sent: run r is running") {
		t.Error(stdout)
	}
	f.run(t, "submit", "x", "--id", "queued")
	f.fails(t, "run queued: not told: the run has not started yet, and cannot receive messages; try again later", "steer", "queued", "Be brief.")
	f.fails(t, "no run x of tenant default: `longshore list` shows those of the last day; --tenant names another tenant", "steer", "x", "Be brief.")
	if stdout, _ := f.run(t, "feedback", "r", "--score", "-0.5", "--comment", "Too\x1b[2J long.", "--label", "kind=style", "--by", "ann"); !strings.HasPrefix(stdout, "stored") {
		t.Error(stdout)
	}
	f.fails(t, "refused: score: must be -1 to 1", "feedback", "r", "--score", "2")
	if stdout, _ := f.run(t, "feedback", "r"); !strings.Contains(stdout, "-0.5") || !strings.Contains(stdout, "ann") || strings.Contains(stdout, "\x1b") {
		t.Errorf("%q", stdout)
	}
	var shown control.Feedback
	stdout, _ := f.run(t, "feedback", "r", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || shown.Labels["kind"] != "style" || shown.By != "ann" {
		t.Errorf("%v %s", err, stdout)
	}
	f.fails(t, "refused: stepId: the run has no plan with such a step", "feedback", "r", "up", "--step", "other")
	f.run(t, "feedback", "r", "--step", "fetch", "down", "--note", "The wrong one.")
	f.run(t, "feedback", "r", "up", "--step", "2")
	stdout, _ = f.run(t, "feedback", "r", "-o", "json")
	var all []control.Feedback
	for line := range strings.Lines(stdout) {
		var one control.Feedback
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) != 3 || *all[0].Score != 1 || all[0].Step != 2 || *all[1].Score != -1 || all[1].StepID != "fetch" || all[1].Comment != "The wrong one." {
		t.Errorf("%+v", all)
	}
	if _, stderr := f.run(t, "feedback", "queued"); !strings.Contains(stderr, "run queued has no feedback") {
		t.Error(stderr)
	}
}
