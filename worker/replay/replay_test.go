package replay_test

import (
	"bufio"
	"bytes"
	orelse "cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/replay"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenLogs are the golden logs of the contract by name.
func goldenLogs(t *testing.T) map[string][]record.Entry {
	t.Helper()
	files, err := filepath.Glob("../../messages/testdata/logs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	logs := map[string][]record.Entry{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var l control.EntryCopy
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			e, err := l.Entry()
			if err != nil {
				t.Fatal(err)
			}
			logs[name] = append(logs[name], e)
		}
	}
	return logs
}

func each(entries []record.Entry, then error) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if then != nil {
			yield(record.Entry{}, then)
		}
	}
}

// What the golden logs tell is golden too.
func TestStepsOfGoldenLogs(t *testing.T) {
	t.Parallel()
	for name, entries := range goldenLogs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			out := json.NewEncoder(&got)
			for s, err := range replay.Steps(each(entries, nil), false) {
				if err != nil {
					t.Fatal(err)
				}
				if err := out.Encode(s); err != nil {
					t.Fatal(err)
				}
			}
			golden := filepath.Join("testdata", name+".jsonl")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; run go test ./worker/replay -update", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Today's code decides as the code did that wrote the golden logs.
func TestGoldenLogsAreDecidedTheSame(t *testing.T) {
	t.Parallel()
	for name, entries := range goldenLogs(t) {
		r, err := replay.Check(t.Context(), each(entries, nil))
		if err != nil || r.Difference != nil {
			t.Errorf("%s: %v, %+v", name, err, r.Difference)
		}
		if r.Decisions == 0 && name != "refused" {
			t.Errorf("%s: nothing was checked: %+v", name, r)
		}
	}
}

func TestCheckFindsWhatWasPlanted(t *testing.T) {
	t.Parallel()
	// Each changes a record of a log when that is of its kind.
	for name, tt := range map[string]struct {
		log               string // default: simple
		change            func(record.Record)
		recorded, planned string
	}{
		"the answer": {
			change: func(r record.Record) {
				if f, ok := r.(*record.Finished); ok {
					f.Result.Result = "another answer"
				}
			},
			recorded: "end: completed: another answer", planned: "end: completed: ",
		},
		"how it ended": {
			change: func(r record.Record) {
				if f, ok := r.(*record.Finished); ok {
					f.Result.Status, f.Result.Error = messages.StatusFailed, &messages.RunError{Code: messages.CodeMaxSteps}
				}
			},
			recorded: "end: failed", planned: "end: completed: ",
		},
		"fewer steps are allowed": {
			change: func(r record.Record) {
				if s, ok := r.(*record.Started); ok {
					s.Agent.MaxSteps = 1
				}
			},
			recorded: "end step 1: completed", planned: "end: failed (max_steps)",
		},
		"a call without a request": {
			log: "protocol",
			change: func(r record.Record) {
				if s, ok := r.(*record.ToolStarted); ok {
					s.Call.Arguments = `{"path":"b.go"}`
				}
			},
			recorded: `call the tool read_file {"path":"b.go"}`, planned: `call the tool read_file {"path":"a.go"}`,
		},
		"a step of the plan that waits for another": {
			log: "plan",
			change: func(r record.Record) {
				if p, ok := r.(*record.Planned); ok && p.Plan != nil {
					p.Plan.Steps[1].DependsOn = []string{"one"}
				}
			},
			recorded: "continue with the plan: ready", planned: "continue with the plan: ready",
		},
		"a decision about the plan": {
			log: "plan",
			change: func(r record.Record) {
				if p, ok := r.(*record.Planned); ok && p.Decision == record.DecisionComplete {
					p.Decision = record.DecisionContinue
				}
			},
			recorded: "continue with the plan: continue", planned: "continue with the plan: complete",
		},
		"a step of the plan failed": {
			log: "plan",
			change: func(r record.Record) {
				if e, ok := r.(*record.StepEnded); ok && e.StepID == "mail" {
					e.Status = messages.StepSkipped
				}
			},
			recorded: `end "mail" of the plan: skipped`, planned: `end "mail" of the plan: completed`,
		},
		"a step of the plan is passed over": {
			log: "plan",
			change: func(r record.Record) {
				if e, ok := r.(*record.StepStarted); ok && e.StepID == "two" {
					e.StepID = "more"
				}
			},
			recorded: `begin "more" of the plan in step 2`, planned: `begin "two" of the plan in step 2`,
		},
		"a call without an approval": {
			log: "approvals",
			change: func(r record.Record) {
				if d, ok := r.(*record.Decided); ok {
					d.Park++
				}
			},
			recorded: "call the tool send_mail", planned: "ask for an approval of send_mail",
		},
		"a step is left out": {
			change: func(r record.Record) {
				if s, ok := r.(*record.StepStarted); ok && s.Step == 2 {
					s.Step = 3
				}
			},
			recorded: "begin step 3", planned: "begin step 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries := goldenLogs(t)[orelse.Or(tt.log, "simple")]
			for _, e := range entries {
				for _, r := range e.Records {
					tt.change(r)
				}
			}
			r, err := replay.Check(t.Context(), each(entries, nil))
			if err != nil || r.Difference == nil {
				t.Fatalf("%v, %+v", err, r)
			}
			if d := r.Difference; !strings.HasPrefix(d.Recorded, tt.recorded) || !strings.HasPrefix(d.Planned, tt.planned) || d.Seq == 0 {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestLogsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	whole := goldenLogs(t)["simple"]
	for name, tt := range map[string]struct {
		entries []record.Entry
		then    error
		want    string
	}{
		"the log ends with an error":              {whole[:2], broken, "broken"},
		"it does not begin with what it is about": {whole[1:], nil, "out of place"},
		"an entry comes twice":                    {append(whole[:2:2], whole[0]), nil, "does not follow"},
	} {
		_, err := replay.Check(t.Context(), each(tt.entries, tt.then))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: check: %v", name, err)
		}
		err = nil
		for _, e := range replay.Steps(each(tt.entries, tt.then), true) {
			err = e
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: steps: %v", name, err)
		}
	}
}

// A check ends within an entry when its time is over.
func TestACheckEndsWithinAnEntry(t *testing.T) {
	t.Parallel()
	whole := goldenLogs(t)["simple"]
	one := whole[0]
	one.Records = nil
	for _, e := range whole {
		one.Records = append(one.Records, e.Records...)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	over := errors.New("its time is over")
	r, err := replay.Check(ctx, func(yield func(record.Entry, error) bool) {
		cancel(over)
		yield(one, nil)
	})
	if !errors.Is(err, over) || r.Decisions > 0 {
		t.Errorf("%d decisions were planned: %v", r.Decisions, err)
	}
	if r, err = replay.Check(t.Context(), each([]record.Entry{one}, nil)); err != nil || r.Decisions == 0 {
		t.Errorf("in time %d decisions were planned: %v", r.Decisions, err)
	}
}

// Nothing is told twice or after the reader has left.
func TestStepsMayBeBrokenOff(t *testing.T) {
	t.Parallel()
	n := 0
	for range replay.Steps(each(goldenLogs(t)["simple"], errors.New("later")), true) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d steps", n)
	}
}
