package runner_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/runner"
)

// newLearning is a run with a plan, of an agent that learns.
func newLearning(t *testing.T, p messages.LearnPolicy) *remembering {
	t.Helper()
	w := newRemembering(t, messages.RecallPolicy{})
	w.def = messages.Definition{
		Name: "a", Planner: messages.PlannerPlan, Tools: []string{"echo"}, Memory: &messages.MemoryPolicy{Learn: &p},
		Plan: &messages.Plan{Steps: []messages.PlanStep{pstep("look", "echo", "pier"), pstep("tell", "echo", "${steps.look.output}", "look")}},
	}
	w.def.SetDefaults()
	if err := w.def.Validate(); err != nil {
		t.Fatal(err)
	}
	w.task["input"] = "Find the pier of the ferry to Malmo for ann@example.com."
	return w
}

// examples are what the collection of examples holds.
func (w *remembering) examples() []longterm.Item {
	w.t.Helper()
	page, err := w.memory.Query(w.t.Context(), longterm.Place{Tenant: rrun.Tenant, Collection: "examples"}, longterm.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Items
}

// told is what a later run of the agent begins with.
func (w *remembering) told() string {
	w.t.Helper()
	later := newRemembering(w.t, messages.RecallPolicy{})
	later.def.Memory.Learn, later.memory = w.def.Memory.Learn, w.memory
	later.task["input"] = "Find the pier of another ferry to Malmo."
	later.run()
	var texts []string
	for _, m := range later.recalled().Memories {
		texts = append(texts, m.Text)
	}
	return strings.Join(texts, "\n---\n")
}

func (w *remembering) rate(at time.Duration, score float64, step, note string) error {
	return w.worker(nil).Learn(w.t.Context(), rrun, messages.Rating{At: simTime.Add(at), Score: score, Step: step, Note: note})
}

func (w *remembering) mustRate(at time.Duration, score float64, step, note string) {
	w.t.Helper()
	if err := w.rate(at, score, step, note); err != nil {
		w.t.Fatal(err)
	}
}

const learned = "A task that was completed, and the plan that did it.\n" +
	"Task: Find the pier of the ferry to Malmo for [redacted].\nPlan:\n" +
	"1. look: Do look. [echo] {\"text\":\"pier\"}\n2. tell: Do tell. [echo] {\"text\":\"${steps.look.output}\"} after look\n" +
	"Outcome: 2 of 2 steps completed.\n- look (completed, critical): Do look.\n- tell (completed, critical): Do tell."

// A plan that was worked to its end becomes an example, without personal data: the result and an event tell it, and later runs of the agent
// are told the example.
func TestAPlanBecomesAnExample(t *testing.T) {
	w := newLearning(t, messages.LearnPolicy{TTL: messages.Duration(time.Hour)})
	r := w.run()
	items := w.examples()
	if len(items) != 1 || items[0].Text != learned {
		t.Fatalf("kept %+v", items)
	}
	it := items[0]
	if it.ID != rrun.Example() || it.Scope != (longterm.Scope{Agent: "a"}) || it.Source.Run != rrun.Run || it.Expires.Sub(it.Created) != time.Hour {
		t.Errorf("kept %+v", it)
	}
	want := []messages.MemoryChange{{
		Memory: messages.MemoryLongTerm, Op: messages.MemoryWrite, Name: "examples", ID: it.ID, Text: r.MemoryDeltas[0].Text, Bytes: len(learned),
	}}
	if diff := cmp.Diff(want, r.MemoryDeltas); diff != "" || !strings.HasPrefix(learned, strings.SplitN(want[0].Text, "…", 2)[0]) {
		t.Errorf("deltas %s", diff)
	}
	var names []string
	for e := range w.log.Read(t.Context(), rrun, 0, runlog.Tail) {
		for _, event := range record.Events(rrun, e) {
			names = append(names, event.Name())
		}
	}
	if n := len(names); n < 3 || names[n-3] != messages.EventMemoryWrite || names[n-1] != messages.EventRunFinished {
		t.Errorf("events %v", names)
	}
	if w.told() != learned {
		t.Errorf("told %q", w.told())
	}
}

// Killed anywhere, a run becomes one example, and one that is recorded is not written again.
func TestExamplesSurviveAKillAnywhere(t *testing.T) {
	for cut := 0; ; cut++ {
		w := newLearning(t, messages.LearnPolicy{})
		left := cut
		out, _ := w.worker(&left).Run(t.Context(), w.ticket(1))
		over, recorded := out == runner.Done, 0
		for r := range w.records() {
			if m, ok := r.(*record.MemoryWritten); ok && m.Learned {
				recorded++
			}
		}
		if !over {
			if out, err := w.worker(nil).Run(t.Context(), w.ticket(2)); out != runner.Done || err != nil {
				t.Fatal(cut, out, err)
			}
		}
		all := 0
		for r := range w.records() {
			if m, ok := r.(*record.MemoryWritten); ok && m.Learned {
				all++
			}
		}
		if n := len(w.examples()); n != 1 || all != 1 || !w.result().Success || len(w.result().MemoryDeltas) != 1 {
			t.Errorf("killed after %d appends: %d examples, %d records, %+v", cut, n, all, w.result())
		}
		if over {
			if cut < 4 || recorded != 1 {
				t.Errorf("the run took %d appends", cut)
			}
			return
		}
	}
}

// What does not become an example.
func TestWhatIsNotLearned(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		change  func(w *remembering)
		fails   bool
		warning string
	}{
		"a plan that failed":                    {change: func(w *remembering) { w.def.Plan.Steps[0].Tool, w.def.Tools = "wreck", []string{"echo", "wreck"} }, fails: true},
		"of an agent that learns what is rated": {change: func(w *remembering) { w.def.Memory.Learn.Rated = true }},
		"where rules allow no memory": {
			change:  func(w *remembering) { w.rules = &messages.Policy{Memory: messages.MemoryDrop} },
			warning: "the run did not become an example: the rules of this run allow nothing to be kept",
		},
		"when memory is away": {
			change:  func(w *remembering) { w.memory.write = away },
			warning: "the run did not become an example: write examples: away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLearning(t, messages.LearnPolicy{})
			tc.change(w)
			r := w.run()
			if r.Success == tc.fails || len(w.examples()) != 0 || len(r.MemoryDeltas) != 0 {
				t.Errorf("kept %+v of %+v", w.examples(), r)
			}
			if tc.warning != "" && (r.Diagnostics == nil || r.Diagnostics.Warnings[0] != tc.warning) {
				t.Errorf("diagnostics %+v", r.Diagnostics)
			}
		})
	}
}

