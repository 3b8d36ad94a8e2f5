package runner_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// waiting is a run with a model that the test scripts, and a clock that stands still.
type waiting struct {
	t          *testing.T
	log        *runlog.Memory
	queue      *rq
	runner     *runner.Runner
	controller *runlog.Controller
	keys       []string // of the model calls
	answer     func(call int) (*model.Reply, error)
	seq        uint64 // of the last ticket
}

func newWaiting(t *testing.T, answer func(call int) (*model.Reply, error)) *waiting {
	t.Helper()
	d := messages.Definition{Name: "a"}
	d.SetDefaults()
	return newWaitingOf(t, d, answer)
}

func newWaitingOf(t *testing.T, d messages.Definition, answer func(call int) (*model.Reply, error)) *waiting {
	t.Helper()
	w := &waiting{t: t, log: &runlog.Memory{}, queue: &rq{}, answer: answer, seq: 7}
	w.runner, w.controller = rnewOf(d, w.log, w.queue, &re{}, func(_ context.Context, req model.Request) (*model.Reply, error) {
		w.keys = append(w.keys, req.Key)
		return w.answer(len(w.keys))
	})
	w.controller.Now = func() time.Time { return simTime }
	return w
}

func (w *waiting) start() {
	w.t.Helper()
	if out, err := w.runner.Run(w.t.Context(), rticket(1)); out != runner.Done || err != nil {
		w.t.Fatalf("start: %s, %v", out, err)
	}
}

// last is the end of the log, read whole.
func (w *waiting) last() record.Entry {
	w.t.Helper()
	var last record.Entry
	for e := range w.log.Read(w.t.Context(), rrun, 0, runlog.Tail) {
		last = e
	}
	return last
}

// wake lets the timer of the park fire and works the wake-up that it sends.
func (w *waiting) wake() {
	w.t.Helper()
	late := *w.controller
	late.Now = func() time.Time { return simTime.Add(2 * time.Hour) }
	park := w.last().Head.ParkSeq
	if err := late.Errand(w.t.Context(), rrun, messages.Wake{After: park, Errand: messages.ErrandTimer}); err != nil {
		w.t.Fatal(err)
	}
	w.seq++
	ticket := runner.Ticket{Run: rrun, Seq: w.seq, After: w.queue.wakes[len(w.queue.wakes)-1], Delivered: 1}
	if out, err := w.runner.Run(w.t.Context(), ticket); out != runner.Done || err != nil {
		w.t.Fatalf("wake: %s, %v", out, err)
	}
}

func limited(after time.Duration) error {
	return &model.Error{Class: model.RateLimited, Status: 429, RetryAfter: after}
}

func TestLongWaitsPark(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		parks bool
	}{
		"longer than a slot is held": {limited(31 * time.Second), true},
		"as long as a slot is held":  {limited(30 * time.Second), false},
		"an hour":                    {limited(time.Hour), true},
		"more than an hour":          {limited(time.Hour + time.Second), false},
		"no wait":                    {limited(0), false},
		"waiting does not help":      {&model.Error{Class: model.Auth, RetryAfter: time.Minute}, false},
		"an open circuit":            {&model.Error{Class: model.Overloaded, RetryAfter: time.Minute}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting(t, func(int) (*model.Reply, error) { return nil, tc.err })
			w.start()
			last := w.last()
			failed, _ := tc.err.(*model.Error)
			if !tc.parks {
				if last.Head.Phase != record.PhaseFinished {
					t.Fatalf("phase %s", last.Head.Phase)
				}
				end, _ := last.Records[len(last.Records)-1].(*record.Finished)
				if end.Result.Error == nil || end.Result.Error.Code != failed.Code() {
					t.Errorf("result %+v", end.Result)
				}
				return
			}
			park, ok := last.Records[len(last.Records)-1].(*record.Parked)
			if !ok || last.Head.Phase != record.PhaseParked || last.Head.Waits != queue.ParkModel || park.Until == nil {
				t.Fatalf("head %+v, records %v", last.Head, last.Records)
			}
			if d := park.Until.Sub(simTime); d < failed.RetryAfter || d > failed.RetryAfter*11/10 {
				t.Errorf("parked for %s, asked for %s", d, failed.RetryAfter)
			}
		})
	}
}

