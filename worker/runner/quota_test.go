package runner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// limits answers as the test says, in turn, and then lets everything pass.
type limits struct {
	starts, calls []limitSaid
	asked         []time.Time // when each task that asked for its start was published
	freed         bool
}

type limitSaid struct {
	hold *record.Parked
	err  error
}

func next(from *[]limitSaid) (*record.Parked, error) {
	if len(*from) == 0 {
		return nil, nil
	}
	said := (*from)[0]
	*from = (*from)[1:]
	return said.hold, said.err
}

func (l *limits) HoldStart(_ context.Context, _ messages.Ref, published, _ time.Time) (*record.Parked, error) {
	l.asked = append(l.asked, published)
	return next(&l.starts)
}

func (l *limits) HoldCall(context.Context, messages.Ref, time.Time) (*record.Parked, error) {
	return next(&l.calls)
}

func (l *limits) Freed(context.Context, messages.Ref, *record.Parked, time.Time) (bool, error) {
	return l.freed, nil
}

// limited is a run of a tenant with quotas, and a clock that stands still.
func limitedRun(t *testing.T, l *limits, answer func(call int) (*model.Reply, error)) *waiting {
	t.Helper()
	w := &waiting{t: t, log: &runlog.Memory{}, queue: &rq{}, answer: answer, seq: 7}
	_, w.controller = rnew(w.log, w.queue, &re{}, nil)
	w.controller.Now, w.controller.Quotas = func() time.Time { return simTime }, l
	set, err := tools.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	w.runner = runner.New(runner.Config{
		Worker: "w", Controller: w.controller, Tools: set, Quotas: l,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, errors.New("none") },
		Agent: func(context.Context, string) (messages.Definition, error) {
			d := messages.Definition{Name: "a"}
			d.SetDefaults()
			return d, nil
		},
		Model: rmodel(func(_ context.Context, req model.Request) (*model.Reply, error) {
			w.keys = append(w.keys, req.Key)
			return w.answer(len(w.keys))
		}),
	})
	return w
}

func hold(limit string, again bool) *record.Parked {
	until := simTime.Add(time.Hour)
	return &record.Parked{Reason: queue.ParkQuota, Limit: limit, Until: &until, Again: again}
}

func says(int) (*model.Reply, error) { return say("Done."), nil }

// kinds are the records of a log.
func (w *waiting) kinds() (out []record.Kind) {
	for e := range w.log.Read(w.t.Context(), rrun, 0, runlog.Tail) {
		for _, r := range e.Records {
			out = append(out, r.Kind())
		}
	}
	return out
}

func (w *waiting) completed() {
	w.t.Helper()
	last := w.last()
	end, ok := last.Records[len(last.Records)-1].(*record.Finished)
	if !ok || end.Result.Status != messages.StatusCompleted || end.Result.RetryInfo != nil {
		w.t.Fatalf("the run ended so: %+v", last)
	}
}

// A task over its tenant's rate parks before anything is done, never fails, and is counted once.
func TestATaskOverTheRateParks(t *testing.T) {
	l := &limits{starts: []limitSaid{{hold: hold(queue.QuotaPerMinute, false)}}}
	w := limitedRun(t, l, says)
	w.start()
	last := w.last()
	if last.Head.Phase != record.PhaseParked || last.Head.Waits != queue.ParkQuota || len(w.keys) != 0 {
		t.Fatalf("head %+v after %d calls", last.Head, len(w.keys))
	}
	w.wake()
	w.completed()
	want := []record.Kind{
		record.KindStarted, record.KindClaimed, record.KindParked, record.KindExpired, record.KindClaimed,
		record.KindStepStarted, record.KindModelReplied, record.KindStepEnded, record.KindFinished,
	}
	if diff := cmp.Diff(want, w.kinds()); diff != "" {
		t.Error(diff)
	}
	if len(l.asked) != 1 {
		t.Errorf("it asked for its turn %d times", len(l.asked))
	}
}

// One that got no permit asks again when it wakes, as if it had been published then.
func TestATaskWithoutAPlaceAsksAgain(t *testing.T) {
	l := &limits{starts: []limitSaid{{hold: hold(queue.QuotaPerMinute, true)}, {hold: hold(queue.QuotaPerMinute, false)}}}
	w := limitedRun(t, l, says)
	w.start()
	w.wake()
	if w.last().Head.Phase != record.PhaseParked || len(l.asked) != 2 || !l.asked[1].Equal(simTime) {
		t.Fatalf("phase %s, asked %v", w.last().Head.Phase, l.asked)
	}
	w.wake()
	w.completed()
	if len(l.asked) != 2 {
		t.Errorf("it asked for its turn %d times", len(l.asked))
	}
}

// An unknown rate does not hold tasks back.
func TestAnUnknownRateLetsTasksBegin(t *testing.T) {
	w := limitedRun(t, &limits{starts: []limitSaid{{err: errors.New("no counter")}}}, says)
	w.start()
	w.completed()
}