// The example follows what people think of the run, the newest first whatever comes when.
func TestExamplesFollowRatings(t *testing.T) {
	w := newLearning(t, messages.LearnPolicy{})
	if err := w.rate(0, 1, "", ""); err != nil {
		t.Errorf("a run that is not there: %v", err)
	}
	w.run()
	w.mustRate(time.Second, -1, "look", "The wrong  pier\nfirst, says bob@example.com.")
	w.mustRate(2*time.Second, -1, "look", "The wrong pier, says bob@example.com.")
	if want := learned + "\nWhat people said of it:\n- step look: bad, The wrong pier, says [redacted]."; w.told() != want {
		t.Errorf("told %q", w.told())
	}
	w.mustRate(4*time.Second, -1, "", "No.")
	if items := w.examples(); w.told() != "" || len(items) != 1 || items[0].Text != "" {
		t.Errorf("after a rating down: told %q, kept %+v", w.told(), items)
	}
	w.mustRate(3*time.Second, 1, "", "It was fine.") // older
	w.mustRate(5*time.Second, 1, "tell", "")
	if w.told() != "" {
		t.Errorf("after an older rating, and one of a step: told %q", w.told())
	}
	w.mustRate(6*time.Second, 1, "", "Good after all.")
	w.mustRate(6*time.Second, 1, "", "Good after all.")
	if want := learned + "\nWhat people said of it:\n- the run: good, Good after all."; w.told() != want {
		t.Errorf("told %q", w.told())
	}
	if n := len(w.examples()); n != 1 {
		t.Errorf("%d examples", n)
	}
}

// An agent that learns what people like learns nothing before they say so.
func TestRatedExamples(t *testing.T) {
	w := newLearning(t, messages.LearnPolicy{Rated: true})
	w.run()
	w.mustRate(time.Second, 1, "look", "Nice.")
	if len(w.examples()) != 0 {
		t.Errorf("kept %+v", w.examples())
	}
	w.mustRate(2*time.Second, 0.5, "", "")
	if want := learned + "\nWhat people said of it:\n- the run: good"; w.told() != want {
		t.Errorf("told %q", w.told())
	}
	w.mustRate(3*time.Second, -1, "", "")
	if w.told() != "" {
		t.Errorf("told %q", w.told())
	}
}

// A rating of a run that works waits for its end, and one for which there is no memory for a worker that has one.
func TestRatingsThatWait(t *testing.T) {
	w := newLearning(t, messages.LearnPolicy{})
	left := 2
	_, _ = w.worker(&left).Run(t.Context(), w.ticket(1))
	if err := w.rate(0, 1, "", ""); !errors.Is(err, runner.ErrNotEnded) {
		t.Errorf("a run that has not ended: %v", err)
	}
	if out, err := w.worker(nil).Run(t.Context(), w.ticket(2)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	memory := w.memory
	w.memory = nil
	if err := w.rate(0, 1, "", ""); err == nil || errors.Is(err, runner.ErrNotEnded) {
		t.Errorf("a worker without memory: %v", err)
	}
	w.memory = memory
	w.mustRate(0, -1, "", "")
	if w.told() != "" {
		t.Errorf("told %q", w.told())
	}
}

// An agent that now wants ratings is not told the examples that have none.
func TestUnratedExamplesAreNotTold(t *testing.T) {
	w := newLearning(t, messages.LearnPolicy{})
	w.run()
	if w.told() != learned {
		t.Fatalf("told %q", w.told())
	}
	w.def.Memory.Learn.Rated = true
	if w.told() != "" {
		t.Errorf("told %q", w.told())
	}
}

// An example is held no longer than the rules of its run let long-term memory hold its collection, after a rating too.
func TestExamplesAreHeldAsLongAsRulesSay(t *testing.T) {
	w := newLearning(t, messages.LearnPolicy{TTL: messages.Duration(2 * time.Hour)})
	w.def.Policy = &messages.Policy{Retain: []messages.RetainRule{{Collection: "ex*", For: messages.Duration(time.Hour)}}}
	w.run()
	for _, rated := range []bool{false, true} {
		if rated {
			w.mustRate(time.Minute, 1, "", "good")
		}
		items := w.examples()
		if len(items) != 1 || items[0].Expires.Sub(items[0].Created) > time.Hour {
			t.Errorf("rated %v: %+v", rated, items)
		}
	}
}
