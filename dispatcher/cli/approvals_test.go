package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// park makes a run that waits for an approval, as a worker would have left it.
func (f *fleet) park(t *testing.T, id string, p *record.Parked) messages.Ref {
	t.Helper()
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: id}
	started := &record.Started{
		Task: messages.Task{ID: id, Tenant: run.Tenant, Agent: messages.DefaultAgent, Input: messages.TextInput("x")}, QueuedAt: time.Now().UTC(),
		Tools: []messages.ToolSpec{{Name: "wreck", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
	}
	e, err := f.controller.Begin(t.Context(), run, started, &record.Claimed{Claim: "k", Worker: "w", Ticket: 1}, p)
	if err != nil {
		t.Fatal(err)
	}
	out := f.controller.Events.Open(run)
	runlog.Publish(t.Context(), run, &e, out)
	if err := f.controller.Close(t.Context(), run, &e, out); err != nil {
		t.Fatal(err)
	}
	return run
}

func wrecks(call string) *record.Parked {
	until := time.Now().Add(time.Hour).UTC()
	c := messages.ToolCall{ID: call, Name: "wreck", Arguments: `{"path":"shed"}`}
	asked := messages.NewApproval("wrecker", 1, "", c)
	asked.Editable = call == "edited"
	return &record.Parked{Reason: queue.ParkApproval, Call: call, Until: &until, Approval: asked}
}

func TestApprovalCommands(t *testing.T) {
	f := newFleet(t)
	if _, told := f.run(t, "approvals"); told != "no call of tenant default waits for an approval\n" {
		t.Errorf("told %q", told)
	}
	f.park(t, "r1", wrecks("c1"))
	f.park(t, "r2", wrecks("c 2"))
	f.park(t, "r3", &record.Parked{Reason: queue.ParkAnswer, Call: "c3", Question: "Why?"})
	f.park(t, "r4", &record.Parked{Reason: queue.ReasonBudget, Limit: messages.CapTokens, Question: "More?"})
	changed := t.TempDir() + "/changed.json"
	if err := os.WriteFile(changed, []byte("{\"path\": \"barn\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.park(t, "r5", wrecks("edited"))
	f.park(t, "r6", wrecks("edited"))
	out, _ := f.run(t, "approvals")
	for _, want := range []string{"RUN", "r1", "c1", "wreck shed", "r2", "'c 2'"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "r3") || strings.Contains(out, "r4") {
		t.Errorf("the list holds more:\n%s", out)
	}
	if out, _ = f.run(t, "approvals", "-o", "json", "--limit", "1"); strings.Count(out, "\n") != 1 || !strings.Contains(out, `"hash":"`) {
		t.Errorf("one as JSON: %s", out)
	}
	for _, tc := range []struct{ want, args string }{
		{"approved: run r1 continues", "approve r1 c1 --reason fine --by ann"},
		{"denied: run r2 continues", "deny r2|c 2|--reason|not now"},
		{"answered: run r3 continues", "answer r3|because it is so"},
		{"approved: run r4 continues", "approve r4"},
		{"approved: run r5 continues", "approve r5|edited|--arguments|" + changed},
		{"approved: run r6 continues", `approve r6|edited|--arguments|{"path":"barn"}`},
	} {
		args := strings.Fields(tc.args)
		if strings.Contains(tc.args, "|") {
			args = strings.Split(strings.Replace(tc.args, " ", "|", 1), "|")
		}
		if out, _ := f.run(t, args...); !strings.HasPrefix(out, tc.want) {
			t.Errorf("%v: %q", args, out)
		}
	}
	f.park(t, "r7", wrecks("edited"))
	f.park(t, "r8", wrecks("c1"))
	for _, tc := range []struct{ want, args string }{
		{"by ann", "deny r1 c1 --by bob"},
		{"unknown flag: --arguments", "deny r7 edited --arguments {}"},
		{"approve.edit of its agent does not name the tool", "approve r8 c1 --arguments {}"},
		{"do not fit the tool wreck", `approve r7 edited --arguments {"path":1}`},
		{"no such file", "approve r7 edited --arguments barn"},
		{"--arguments: ", "approve r7 edited --arguments {"},
		{"which an answer is not", "answer r1 yes"},
		{"no run unknown of tenant", "approve unknown c1"},
		{"needs the id of a run and of its call", "approve"},
		{"needs the id of a run and the answer", "answer r3"},
		{"--limit: must be", "approvals --limit 0"},
		{"id: must be 1 to 64", "deny * c1"},
	} {
		_, _, err := executeWith(t, f.connect, "", strings.Fields(tc.args)...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.args, err, tc.want)
		}
	}
}

// asked runs a task whose worker is this test: it parks at once, and ends the run when it was decided.
func (f *fleet) asked(t *testing.T, p *record.Parked, options report.Options) (steps string, err error) {
	t.Helper()
	run := f.park(t, "r1", p)
	client, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		f.finish(ctx, t, client, run)
	}()
	var out bytes.Buffer
	task := messages.Task{ID: "r1", Agent: messages.DefaultAgent, Input: messages.TextInput("x")}
	task.SetDefaults()
	err = report.RunTasks(ctx, client, []messages.Task{task}, &out, io.Discard, options, false)
	if ended := new(render.RunFailed); !errors.As(err, &ended) {
		cancel() // no further decisions; an end that was seen may still have to be settled
	}
	<-worked
	return out.String(), err
}

// finish ends a run with what was decided, once it is.
func (f *fleet) finish(ctx context.Context, t *testing.T, client *dispatcher.Client, run messages.Ref) {
	t.Helper()
	for ctx.Err() == nil {
		last, ok, err := f.controller.Log.Last(ctx, run)
		if err != nil || !ok || last.Head.Phase != record.PhaseReady {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		r, _, err := f.controller.Answer(ctx, run, last.Head.ParkSeq)
		if err != nil {
			t.Error(err)
			return
		}
		said := "?"
		switch r := r.(type) {
		case *record.Decided:
			said = r.Outcome() + " " + r.Reason
		case *record.Answered:
			said = r.Content[0].Text
		}
		now := time.Now().UTC()
		res := messages.EndedResult(run, &messages.Task{}, messages.StatusFailed, &messages.RunError{Code: messages.CodeInternal, Message: said}, now, now)
		if _, err := f.controller.Log.Append(ctx, run, last.Seq, endOf(run, last, f.controller, res)); err != nil {
			t.Error(err)
			return
		}
		if err := f.controller.Settle(ctx, run); err != nil {
			t.Error(err)
		}
		return
	}
}

func endOf(run messages.Ref, last record.Entry, k *runlog.Controller, res messages.AgentResult) record.Entry {
	end := &record.Finished{Result: res}
	h := record.Follow(last.Head, end)
	h.ID, h.Time = k.NewID(), k.Now().UTC()
	return record.Entry{Head: h, Records: []record.Record{end}}
}

func TestRunAsksOnATerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		park  *record.Parked
		typed string
		want  string // of the run's error, which here says what was decided
	}{
		"yes":      {wrecks("c1"), "\ny\n", "approved"},
		"no":       {wrecks("c1"), "n\n", "denied"},
		"neither":  {wrecks("c1"), "ok\nsure\nyes please\ny\n", "approved"},
		"a reason": {wrecks("c1"), "no, not today\n", "denied not today"},
		"a question": {
			&record.Parked{Reason: queue.ParkAnswer, Call: "c1", Question: "Which?"}, "\nthe blue one\n", "the blue one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			told, err := f.asked(t, tc.park, report.Options{Ask: report.NewAsker(strings.NewReader(tc.typed))})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q; told:\n%s", err, tc.want, told)
			}
			if tc.park.Approval != nil && !strings.Contains(told, `{"path":"shed"}`) {
				t.Errorf("the arguments were not shown:\n%s", told)
			}
		})
	}
}

func TestRunAsksNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  *report.Asker
		park *record.Parked
		want string
	}{
		"no terminal":         {nil, wrecks("c1"), "run r1 waits for approval, and there is no terminal to ask on: `longshore approve r1 c1`; so it is"},
		"the input ends":      {report.NewAsker(strings.NewReader("")), wrecks("c1"), "`longshore approve r1 c1`; so it is"},
		"a question":          {nil, &record.Parked{Reason: queue.ParkAnswer, Call: "c1"}, "`longshore answer r1 TEXT`; so it is"},
		"a budget":            {nil, &record.Parked{Reason: queue.ReasonBudget}, "`longshore approve r1`; so it is"},
		"a hostile call's id": {nil, wrecks("c1; rm\x1b"), "approve r1 'c1; rm"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			_, err := f.asked(t, tc.park, report.Options{Ask: tc.ask, Advice: "; so it is"})
			var person *report.NeedsPerson
			if !errors.As(err, &person) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
