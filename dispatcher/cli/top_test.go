package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// topShot is what top prints of what these tests look at.
type topShot struct {
	Rates struct {
		Failed int `json:"failed"`
	} `json:"rates"`
	Workers []messages.WorkerStatus `json:"workers"`
	Lanes   []control.LaneStatus    `json:"lanes"`
	Runs    []struct {
		ID    string    `json:"id"`
		Agent string    `json:"agent"`
		Step  int       `json:"step"`
		Since time.Time `json:"since"`
	} `json:"runs"`
	Failures []struct {
		ID      string `json:"id"`
		Message string `json:"message"`
	} `json:"failures"`
	Problems map[string]string `json:"problems"`
}

// patience is how long a test waits for what must come.
const patience = time.Minute

// withCommands has the commands as main makes them.
func withCommands(connect conn.Connect, options ...report.Options) *cobra.Command {
	root := &cobra.Command{Use: "longshore"}
	root.AddCommand(cli.Commands(connect, options...)...)
	cli.Usage(root)
	return root
}

func TestTopOnce(t *testing.T) {
	f := newFleet(t)
	f.run(t, "submit", "x", "--id", "queued", "--tenant", "acme")
	out := f.raw(t, "top", "--once", "--interval", "300ms", "--tenant", "acme")
	var shot topShot
	if err := json.Unmarshal([]byte(out), &shot); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%q: %v", out, err)
	}
	if len(shot.Lanes) != 1 || shot.Lanes[0].Queued != 1 || shot.Workers == nil || shot.Problems != nil {
		t.Errorf("%+v", shot)
	}
}

// begin writes the log of a run that a worker works on and that will not say a word for long.
func (f *fleet) begin(t *testing.T, run messages.Ref) {
	t.Helper()
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Agent: "writer", Input: messages.TextInput("x")}
	task.SetDefaults()
	entry, err := f.controller.Begin(t.Context(), run,
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: time.Now()},
		&record.Claimed{Claim: "c", Worker: "w", Ticket: 1},
		&record.StepStarted{Step: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	out := f.controller.Events.Open(run)
	out.Publish(t.Context(), entry.Seq, slices.Values(record.Events(run, entry)))
	if err := out.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A run that began before top and sends no events is shown, also if its tenant sent none.
func TestTopShowsRunsThatBeganBefore(t *testing.T) {
	f := indexed(t)
	f.begin(t, messages.Ref{Tenant: "acme", Run: "long"})
	f.work(t, messages.Ref{Tenant: "acme", Run: "over"}, messages.AgentResult{Success: true, Status: messages.StatusCompleted})
	f.run(t, "submit", "x", "--id", "queued", "--tenant", "acme") // it has a lane
	for _, args := range [][]string{{"top", "--once", "--interval", "300ms"}, {"top", "--once", "--interval", "300ms", "--tenant", "acme"}} {
		var shot topShot
		began := time.Now()
		out := f.raw(t, args...)
		if err := json.Unmarshal([]byte(out), &shot); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if len(shot.Runs) != 1 || shot.Runs[0].ID != "long" || shot.Runs[0].Agent != "writer" || shot.Runs[0].Step != 1 || !shot.Runs[0].Since.Before(began) {
			t.Errorf("%v: %+v, problems %v", args, shot.Runs, shot.Problems)
		}
	}
}

// Without a terminal it continues, a line each time, and shows what happens meanwhile.
func TestTopFollows(t *testing.T) {
	f := newFleet(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	root, stdout := withCommands(f.connect), &lineWriter{lines: make(chan string, 100)}
	root.SetOut(stdout)
	root.SetErr(stdout)
	root.SetArgs([]string{"top", "--interval", "200ms"})
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	n := 0
	for line := range stdout.lines {
		var shot topShot
		if err := json.Unmarshal([]byte(line), &shot); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(shot.Failures) > 0 {
			if got := shot.Failures[0]; !strings.HasPrefix(got.ID, "broken") || got.Message != "no \x1b[2Jluck" || shot.Rates.Failed < 1 {
				t.Errorf("%+v", shot)
			}
			if strings.Contains(line, "\x1b") {
				t.Errorf("it could steer a terminal: %q", line)
			}
			break
		}
		n++
		f.fail(t, "broken"+strconv.Itoa(n)) // the first may be over before it follows
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// fail writes the log of a run that fails.
func (f *fleet) fail(t *testing.T, id string) {
	t.Helper()
	f.work(t, messages.Ref{Tenant: "acme", Run: id}, messages.AgentResult{
		Status: messages.StatusFailed, Error: &messages.RunError{Code: "model_failed", Message: "no \x1b[2Jluck"},
	})
}

// lineWriter sends lines to a channel and fails once the reader has gone.
type lineWriter struct {
	part  bytes.Buffer
	lines chan string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.part.Write(p)
	for bytes.ContainsRune(w.part.Bytes(), '\n') {
		line, _ := w.part.ReadString('\n')
		select {
		case w.lines <- strings.TrimSuffix(line, "\n"):
		default:
			return 0, errors.New("the reader has gone")
		}
	}
	return len(p), nil
}

func TestTopRefusals(t *testing.T) {
	none := func(context.Context) (*dispatcher.Client, func(), error) { return nil, nil, errors.New("it connects") }
	for name, args := range map[string][]string{
		"an argument":       {"top", "x"},
		"a short interval":  {"top", "--interval", "1ms"},
		"a long interval":   {"top", "--interval", "1h"},
		"an odd tenant":     {"top", "--tenant", "a.b"},
		"an unknown output": {"top", "-o", "yaml"},
	} {
		_, _, err := executeWith(t, none, "", args...)
		if _, usage := errors.AsType[*render.UsageError](err); !usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTopWithoutADispatcher(t *testing.T) {
	out := newStreams(t).raw(t, "top", "--once", "--interval", "200ms")
	if !strings.Contains(out, `"problems":{"approvals":"no dispatcher answers","lanes":"no dispatcher answers","runs":"no dispatcher answers","workers":"no dispatcher answers"}`) {
		t.Error(out)
	}
}