// After the park the same call is made again, and the run continues as if nothing had been.
func TestParkedModelCallIsMadeAgain(t *testing.T) {
	w := newWaiting(t, func(call int) (*model.Reply, error) {
		if call < 3 {
			return nil, limited(time.Minute)
		}
		return say("done"), nil
	})
	w.start()
	w.wake()
	w.wake()
	if diff := cmp.Diff([]string{"t.r.1.model", "t.r.1.model", "t.r.1.model"}, w.keys); diff != "" {
		t.Error(diff)
	}
	var kinds []record.Kind
	for e := range w.log.Read(t.Context(), rrun, 0, runlog.Tail) {
		kinds = append(kinds, e.Head.Kinds...)
	}
	want := []record.Kind{
		"started", "claimed", "step_started", "parked", "expired", "claimed", "parked", "expired", "claimed",
		"model_replied", "step_ended", "finished",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("records %v, want %v", kinds, want)
	}
}

// A model that is always busy is waited for a bounded number of times.
func TestParksForTheModelAreBounded(t *testing.T) {
	w := newWaiting(t, func(int) (*model.Reply, error) { return nil, limited(time.Minute) })
	w.start()
	for range 25 {
		if w.last().Head.Phase == record.PhaseFinished {
			break
		}
		w.wake()
	}
	end, ok := w.last().Records[len(w.last().Records)-1].(*record.Finished)
	if !ok || end.Result.Error == nil || end.Result.Error.Code != messages.CodeModelRateLimited || len(w.keys) != 21 {
		t.Errorf("after %d calls: %v", len(w.keys), w.last().Records)
	}
}

// A cancel that races with the park wins: the park is a decision.
func TestCancelBeforeTheParkWins(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(int) (*model.Reply, error) {
		if _, err := w.controller.Control(t.Context(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
			t.Error(err)
		}
		return nil, limited(time.Minute)
	})
	w.start()
	end, ok := w.last().Records[len(w.last().Records)-1].(*record.Finished)
	if !ok || end.Result.Status != messages.StatusCancelled {
		t.Errorf("%v", w.last().Records)
	}
}

// More runs may queue for a limit than fit into it for long: each park is longer than the one before.
func TestParksForTheModelGrow(t *testing.T) {
	w := newWaiting(t, func(int) (*model.Reply, error) { return nil, limited(time.Minute) })
	w.start()
	var waits []time.Duration
	for range 3 {
		park, ok := w.last().Records[len(w.last().Records)-1].(*record.Parked)
		if !ok {
			t.Fatalf("%v", w.last().Records)
		}
		waits = append(waits, park.Until.Sub(simTime))
		w.wake()
	}
	for i, d := range waits {
		asked := time.Duration(i+1) * time.Minute
		if d < asked || d > asked*11/10 {
			t.Errorf("park %d took %s, want %s", i, d, asked)
		}
	}
}

