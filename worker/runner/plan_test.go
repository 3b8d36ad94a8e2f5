package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// planWorld is what outlives the workers of a run with a plan.
type planWorld struct {
	log   *runlog.Memory
	def   messages.Definition
	model rmodel
	meet  *sync.WaitGroup // set: "meet" waits until all that it waits for are there

	mu    sync.Mutex
	calls map[string]int // by call id
}

// mortal is a log whose owner dies after some appends.
type mortal struct {
	*runlog.Memory

	left *int // appends that still succeed; nil: forever
}

var errKilled = errors.New("killed")

func (m mortal) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if m.left != nil {
		if *m.left == 0 {
			return 0, errKilled
		}
		*m.left--
	}
	return m.Memory.Append(ctx, run, last, e)
}

func newPlanWorld(plan *messages.Plan) *planWorld {
	w := &planWorld{log: &runlog.Memory{}, calls: map[string]int{}, def: messages.Definition{
		Name: "a", Planner: messages.PlannerPlan, Plan: plan, Tools: []string{"echo", "save", "meet", "fail"},
	}}
	w.model = func(context.Context, model.Request) (*model.Reply, error) {
		return nil, errors.New("no model should be called")
	}
	w.def.SetDefaults()
	return w
}

type echoArgs struct {
	Text string `json:"text,omitempty"`
}

func (w *planWorld) worker(t *testing.T, appends *int) (*runner.Runner, *runlog.Controller) {
	t.Helper()
	var all []tools.Tool
	for name, effect := range map[string]messages.Effect{
		"echo": messages.EffectRead, "meet": messages.EffectRead, "fail": messages.EffectRead, "save": messages.EffectIdempotent,
	} {
		tool, err := tools.Func(messages.ToolSpec{Name: name, Description: "A tool.", Effect: effect},
			func(ctx context.Context, c tools.Call, in echoArgs) (tools.Result, error) {
				return w.call(ctx, name, c, in)
			})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tool)
	}
	set, err := tools.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	k := &runlog.Controller{Log: mortal{w.log, appends}, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string {
		ids.Lock()
		defer ids.Unlock()
		ids.n++
		return fmt.Sprint("p", ids.n)
	}}
	return runner.New(runner.Config{
		Worker: "w", Controller: k, Model: w.model, Tools: set,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil },
		Agent:     func(context.Context, string) (messages.Definition, error) { return w.def, nil },
	}), k
}

func (w *planWorld) call(ctx context.Context, name string, c tools.Call, in echoArgs) (tools.Result, error) {
	w.mu.Lock()
	w.calls[c.ID]++
	w.mu.Unlock()
	switch name {
	case "fail":
		return tools.Failure("it broke"), nil
	case "meet":
		w.meet.Done()
		met := make(chan struct{})
		go func() { defer close(met); w.meet.Wait() }()
		select {
		case <-met:
		case <-ctx.Done():
			return tools.Failure("no guest came"), nil
		}
	}
	r := tools.Text("[" + in.Text + "]")
	if name == "save" {
		r.Files = []string{c.ID + ".txt", "all.txt"}
	}
	return r, nil
}

// finished is the run's result; nil: it has not ended.
func (w *planWorld) finished() *messages.AgentResult {
	for e := range w.log.Read(context.Background(), rrun, 0, runlog.Tail) {
		for _, r := range e.Records {
			if f, ok := r.(*record.Finished); ok {
				return &f.Result
			}
		}
	}
	return nil
}

