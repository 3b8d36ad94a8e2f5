package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// mortal is a dispatcher on a connection of its own, which is cut in the midst of what it does.
func (h *hall) mortal(nc *nats.Conn) (kill func()) {
	h.Helper()
	b, err := bus.Open(h.Context(), nc, bus.Config{})
	if err != nil {
		h.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Asks: semaphores.New(b), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	s := service.New(service.Config{Conn: nc, Bus: b, Version: "0.0.0", Controller: k})
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	return func() {
		nc.Close()
		cancel()
		<-done // with whatever a cut connection makes of it
	}
}

// Of a schedule that comes each second, while its dispatchers are killed right after they armed the next occurrence, kept
// what they begin, or submitted it, every occurrence runs once or is listed as skipped.
func TestEveryOccurrenceRunsOrIsListed(t *testing.T) {
	t.Parallel()
	server := embeddedtest.Start(t, embedded.Config{NoRedis: true})
	h := newHallOn(t, embeddedtest.Conn(t, server))
	s := control.Schedule{Name: "often", Cron: "* * * * * *", Overlap: control.OverlapAllow, Task: messages.Task{Input: messages.TextInput("Look.")}}
	s.SetDefaults()
	ref := s.Ref()
	points := []string{
		h.bus.Partitions(bus.StreamTasks).SubjectIn(0, ref.NextSubject()), "$KV.SCHEDULES.state." + ref.Tenant + "." + ref.Name,
		bustest.QueueOf(h.bus, messages.PriorityNormal, ref.Tenant),
	}
	reached := make([]chan struct{}, len(points))
	for i, subject := range points {
		reached[i] = make(chan struct{}, 1)
		if _, err := h.nc.Subscribe(subject, func(*nats.Msg) {
			select {
			case reached[i] <- struct{}{}:
			default:
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	kill := h.mortal(embeddedtest.Conn(t, server))
	if _, err := h.client.Schedules().Put(t.Context(), s, "ann", nil); err != nil {
		t.Fatal(err)
	}
	const kills = 18
	for i := range kills {
		point := reached[i%len(reached)]
		select {
		case <-point: // of before
		default:
		}
		select {
		case <-point:
		case <-time.After(patience):
			t.Fatalf("kill %d: nothing on %s within %s", i, points[i%len(points)], patience)
		}
		kill()
		if i == kills-1 { // then some occurrences pass without a dispatcher, however quick the machine is
			<-time.After(3 * time.Second)
		}
		kill = h.mortal(embeddedtest.Conn(t, server))
	}
	stored, err := schedules.New(h.bus).Stored(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	h.until("take the next", func() (bool, error) {
		l, _, err := schedules.New(h.bus).Ledger(t.Context(), ref)
		return l.Taken.After(ended) && !l.Pending && h.queued(ref.Run(l.Taken)), err // one runs, however slow it is
	})
	st, err := h.client.Schedules().Pause(t.Context(), ref, "ann")
	if err != nil {
		t.Fatal(err)
	}
	kill()
	ledger, _, err := schedules.New(h.bus).Ledger(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	skipped, from := map[time.Time]bool{}, stored.UTC().Truncate(time.Second).Add(time.Second)
	if len(ledger.Skipped) == control.MaxSkipped {
		from = ledger.Skipped[0].At // those before are no longer listed
	}
	for _, sk := range ledger.Skipped {
		if sk.Reason == "" {
			t.Errorf("%+v has no reason", sk)
		}
		for i := range sk.Count {
			skipped[sk.At.Add(time.Duration(i)*time.Second)] = true
		}
	}
	ran := 0
	for at := from; !at.After(ledger.Taken); at = at.Add(time.Second) {
		switch queued := h.queued(ref.Run(at)); {
		case queued == skipped[at] && (!ledger.Pending || !at.Equal(ledger.Taken)):
			t.Errorf("the occurrence of %s: queued %v, listed %v", at, queued, skipped[at])
		case queued:
			ran++
		}
	}
	t.Logf("%d ran, %d were skipped: %+v", ran, len(skipped), ledger.Skipped)
	if ran == 0 || len(skipped) == 0 || len(st.Skipped) == 0 {
		t.Errorf("%d ran, %d are listed, %d in the status: want some of each", ran, len(skipped), len(st.Skipped))
	}
}

// A task that a dispatcher was about to submit when it was killed is submitted with the next occurrence, unless it is long
// ago, for its run may have been removed since; or it was refused until then.
func TestTheNextOccurrenceSettlesTheLast(t *testing.T) {
	h := newHall(t)
	defer serve(t, h.nc, service.Config{})()
	now := time.Now().UTC().Truncate(time.Second)
	for name, tc := range map[string]struct {
		taken   time.Time
		refused string
		reason  string // empty: it is submitted
	}{
		"just-now": {taken: now.Add(-5 * time.Second)},
		"long-ago": {taken: now.Add(-time.Hour), reason: "its dispatcher ended while it submitted run long-ago-"},
		"quota":    {taken: now.Add(-5 * time.Second), refused: "the quota is used up", reason: "refused until the next one was due: the quota is used up"},
	} {
		s := hourly(name)
		s.Overlap = control.OverlapAllow
		h.put(s)
		begun := control.ScheduleState{Run: s.Ref().Run(tc.taken).Run, At: tc.taken, Outcome: control.OutcomeSubmitted}
		if _, err := schedules.New(h.bus).PutLedger(t.Context(), s.Ref(), schedules.Ledger{State: &begun, Taken: tc.taken, Pending: true, Refused: tc.refused}, 0); err != nil {
			t.Fatal(err)
		}
		h.fire(dueAt(s, now))
		h.taken(s.Ref(), now)
		if queued := h.queued(s.Ref().Run(tc.taken)); queued != (tc.reason == "") {
			t.Errorf("%s: queued %v", name, queued)
		}
		l, _, err := schedules.New(h.bus).Ledger(t.Context(), s.Ref())
		if err != nil || len(l.Skipped) > 1 || (len(l.Skipped) == 1) != (tc.reason != "") || len(l.Skipped) == 1 && !strings.HasPrefix(l.Skipped[0].Reason, tc.reason) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// What no dispatcher was there for is listed with the occurrence that is run late, and for each policy with its reason.
func TestSkippedAreShown(t *testing.T) {
	h := newHall(t)
	defer serve(t, h.nc, service.Config{})()
	s := control.Schedule{Name: "each-second", Cron: "* * * * * *", Task: messages.Task{Input: messages.TextInput("Look.")}}
	s.SetDefaults()
	if _, err := h.client.Schedules().Put(t.Context(), s, "ann", nil); err != nil {
		t.Fatal(err)
	}
	show := func(reason string) {
		t.Helper()
		h.until("list "+reason, func() (bool, error) {
			st, err := h.client.Schedules().Get(t.Context(), s.Ref())
			if err != nil {
				return false, err
			}
			for _, sk := range st.Skipped {
				if strings.Contains(sk.Reason, reason) && sk.Count > 0 {
					return true, nil
				}
			}
			return false, nil
		})
	}
	show("is still running") // no worker takes the first one
	s.Overlap, s.Task.Labels = control.OverlapAllow, map[string]string{"team": "core"}
	if _, err := h.client.Schedules().Put(t.Context(), s, "ann", nil); err != nil {
		t.Fatal(err)
	}
	show("is still running") // a new revision keeps the list
	if _, err := h.client.Schedules().Delete(t.Context(), s.Ref()); err != nil {
		t.Fatal(err)
	}
	if l, revision, err := schedules.New(h.bus).Ledger(t.Context(), s.Ref()); err != nil || revision != 0 || len(l.Skipped) != 0 {
		t.Errorf("after its end: %+v, %d, %v", l, revision, err)
	}
}
