package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	replaycmd "github.com/longshore-run/longshore/deploy/command/replay"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/replay"
)

// The zone of the process is another one than that in which times are stored.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("", 2*60*60)
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come.
const patience = time.Minute

const script = `
scenes:
  - match: wait
    turns: [{delay: 1h, text: never}]
  - match: ""
    turns:
      - text: I write.
        calls: [{name: write_file, arguments: {filePath: a.txt, content: "hi\n"}}]
      - text: I list.
        calls: [{name: list_files, arguments: {}}]
      - text: "Done: ${lastToolResult}"
`

// hall is a fleet and a client of it.
type hall struct {
	*testing.T
	dev    *fleet.Dev
	client *dispatcher.Client
}

func open(t *testing.T, noWorker bool) *hall {
	t.Helper()
	play, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0", NoWorker: noWorker,
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &hall{t, dev, client}
}

func (h *hall) context() context.Context {
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	h.Cleanup(cancel)
	return ctx
}

// run works a task to its end.
func (h *hall) run(id, text string) *messages.AgentResult {
	h.Helper()
	if _, err := h.client.Submit(h.context(), messages.Task{ID: id, Input: messages.TextInput(text)}); err != nil {
		h.Fatal(err)
	}
	return h.wait(id)
}

func (h *hall) wait(id string) *messages.AgentResult {
	h.Helper()
	r, err := h.client.Wait(h.context(), dispatcher.Run(id))
	if err != nil {
		h.Fatalf("run %s: %v", id, err)
	}
	return r
}

// command executes a command line.
func (h *hall) command(args ...string) (stdout, stderr string, err error) {
	h.Helper()
	root := &cobra.Command{Use: "longshore"}
	connect := func(context.Context) (*dispatcher.Client, func(), error) { return h.client, func() {}, nil }
	root.AddCommand(cli.Commands(connect)...)
	root.AddCommand(replaycmd.Command(connect, true))
	cli.Usage(root)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.ExecuteContext(h.context())
	return out.String(), errs.String(), err
}