func (w *planWorld) last(t *testing.T) record.Entry {
	t.Helper()
	var last record.Entry
	for e, err := range w.log.Read(context.Background(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	return last
}

func pstep(id, tool, text string, after ...string) messages.PlanStep {
	args, err := json.Marshal(echoArgs{text})
	if err != nil {
		panic(err)
	}
	return messages.PlanStep{ID: id, Description: "Do " + id + ".", Tool: tool, Args: args, DependsOn: after}
}

func TestPlanStepsOverlap(t *testing.T) {
	w := newPlanWorld(&messages.Plan{Steps: []messages.PlanStep{pstep("a", "meet", "A"), pstep("b", "meet", "B")}})
	w.meet = &sync.WaitGroup{}
	w.meet.Add(2)
	r, _ := w.worker(t, nil)
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	if got := w.finished(); got == nil || got.Result != "[A]\n\n[B]" {
		t.Errorf("result: %+v", got)
	}
}

// A worker is killed at every append; another continues. No step whose result is recorded is called again, and the
// result is the same.
func TestPlanSurvivesAKillAnywhere(t *testing.T) {
	plan := &messages.Plan{Steps: []messages.PlanStep{
		pstep("a", "echo", "A"), pstep("b", "echo", "B"), pstep("c", "save", "${steps.a.output}${steps.b.output}", "a", "b"),
		pstep("d", "fail", "", "a"), pstep("e", "echo", "never", "d"), pstep("f", "save", "${steps.c.output}!", "c"),
	}}
	plan.Steps[3].Critical = new(false)
	for cut := 0; ; cut++ {
		w := newPlanWorld(plan)
		left := cut
		r, _ := w.worker(t, &left)
		out, _ := r.Run(t.Context(), rticket(1))
		over := out == runner.Done
		recorded := map[string]bool{}
		for e := range w.log.Read(context.Background(), rrun, 0, runlog.Tail) {
			for _, rec := range e.Records {
				if ret, ok := rec.(*record.ToolReturned); ok {
					recorded[ret.Result.CallID] = true
				}
			}
		}
		before := maps.Clone(w.calls)
		if !over {
			next, _ := w.worker(t, nil)
			if out, err := next.Run(t.Context(), rticket(2)); out != runner.Done || err != nil {
				t.Fatal(cut, out, err)
			}
		}
		for id := range recorded {
			if w.calls[id] != before[id] {
				t.Errorf("killed after %d appends: %s was called again", cut, id)
			}
		}
		got := w.finished()
		if got == nil {
			t.Fatalf("killed after %d appends: the run has not ended", cut)
		}
		want := control.TaskResult{
			Status: messages.StatusCompleted, Outputs: []string{"c.txt", "all.txt", "f.txt"},
			Summary: "4 of 6 steps completed.\n- a (completed, critical): Do a.\n- b (completed, critical): Do b.\n" +
				"- c (completed, critical): Do c.\n- d (failed): Do d. [it broke]\n" +
				"- e (skipped, critical): Do e. [it depends on \"d\", which failed]\n- f (completed, critical): Do f.",
		}
		short := control.NewTaskResult(got, nil)
		short.Logs = nil
		if diff := cmp.Diff(want, short); diff != "" {
			t.Errorf("killed after %d appends (-want +got):\n%s", cut, diff)
		}
		if got.Result != "[[[A][B]]!]" || len(got.Calls()) != 5 || got.Logs != rrun.LogSubject() {
			t.Errorf("killed after %d appends: result %q, %d actions", cut, got.Result, len(got.Calls()))
		}
		if over {
			if cut < 6 {
				t.Errorf("the run took %d appends only", cut)
			}
			return
		}
	}
}

// The progress of a plan has its own step ids, and every step has an end.
func TestPlanProgress(t *testing.T) {
	plan := &messages.Plan{Steps: []messages.PlanStep{pstep("a", "fail", ""), pstep("b", "echo", "", "a")}}
	w := newPlanWorld(plan)
	r, _ := w.worker(t, nil)
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	var got []string
	for e := range w.log.Read(context.Background(), rrun, 0, runlog.Tail) {
		for _, ev := range record.Events(rrun, e) {
			var d struct {
				StepID string `json:"stepId"`
				Status string `json:"status"`
			}
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.TrimSpace(ev.Name()+" "+d.StepID+" "+d.Status))
		}
	}
	want := []string{
		"run_queued", "run_started", "plan", "step_start a", "tool_execution_start a", "tool_execution_end a",
		"step_end a failed", "step_end b skipped", "turn_end", "run_finished",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := w.finished(); f.Error == nil || f.Error.Code != messages.CodeToolFailed {
		t.Errorf("error: %+v", f.Error)
	}
}

// A task may bring the plan; the agent need not be one that plans. Its tools are the agent's.
func TestPlanOfATask(t *testing.T) {
	for body, want := range map[string]string{
		`{"input":"go","plan":{"steps":[{"id":"a","description":"A","tool":"echo","args":{"text":"x"}}]}}`: "[x]",
		`{"input":"go","plan":{"steps":[{"id":"a","description":"A","tool":"rm"}]}}`:                       `plan.steps[0].tool: Tool "rm" not found. Allowed tools: echo, save, meet, fail`,
		`{"input":"go","plan":{"steps":[{"id":"a","description":"A","tool":"t","dependsOn":["a"]}]}}`:      "plan.steps[0].dependsOn: the steps wait for each other: a -> a",
	} {
		w := newPlanWorld(nil)
		w.def.Planner = messages.PlannerTools
		r, _ := w.worker(t, nil)
		ticket := rticket(1)
		ticket.Body = []byte(body)
		if out, err := r.Run(t.Context(), ticket); out != runner.Done || err != nil {
			t.Fatal(out, err)
		}
		f := w.finished()
		got := f.Result
		if f.Error != nil {
			got = f.Error.Message
			if f.Error.Code != messages.CodeInvalidInput {
				t.Errorf("code %s", f.Error.Code)
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %s", body, got, want)
		}
	}
}

// A step that needs an approval parks the run before its call, and the steps in parallel with it are made first.
func TestPlanStepWaitsForApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		refused bool
		calls   int
		want    string
	}{
		"agreed":  {false, 1, "[A]\n\n[B]"},
		"refused": {true, 0, "[B]"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &messages.Plan{Steps: []messages.PlanStep{pstep("a", "echo", "A"), pstep("b", "echo", "B")}}
			plan.Steps[0].RequiredApprovals = []string{"ann"}
			w := newPlanWorld(plan)
			r, k := w.worker(t, nil)
			if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
				t.Fatal(out, err)
			}
			e := w.last(t)
			park, ok := e.Records[len(e.Records)-1].(*record.Parked)
			if !ok || park.Reason != "approval" || park.Call != "a" || w.calls["a"] != 0 || w.calls["b"] != 1 {
				t.Fatalf("%v, calls %v", e.Head.Kinds, w.calls)
			}
			if _, err := k.Control(t.Context(), rrun, &record.Decided{
				ID: "x", Park: e.Seq, Step: park.Approval.Step, Call: "a", Hash: park.Approval.Hash, Denied: tc.refused,
			}); err != nil {
				t.Fatal(err)
			}
			again := rticket(1)
			again.Seq, again.After, again.Body = 8, w.last(t).Seq, nil
			if out, err := r.Run(t.Context(), again); out != runner.Done || err != nil {
				t.Fatal(out, err)
			}
			if f := w.finished(); f == nil || f.Result != tc.want || w.calls["a"] != tc.calls {
				t.Errorf("calls %v, result %+v", w.calls, f)
			}
		})
	}
}