// What the agent wants goes before the wait that a provider or an open circuit asks for.
func TestAgentsFailureSettingsGoFirst(t *testing.T) {
	unreachable := func(after time.Duration) error {
		return &model.Error{Class: model.Network, Detail: "connection refused", Provider: "openai/m", RetryAfter: after}
	}
	slow := &model.Error{Class: model.Timeout, Detail: "silent", RetryAfter: time.Minute}
	for name, tc := range map[string]struct {
		agent messages.Definition
		err   error
		calls int    // of the model before the run rests
		want  string // "parked", "completed" or the code of its end
		error string // fallback of the error events, if there are any
	}{
		"abort, open circuit":          {messages.Definition{OnNetworkError: messages.NetworkAbort}, unreachable(time.Minute), 1, "model_unreachable", ""},
		"abort":                        {messages.Definition{OnNetworkError: messages.NetworkAbort}, unreachable(0), 1, "model_unreachable", ""},
		"retry, open circuit":          {messages.Definition{OnNetworkError: messages.NetworkRetry}, unreachable(time.Minute), 4, "model_unreachable", ""},
		"retry":                        {messages.Definition{OnNetworkError: messages.NetworkRetry}, unreachable(0), 4, "model_unreachable", ""},
		"retry, json":                  {messages.Definition{OnNetworkError: messages.NetworkRetry, Planner: messages.PlannerJSON}, unreachable(0), 4, "model_unreachable", ""},
		"park, open circuit":           {messages.Definition{OnNetworkError: messages.NetworkPark}, unreachable(time.Minute), 1, "parked", ""},
		"park":                         {messages.Definition{OnNetworkError: messages.NetworkPark}, unreachable(0), 1, "parked", ""},
		"nothing said, open circuit":   {messages.Definition{}, unreachable(time.Minute), 1, "parked", ""},
		"nothing said":                 {messages.Definition{}, unreachable(0), 1, "model_unreachable", ""},
		"abort is about the network":   {messages.Definition{OnNetworkError: messages.NetworkAbort}, limited(time.Minute), 1, "parked", ""},
		"plan, abort, open circuit":    {messages.Definition{Planner: messages.PlannerPlan, OnNetworkError: messages.NetworkAbort}, unreachable(time.Minute), 1, "model_unreachable", ""},
		"plan, retry, open circuit":    {messages.Definition{Planner: messages.PlannerPlan, OnNetworkError: messages.NetworkRetry}, unreachable(time.Minute), 4, "model_unreachable", "retry"},
		"plan, open circuit":           {messages.Definition{Planner: messages.PlannerPlan}, unreachable(time.Minute), 1, "parked", ""},
		"plan":                         {messages.Definition{Planner: messages.PlannerPlan}, unreachable(0), 1, "parked", "park"},
		"timeout of planning, circuit": {messages.Definition{Planner: messages.PlannerPlan}, slow, 1, "parked", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := tc.agent
			d.Name = "a"
			d.SetDefaults()
			w := newWaitingOf(t, d, func(int) (*model.Reply, error) { return nil, tc.err })
			w.start()
			got, fallback := "", ""
			for e := range w.log.Read(t.Context(), rrun, 0, runlog.Tail) {
				for _, r := range e.Records {
					switch r := r.(type) {
					case *record.ModelFailed:
						if r.Fallback != "" {
							fallback = r.Fallback
						}
					case *record.Parked:
						got = "parked"
						if r.Cause == nil || r.Cause.Attempt != 1 || r.Cause.Code == "" || r.Cause.Message == "" || r.Until == nil {
							t.Errorf("park until %v for %+v", r.Until, r.Cause)
						}
						if failed := tc.err.(*model.Error); r.Cause != nil && r.Cause.Provider != failed.Provider {
							t.Errorf("provider %q", r.Cause.Provider)
						}
					case *record.Finished:
						if got = string(r.Result.Status); r.Result.Error != nil {
							got = string(r.Result.Error.Code)
						}
					}
				}
			}
			if got != tc.want || fallback != tc.error || len(w.keys) != tc.calls {
				t.Errorf("%q after %d calls, fallback %q", got, len(w.keys), fallback)
			}
		})
	}
}

// A plan continues without an observation that does not come in time, although the circuit of the model is open.
func TestPlanFallsBackWithAnOpenCircuit(t *testing.T) {
	w := newPlanWorld(&messages.Plan{Steps: []messages.PlanStep{pstep("a", "echo", "A"), pstep("b", "echo", "B", "a")}})
	w.def.Observe = messages.ObserveAlways
	w.model = func(context.Context, model.Request) (*model.Reply, error) {
		return nil, &model.Error{Class: model.Timeout, Detail: "not called for now", RetryAfter: time.Minute}
	}
	r, _ := w.worker(t, nil)
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if end := w.finished(); end == nil || end.Status != messages.StatusCompleted {
		t.Errorf("%+v, last %v", end, w.last(t).Records)
	}
}
