package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// hall is a server with what tests of schedules look at.
type hall struct {
	*testing.T

	nc     *nats.Conn
	bus    *bus.Bus
	client *dispatcher.Client
}

func newHall(t *testing.T) *hall {
	t.Helper()
	return newHallOn(t, start(t))
}

// newHallOn has a connection of the test's own.
func newHallOn(t *testing.T, nc *nats.Conn) *hall {
	t.Helper()
	h := &hall{T: t, nc: nc}
	err := bus.Setup(t.Context(), nc, bus.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	if h.bus, err = bus.Open(t.Context(), h.nc, bus.Config{}); err != nil {
		t.Fatal(err)
	}
	if h.client, err = dispatcher.New(t.Context(), h.nc); err != nil {
		t.Fatal(err)
	}
	return h
}

// until asks again and again until the answer is yes.
func (h *hall) until(what string, yes func() (bool, error)) {
	h.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := yes()
		switch {
		case err != nil:
			h.Fatalf("%s: %v", what, err)
		case ok:
			return
		case time.Now().After(end):
			h.Fatalf("%s: not within %s", what, patience)
		}
		<-tick.C
	}
}

func hourly(name string) control.Schedule {
	s := control.Schedule{Name: name, Every: messages.Duration(time.Hour), Task: messages.Task{Input: messages.TextInput("Report.")}}
	s.SetDefaults()
	return s
}

func dueAt(s control.Schedule, at time.Time) control.Due {
	return control.Due{ScheduleRef: s.Ref(), Timing: s.Timing(), At: at}
}

// put stores a schedule and does not arm it.
func (h *hall) put(s control.Schedule) control.Schedule {
	h.Helper()
	if _, _, err := schedules.New(h.bus).Put(h.Context(), s, "ann", nil); err != nil {
		h.Fatal(err)
	}
	return s
}

// fire makes an occurrence due at once.
func (h *hall) fire(d control.Due) {
	h.Helper()
	h.until("arm", func() (bool, error) {
		a, err := schedules.New(h.bus).Armed(h.Context(), d.ScheduleRef)
		if err != nil {
			return false, err
		}
		err = schedules.New(h.bus).Arm(h.Context(), d, a.Seq)
		if errors.Is(err, schedules.ErrScheduleMoved) {
			return false, nil
		}
		return true, err
	})
}

// taken waits until an occurrence was taken and returns its outcome.
func (h *hall) taken(ref control.ScheduleRef, at time.Time) (st control.ScheduleState) {
	h.Helper()
	h.until("take "+ref.String(), func() (bool, error) {
		ledger, _, err := schedules.New(h.bus).Ledger(h.Context(), ref)
		last := ledger.State
		if err != nil || last == nil || !last.At.Equal(at) {
			return false, err
		}
		a, err := schedules.New(h.bus).Armed(h.Context(), ref)
		st = *last
		return !a.Waiting, err // acked too
	})
	return st
}

func (h *hall) queued(run messages.Ref) bool {
	h.Helper()
	_, ok, err := taskqueue.New(h.bus).Queued(h.Context(), run)
	if err != nil {
		h.Fatal(err)
	}
	return ok
}

// A schedule comes at its second, is one run, and is armed for the time after that.
func TestScheduleComes(t *testing.T) {
	h := newHall(t)
	defer serve(t, h.nc, service.Config{})()
	defer serve(t, h.nc, service.Config{})() // side by side
	at := time.Now().UTC().Truncate(time.Second).Add(4 * time.Second)
	s := control.Schedule{
		Name: "once-a-year", Cron: at.Format("5 4 15 2 1") + " *", Description: "Comes soon.",
		Task: messages.Task{Input: messages.TextInput("Report."), Labels: map[string]string{"team": "core"}, Priority: messages.PriorityLow},
	}
	applied, err := h.client.Schedules().Put(t.Context(), s, "ann", new(uint64(0)))
	if err != nil || !applied.Changed || len(applied.Next) != 3 || !applied.Next[0].Equal(at) {
		t.Fatalf("%+v, %v", applied, err)
	}
	ref := control.ScheduleRef{Tenant: messages.DefaultTenant, Name: s.Name}
	if st := h.taken(ref, at); st.Outcome != control.OutcomeSubmitted || st.Run != "once-a-year-"+at.Format("20060102T150405") {
		t.Fatalf("%+v", st)
	}
	q, ok, err := taskqueue.New(h.bus).Queued(t.Context(), ref.Run(at))
	if err != nil || !ok {
		t.Fatalf("the task is not queued: %v", err)
	}
	task, err := messages.DecodeTaskFor(ref.Run(at), messages.PriorityLow, q.Body)
	if err != nil || task.Labels[control.LabelSchedule] != s.Name || task.Labels[control.LabelScheduledFor] != at.Format(time.RFC3339) || task.Labels["team"] != "core" {
		t.Errorf("%+v, %v", task, err)
	}
	if a, err := schedules.New(h.bus).Armed(t.Context(), ref); err != nil || !a.At.Equal(applied.Next[1]) {
		t.Errorf("armed %+v, %v; want %s", a, err, applied.Next[1])
	}
}