// What a tenant may spend holds the next call back until it may be made, and the run continues where it was.
func TestASpentCeilingParks(t *testing.T) {
	over := limitSaid{hold: hold(queue.QuotaCostPerDay, false)}
	l := &limits{calls: []limitSaid{over, over}}
	w := limitedRun(t, l, says)
	w.start()
	if last := w.last(); last.Head.Phase != record.PhaseParked || last.Head.Waits != queue.ParkQuota || len(w.keys) != 0 {
		t.Fatalf("head %+v after %d calls", last.Head, len(w.keys))
	}
	w.wake() // the ceiling still holds
	if w.last().Head.Phase != record.PhaseParked || len(w.keys) != 0 {
		t.Fatalf("phase %s after %d calls", w.last().Head.Phase, len(w.keys))
	}
	w.wake()
	w.completed()
	if diff := cmp.Diff([]string{"t.r.1.model"}, w.keys); diff != "" {
		t.Error(diff)
	}
}

// While spending cannot be counted the run waits, and loses no attempt.
func TestAnUnknownSpendingWaits(t *testing.T) {
	w := limitedRun(t, &limits{calls: []limitSaid{{err: errors.New("no counter")}}}, says)
	w.start()
	last := w.last()
	park, ok := last.Records[len(last.Records)-1].(*record.Parked)
	if !ok || park.Reason != queue.ParkQuota || park.Until.Sub(simTime) != time.Minute || last.Head.Attempt != 0 {
		t.Fatalf("head %+v, records %v", last.Head, last.Records)
	}
	w.wake()
	w.completed()
}

// A cancel ends a run that waits for its quota.
func TestCancelWhileAQuotaHolds(t *testing.T) {
	over := limitSaid{hold: hold(queue.QuotaCostPerDay, false)}
	w := limitedRun(t, &limits{calls: []limitSaid{over, over}}, says)
	w.start()
	if _, err := w.controller.Control(t.Context(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	w.seq++
	ticket := runner.Ticket{Run: rrun, Seq: w.seq, After: w.queue.wakes[len(w.queue.wakes)-1], Delivered: 1}
	if out, err := w.runner.Run(t.Context(), ticket); out != runner.Done || err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	last := w.last()
	if end, ok := last.Records[len(last.Records)-1].(*record.Finished); !ok || end.Result.Status != messages.StatusCancelled {
		t.Errorf("the run ended so: %+v", last)
	}
}

// After a limit is raised, the next sweep wakes the runs that it held, and not earlier.
func TestASweepFreesWhatAQuotaHeld(t *testing.T) {
	l := &limits{calls: []limitSaid{{hold: hold(queue.QuotaCostPerMonth, false)}}}
	w := limitedRun(t, l, says)
	w.start()
	sweep := func() int {
		t.Helper()
		repaired, err := w.controller.Sweep(t.Context(), func(yield func(messages.Ref, error) bool) { yield(rrun, nil) })
		if err != nil {
			t.Fatal(err)
		}
		return repaired
	}
	if n := sweep(); n != 0 || len(w.queue.wakes) != 0 {
		t.Fatalf("a sweep repaired %d and woke %v while the limit holds", n, w.queue.wakes)
	}
	l.freed = true
	if n := sweep(); n != 1 || len(w.queue.wakes) != 1 {
		t.Fatalf("a sweep repaired %d and woke %v", n, w.queue.wakes)
	}
	w.seq++
	ticket := runner.Ticket{Run: rrun, Seq: w.seq, After: w.queue.wakes[0], Delivered: 1}
	if out, err := w.runner.Run(t.Context(), ticket); out != runner.Done || err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	w.completed()
}

// A task with a time of its own to begin parks once, for the later of that and its turn, and never loses the turn.
func TestADelayedTaskKeepsItsTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		notBefore time.Duration
		again     bool
		want      record.Parked
	}{
		"turn later":          {time.Minute, false, record.Parked{Reason: queue.ParkQuota, Until: new(simTime.Add(time.Hour))}},
		"turn earlier":        {2 * time.Hour, false, record.Parked{Reason: queue.ParkNotBefore, Until: new(simTime.Add(2 * time.Hour))}},
		"turn later, unsure":  {time.Minute, true, record.Parked{Reason: queue.ParkQuota, Until: new(simTime.Add(time.Hour)), Again: true}},
		"no turn till it may": {2 * time.Hour, true, record.Parked{Reason: queue.ParkNotBefore, Until: new(simTime.Add(2 * time.Hour)), Again: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := limitedRun(t, &limits{starts: []limitSaid{{hold: hold(queue.QuotaPerMinute, tc.again)}}}, says)
			ticket := rticket(1)
			ticket.Body = []byte(`{"input":"hello","notBefore":"` + simTime.Add(tc.notBefore).Format(time.RFC3339) + `"}`)
			if out, err := w.runner.Run(t.Context(), ticket); out != runner.Done || err != nil {
				t.Fatalf("%s, %v", out, err)
			}
			last := w.last()
			park, ok := last.Records[len(last.Records)-1].(*record.Parked)
			if !ok || park.Reason != tc.want.Reason || !park.Until.Equal(*tc.want.Until) || park.Again != tc.want.Again {
				t.Errorf("it parks so: %+v", park)
			}
		})
	}
}