// A model that cannot be reached parks the run for a while; one that is too slow leaves the plan as it is.
func TestPlanWhenTheModelIsAway(t *testing.T) {
	plan := &messages.Plan{Steps: []messages.PlanStep{pstep("a", "echo", "A")}}
	w := newPlanWorld(plan)
	w.def.Observe = messages.ObserveAlways
	w.model = func(context.Context, model.Request) (*model.Reply, error) {
		return nil, &model.Error{Class: model.Network}
	}
	r, _ := w.worker(t, nil)
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	e := w.last(t)
	park, ok := e.Records[len(e.Records)-1].(*record.Parked)
	if !ok || park.Reason != "model" || park.Until == nil || e.Head.Phase != record.PhaseParked {
		t.Fatalf("%v %+v", e.Head.Kinds, e.Head)
	}

	w = newPlanWorld(plan)
	w.def.Observe = messages.ObserveAlways
	w.model = func(context.Context, model.Request) (*model.Reply, error) {
		return nil, &model.Error{Class: model.Timeout}
	}
	r, _ = w.worker(t, nil)
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	if f := w.finished(); f == nil || f.Result != "[A]" || !f.Success {
		t.Errorf("result: %+v", f)
	}
}

// A planning call asks for JSON by the plan's schema, offers no tools, and shows no call of the model's.
func TestPlanningCall(t *testing.T) {
	w := newPlanWorld(nil)
	var formats []string
	w.model = func(_ context.Context, req model.Request) (*model.Reply, error) {
		if len(req.Tools) > 0 {
			t.Error("tools were offered")
		}
		switch {
		case req.Format == nil:
			formats = append(formats, "free")
			return say("Done."), nil
		case !json.Valid(req.Format.Schema):
			t.Error("the schema is no JSON")
		}
		formats = append(formats, req.Format.Name)
		if req.Format.Name == "plan" {
			r := say(`{"steps":[{"id":"a","description":"A","tool":"echo"}]}`)
			r.Message.Content = append(r.Message.Content, messages.Block{ToolCall: &messages.ToolCall{ID: "x", Name: "fail"}})
			return r, nil
		}
		return say(`{"decision":"continue"}`), nil
	}
	r, _ := w.worker(t, nil)
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	if diff := cmp.Diff([]string{"plan", "decision", "free"}, formats); diff != "" {
		t.Error(diff)
	}
	if f := w.finished(); f.Result != "Done." || f.Steps != 3 || len(f.Calls()) != 1 || len(f.ModelCalls) != 3 {
		t.Errorf("result: %+v", f)
	}
}