// Whatever a dispatcher left half done when it was killed, the next one finishes.
func TestScheduleSurvivesItsDispatcher(t *testing.T) {
	h := newHall(t)
	ctx := t.Context()
	long := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)

	notArmed := h.put(hourly("stored-not-armed"))
	paused := hourly("paused-still-armed")
	paused.Paused = true
	h.put(paused)
	h.fire(dueAt(paused, time.Now().Add(time.Hour)))
	changed := hourly("changed-old-armed")
	old := dueAt(changed, time.Now().Add(time.Minute))
	changed.Every = messages.Duration(2 * time.Hour)
	h.put(changed)
	h.fire(old)
	deleted := hourly("deleted-still-armed")
	h.fire(dueAt(deleted, long))
	fired := h.put(hourly("fired-not-taken"))
	h.fire(dueAt(fired, long))
	kept := h.put(hourly("kept-not-submitted"))
	begun := control.ScheduleState{Run: kept.Ref().Run(long).Run, At: long, Outcome: control.OutcomeSubmitted}
	if _, err := schedules.New(h.bus).PutLedger(ctx, kept.Ref(), schedules.Ledger{State: &begun, Taken: long, Pending: true}, 0); err != nil {
		t.Fatal(err)
	}
	h.fire(dueAt(kept, long))
	submitted := h.put(hourly("submitted-not-acked"))
	if _, err := taskqueue.New(h.bus).Submit(ctx, submitted.TaskAt(long), false); err != nil {
		t.Fatal(err)
	}
	h.fire(dueAt(submitted, long))
	for _, s := range []control.Schedule{deleted, fired, kept, submitted} { // so that all was due before a dispatcher looks
		h.until("fire "+s.Name, func() (bool, error) {
			a, err := schedules.New(h.bus).Armed(ctx, s.Ref())
			return a.Waiting && a.Seq == 0, err
		})
	}

	defer serve(t, h.nc, service.Config{})()
	for _, s := range []control.Schedule{notArmed, changed, fired, kept, submitted} {
		h.until("arm "+s.Name, func() (bool, error) {
			a, err := schedules.New(h.bus).Armed(ctx, s.Ref())
			return a.Seq > 0 && a.Timing == s.Timing() && a.At.After(time.Now().Add(-time.Minute)), err
		})
	}
	for _, s := range []control.Schedule{paused, deleted} {
		h.until("disarm "+s.Name, func() (bool, error) {
			a, err := schedules.New(h.bus).Armed(ctx, s.Ref())
			return a.Seq == 0 && !a.Waiting, err
		})
	}
	for _, s := range []control.Schedule{fired, kept, submitted} {
		if st := h.taken(s.Ref(), long); st.Outcome != control.OutcomeSubmitted || !h.queued(s.Ref().Run(long)) {
			t.Errorf("%s: %+v", s.Name, st)
		}
	}
	if h.queued(deleted.Ref().Run(long)) {
		t.Error("a deleted schedule ran")
	}
}