// A fork at each step of a run, with the same model, ends as the run did, and makes no call again that was kept.
func TestForkAtEachStep(t *testing.T) {
	h := open(t, false)
	want := h.run("one", "write")
	if !want.Success || want.Steps != 3 {
		t.Fatalf("%+v", want)
	}
	for at := 1; at <= want.Steps; at++ {
		id := fmt.Sprintf("fork-%d", at)
		stdout, stderr, err := h.command("fork", "one", "--at", strconv.Itoa(at), "--id", id)
		if err != nil || stdout != id+"\n" || strings.Contains(stderr, "files that were saved") != (at > 1) {
			t.Fatalf("%q %q %v", stdout, stderr, err)
		}
		got := h.wait(id)
		if got.Status != want.Status || got.Steps != want.Steps || len(got.Actions) != len(want.Actions) || got.Result != want.Result {
			t.Errorf("at %d: %+v, want %+v", at, got, want)
		}
		cached := 0
		for _, c := range got.ModelCalls {
			if c.Cached {
				cached++
			}
		}
		if cached != at-1 {
			t.Errorf("at %d: %d replies were kept", at, cached)
		}
		events := 0
		for e, err := range h.client.Watch(h.context(), dispatcher.Run(id)) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Name() == messages.EventStepStart {
				events++
			}
		}
		if events != want.Steps-at+1 {
			t.Errorf("at %d: %d steps have events", at, events)
		}
		if stdout, _, err := h.command("replay", id, "--check"); err != nil || !strings.HasPrefix(stdout, "the same ") {
			t.Errorf("%q %v", stdout, err)
		}
	}
	// A fork of a fork holds what both kept.
	if _, _, err := h.command("fork", "fork-3", "--at", "2", "--model", "scripted", "--id", "again"); err != nil {
		t.Fatal(err)
	}
	if got := h.wait("again"); !got.Success || got.Steps != 3 || len(got.Actions) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestForkRefusals(t *testing.T) {
	h := open(t, true)
	if _, err := h.client.Submit(h.context(), messages.Task{ID: "queued", Input: messages.TextInput("x")}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args  []string
		usage bool
		want  string
	}{
		"without a step":          {[]string{"fork", "queued"}, true, "--at is missing"},
		"step 0":                  {[]string{"fork", "queued", "--at", "0"}, true, "--at: must be the number of a step"},
		"an odd revision":         {[]string{"fork", "queued", "--at", "1", "--agent", "a@x"}, true, "--agent: the revision"},
		"an empty model":          {[]string{"fork", "queued", "--at", "1", "--model", ""}, true, "--model: is empty"},
		"an odd id":               {[]string{"fork", "queued", "--at", "1", "--id", "*"}, true, "--id: must be 1 to 64"},
		"a run not begun":         {[]string{"fork", "queued", "--at", "1"}, false, "the run has not begun"},
		"not a run":               {[]string{"fork", "none", "--at", "1"}, false, "no run none"},
		"replay of one not begun": {[]string{"replay", "queued"}, false, "has not started"},
		"replay of none":          {[]string{"replay", "none"}, false, "no run none"},
		"replay of an odd id":     {[]string{"replay", "a.b"}, true, "id"},
		"replay in yaml":          {[]string{"replay", "queued", "-o", "yaml"}, true, "text or json"},
		"check in full":           {[]string{"replay", "queued", "--full", "--check"}, true, "full"},
	} {
		_, _, err := h.command(tt.args...)
		_, usage := errors.AsType[*render.UsageError](err)
		if err == nil || usage != tt.usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReplay(t *testing.T) {
	h := open(t, false)
	h.run("one", "write")
	stdout, _, err := h.command("replay", "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"step 1 · ", "step 3 · ", "saw      2 messages", "tools: list_files, read_file, write_file", "decided  call model",
		`decided  call tool write_file {"content":"hi\n","filePath":"a.txt"}`, "came     tool returned: write_file: Wrote 3 bytes to a.txt",
		"decided  finish completed: Done:",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}
	if head, _, _ := strings.Cut(stdout, "\n"); !strings.HasSuffix(head, "+02:00") {
		t.Errorf("the time of a step is not in the zone of the process: %s", head)
	}
	stepped := stdout
	stdout, _, err = h.command("replay", "one", "-o", "json", "--full")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var last replay.Step
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 3 || last.Step != 3 || len(last.Saw.Full) != last.Saw.Messages {
		t.Errorf("%d lines, %+v, %v", len(lines), last, err)
	}
	if clock := last.At.In(time.Local).Format("15:04:05.000"); !strings.Contains(stepped, "  "+clock+"  saw ") || !strings.Contains(lines[2], `"at":"`+last.At.UTC().Format(time.RFC3339Nano)+`"`) {
		t.Errorf("%s is not in %s, or JSON has not UTC: %s", clock, stepped, lines[2])
	}
	if stdout, _, err := h.command("replay", "one", "--check", "-o", "json"); err != nil || !strings.Contains(stdout, `"unchecked":0}`) {
		t.Errorf("%q %v", stdout, err)
	}
}

// An entry that is larger than a message comes in parts, and many entries in pages.
func TestLogOfAnySize(t *testing.T) {
	h := open(t, false)
	text := strings.Repeat("write \"this\"\n", 70_000)
	h.run("large", text)
	n := 0
	for e, err := range h.client.Runs().Log(h.context(), dispatcher.Run("large")) {
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := e.Records[0].(*record.Started); ok && s.Task.Input.Text() != text {
			t.Errorf("the task has %d bytes", len(s.Task.Input.Text()))
		}
		n++
	}
	if n < 5 {
		t.Errorf("%d entries", n)
	}
	if stdout, _, err := h.command("replay", "large", "--check"); err != nil {
		t.Errorf("%q %v", stdout, err)
	}
}