func TestSchedulePolicies(t *testing.T) {
	h := newHall(t)
	defer serve(t, h.nc, service.Config{})()
	first := time.Now().UTC().Truncate(time.Hour).Add(-5 * time.Hour)
	second := first.Add(time.Hour)
	for name, tc := range map[string]struct {
		overlap control.Overlap
		catchUp control.CatchUp
		runs    [2]bool // whether the task of each is in the queue afterwards
		second  control.Outcome
	}{
		"skip":    {control.OverlapSkip, control.CatchUpOne, [2]bool{true, false}, control.OutcomeSkipped},
		"allow":   {control.OverlapAllow, control.CatchUpOne, [2]bool{true, true}, control.OutcomeSubmitted},
		"replace": {control.OverlapReplace, control.CatchUpOne, [2]bool{false, true}, control.OutcomeSubmitted},
		"late":    {control.OverlapAllow, control.CatchUpNone, [2]bool{false, false}, control.OutcomeSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			h := *h
			h.T = t
			s := hourly(name)
			s.Overlap, s.CatchUp = tc.overlap, tc.catchUp
			h.put(s)
			if _, err := schedules.New(h.bus).PutLedger(t.Context(), s.Ref(), schedules.Ledger{State: &control.ScheduleState{Run: "before", At: first.Add(-time.Hour), Outcome: control.OutcomeSubmitted}}, 0); err != nil {
				t.Fatal(err)
			}
			for _, at := range []time.Time{first, second} {
				h.fire(dueAt(s, at))
				h.taken(s.Ref(), at)
			}
			if st := h.taken(s.Ref(), second); st.Outcome != tc.second || name == "late" && st.Run != "before" {
				t.Errorf("%+v", st)
			}
			if got := [2]bool{h.queued(s.Ref().Run(first)), h.queued(s.Ref().Run(second))}; got != tc.runs {
				t.Errorf("queued: %v, want %v", got, tc.runs)
			}
		})
	}
}

// An occurrence that comes again, however often, is one run; one that no dispatcher took gives way to the next.
func TestOccurrenceIsOneRun(t *testing.T) {
	h := newHall(t)
	ctx := t.Context()
	first := time.Now().UTC().Truncate(time.Hour).Add(-5 * time.Hour)
	s := hourly("again")
	s.Overlap = control.OverlapAllow
	h.put(s)
	for i := range 3 {
		h.fire(dueAt(s, first.Add(time.Duration(i)*time.Hour)))
		h.until("fire", func() (bool, error) {
			a, err := schedules.New(h.bus).Armed(ctx, s.Ref())
			return a.Seq == 0 && a.Waiting, err
		})
	}
	last := first.Add(2 * time.Hour)
	stop := serve(t, h.nc, service.Config{})
	h.taken(s.Ref(), last)
	for i := range 3 {
		if at := first.Add(time.Duration(i) * time.Hour); h.queued(s.Ref().Run(at)) != at.Equal(last) {
			t.Errorf("the occurrence of %s", at)
		}
	}
	logs := runlogs.New(h.bus, runlogs.Config{})
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(h.bus), Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	run := s.Ref().Run(last)
	if _, err := h.client.Cancel(ctx, run, ""); err != nil {
		t.Fatal(err)
	}
	before, _, err := k.Log.Last(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	h.fire(dueAt(s, last))
	h.until("take it again", func() (bool, error) {
		a, err := schedules.New(h.bus).Armed(ctx, s.Ref())
		return a.At.After(last) && !a.Waiting, err
	})
	stop()
	after, _, err := k.Log.Last(ctx, run)
	if err != nil || after.Seq != before.Seq || h.queued(run) {
		t.Errorf("the run of an occurrence was begun again: %v", err)
	}
}

func TestScheduleRequests(t *testing.T) {
	h := newHall(t)
	defer serve(t, h.nc, service.Config{})()
	ctx := t.Context()
	ref := control.ScheduleRef{Tenant: "acme", Name: "nightly"}
	s := control.Schedule{Name: ref.Name, Tenant: ref.Tenant, Cron: "0 3 * * *", TimeZone: "Europe/Berlin", Task: messages.Task{Input: messages.TextInput("Tidy up.")}}
	applied, err := h.client.Schedules().Put(ctx, s, "ann", nil)
	if err != nil || !applied.Changed || len(applied.Next) != 3 {
		t.Fatalf("%+v, %v", applied, err)
	}
	if again, err := h.client.Schedules().Put(ctx, s, "ann", nil); err != nil || again.Changed || again.Revision != applied.Revision {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if _, err := h.client.Schedules().Put(ctx, s, "ann", new(uint64(0))); !errors.Is(err, dispatcher.ErrRevision) {
		t.Errorf("only if there is none: %v", err)
	}
	if st, err := h.client.Schedules().Pause(ctx, ref, "ann"); err != nil || !st.Schedule.Paused || len(st.Next) != 0 {
		t.Errorf("pause: %+v, %v", st, err)
	}
	if a, err := schedules.New(h.bus).Armed(ctx, ref); err != nil || a.Seq != 0 {
		t.Errorf("paused and armed: %+v, %v", a, err)
	}
	run, err := h.client.Schedules().Run(ctx, ref)
	if err != nil || !h.queued(run) {
		t.Errorf("run while paused: %s, %v", run, err)
	}
	if _, err := h.client.Schedules().Run(ctx, ref); !errors.Is(err, dispatcher.ErrNotRun) || !strings.Contains(err.Error(), run.Run) {
		t.Errorf("run while the last one is still running: %v", err)
	}
	if st, err := h.client.Schedules().Resume(ctx, ref, "ann"); err != nil || st.Schedule.Paused || len(st.Next) != 3 {
		t.Errorf("resume: %+v, %v", st, err)
	}
	if a, err := schedules.New(h.bus).Armed(ctx, ref); err != nil || a.Seq == 0 || !a.At.Equal(applied.Next[0]) {
		t.Errorf("resumed: %+v, %v", a, err)
	}
	list, err := h.client.Schedules().List(ctx, "acme")
	if err != nil || len(list) != 1 || list[0].Name != ref.Name || list[0].Next == nil || list[0].Last == nil {
		t.Errorf("list: %+v, %v", list, err)
	}
	if other, err := h.client.Schedules().List(ctx, "other"); err != nil || len(other) != 0 {
		t.Errorf("another tenant's list: %+v, %v", other, err)
	}
	if was, err := h.client.Schedules().Delete(ctx, ref); err != nil || was.Schedule.Cron != s.Cron {
		t.Errorf("delete: %+v, %v", was, err)
	}
	if a, err := schedules.New(h.bus).Armed(ctx, ref); err != nil || a.Seq != 0 {
		t.Errorf("deleted and armed: %+v, %v", a, err)
	}
	for name, err := range map[string]error{
		"show":   second(h.client.Schedules().Get(ctx, ref)),
		"delete": second(h.client.Schedules().Delete(ctx, ref)),
		"run":    second(h.client.Schedules().Run(ctx, ref)),
	} {
		if !errors.Is(err, dispatcher.ErrNoSchedule) {
			t.Errorf("%s what is deleted: %v", name, err)
		}
	}
}

func TestScheduleIsRefused(t *testing.T) {
	h := newHall(t)
	defer serve(t, h.nc, service.Config{})()
	ctx := t.Context()
	for name, tc := range map[string]struct {
		change func(*control.Schedule)
		field  string
	}{
		"neither cron nor every": {func(s *control.Schedule) { s.Every = 0 }, "cron"},
		"both":                   {func(s *control.Schedule) { s.Cron = "@daily" }, "cron"},
		"a short interval":       {func(s *control.Schedule) { s.Every = messages.Duration(time.Second) }, "every"},
		"half a second":          {func(s *control.Schedule) { s.Every = messages.Duration(10500 * time.Millisecond) }, "every"},
		"a zone of an interval":  {func(s *control.Schedule) { s.TimeZone = "UTC" }, "timeZone"},
		"a long name":            {func(s *control.Schedule) { s.Name = strings.Repeat("n", 49) }, "name"},
		"a hostile tenant":       {func(s *control.Schedule) { s.Tenant = "*" }, "tenant"},
		"an id":                  {func(s *control.Schedule) { s.Task.ID = "x" }, "task.id"},
		"no input":               {func(s *control.Schedule) { s.Task.Input = nil }, "task.input"},
		"a large task":           {func(s *control.Schedule) { s.Task.Input = messages.TextInput(strings.Repeat("x", 300<<10)) }, "task"},
		"an unknown agent":       {func(s *control.Schedule) { s.Task.Agent = "unknown" }, "agent"},
		"a policy":               {func(s *control.Schedule) { s.Overlap = "queue" }, "overlap"},
		"catching up with all":   {func(s *control.Schedule) { s.CatchUp = "all" }, "catchUp"},
	} {
		s := hourly("bad")
		tc.change(&s)
		_, err := h.client.Schedules().Put(ctx, s, "", nil)
		var field *messages.FieldError
		if unknown := errors.Is(err, messages.ErrUnknownAgent); tc.field == "agent" && unknown {
			continue
		}
		if !errors.As(err, &field) || field.Field != tc.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, cron := range []string{
		"*", "* * * * * * *", "61 * * * *", "@every 1s", "@never", "TZ=UTC * * * * *", "CRON_TZ=UTC 0 0 * * *", "0 0 30 2 *", "* * * * *\n", "\x00 * * * *",
		"*/0 * * * *", "99999999999999999999 * * * *", strings.Repeat("*", 129), strings.Repeat("1,", 60) + "1 * * * *",
	} {
		s := hourly("bad")
		s.Every, s.Cron = 0, cron
		var field *messages.FieldError
		if _, err := h.client.Schedules().Put(ctx, s, "", nil); cron[0] != '1' && (!errors.As(err, &field) || field.Field != "cron") {
			t.Errorf("%q: %v", strict.Clip(cron, 20), err)
		}
	}
	for _, zone := range []string{"Mars/Phobos", "Local", "../../etc/passwd", "/etc/passwd", "Europe/Berlin\x00", strings.Repeat("z", 65)} {
		s := hourly("bad")
		s.Every, s.Cron, s.TimeZone = 0, "@daily", zone
		var field *messages.FieldError
		if _, err := h.client.Schedules().Put(ctx, s, "", nil); !errors.As(err, &field) || field.Field != "timeZone" {
			t.Errorf("%q: %v", zone, err)
		}
	}
	for i := range control.MaxSchedules {
		if err := h.nc.Publish(fmt.Sprintf("$KV.SCHEDULES.full.n%d", i), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	s := hourly("one-more")
	s.Tenant = "full"
	h.until("refuse", func() (bool, error) { // once all are stored
		_, err := h.client.Schedules().Put(ctx, s, "", nil)
		var p *messages.Problem
		if errors.As(err, &p) && p.Code == messages.CodeConflict {
			return true, nil
		}
		if err == nil {
			_, err = h.client.Schedules().Delete(ctx, s.Ref())
		}
		return false, err
	})
}

// What a schedule of another client publishes where ours are kept, or where occurrences are due, does nothing.
func TestForeignSchedules(t *testing.T) {
	h := newHall(t)
	ctx := t.Context()
	s := h.put(hourly("victim"))
	at := time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
	body, err := json.Marshal(dueAt(s, at))
	if err != nil {
		t.Fatal(err)
	}
	run := messages.Ref{Tenant: "victim", Run: "later"}
	for i, target := range []string{s.Ref().NextSubject(), s.Ref().DueSubject(), run.DelaySubject()} {
		m := &nats.Msg{Subject: fmt.Sprintf("tasks.normal.evil.s%d", i), Data: body, Header: nats.Header{
			"Nats-Schedule": {"@at " + time.Now().UTC().Format(time.RFC3339Nano)}, "Nats-Schedule-Target": {target},
		}}
		if reply, err := h.nc.RequestMsg(m, patience); err != nil || strings.Contains(string(reply.Data), `"error"`) {
			t.Fatalf("%s, %v", reply.Data, err)
		}
	}
	h.until("fire", func() (bool, error) {
		a, err := schedules.New(h.bus).Armed(ctx, s.Ref())
		return a.Seq > 0 && a.Waiting, err
	})
	defer serve(t, h.nc, service.Config{})()
	h.until("drop what is due", func() (bool, error) { a, err := schedules.New(h.bus).Armed(ctx, s.Ref()); return !a.Waiting, err })
	if _, err := h.client.Schedules().Put(ctx, s, "", nil); err != nil {
		t.Fatal(err)
	}
	if a, err := schedules.New(h.bus).Armed(ctx, s.Ref()); err != nil || !a.At.After(at.Add(time.Minute)) {
		t.Errorf("armed: %+v, %v", a, err)
	}
	if l, _, err := schedules.New(h.bus).Ledger(ctx, s.Ref()); err != nil || l.State != nil {
		t.Errorf("the occurrence of another client was taken: %+v, %v", l, err)
	}
	if _, ok, err := taskqueue.New(h.bus).Delayed(ctx, run); err != nil || ok {
		t.Errorf("the message of another client is a delayed task: %v, %v", ok, err)
	}
}
