package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// sessionLog makes a log whose newest head is that of a run of a session.
func sessionLog(t *testing.T, b *bus.Bus, run messages.Ref, rs ...record.Record) {
	t.Helper()
	begin := &record.Started{Task: messages.Task{ID: run.Run, Tenant: run.Tenant, Session: "s"}}
	h := record.Follow(run, record.Head{}, append([]record.Record{begin, &record.Claimed{Claim: "k", Ticket: 1}}, rs...)...)
	h.ID, h.Time = messages.NewID(time.Now()), time.Now().UTC()
	if _, err := b.Append(ctxFor(t), run, 0, record.Entry{Head: h, Records: append([]record.Record{begin, &record.Claimed{Claim: "k", Ticket: 1}}, rs...)}); err != nil {
		t.Fatal(err)
	}
}

func TestSessionJoinedByMany(t *testing.T) {
	b, _ := openNew(t)
	k := &runlog.Keeper{Log: b, Queue: b, Events: b, Sessions: b, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	var all sync.WaitGroup
	turns := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			id := fmt.Sprint("r", i)
			turn, _, err := k.JoinSession(ctxFor(t), messages.Ref{Tenant: "t", Run: id}, "s")
			if err != nil {
				t.Error(err)
			}
			if turn {
				turns <- id
			}
		})
	}
	all.Wait()
	close(turns)
	s, _, err := b.Session(ctxFor(t), "t", "s")
	if err != nil || len(s.Runs) != 20 || len(turns) != 1 || s.Runs[0] != <-turns {
		t.Errorf("%+v, %v", s, err)
	}
	if s, _, err = b.Session(ctxFor(t), "other", "s"); err != nil || !s.Empty() {
		t.Errorf("another tenant's: %+v, %v", s, err)
	}
}

func TestSessionRefuses(t *testing.T) {
	b, _ := openNew(t)
	for name, key := range map[string][2]string{"tenant": {"a.b", "s"}, "name": {"t", ">"}, "nothing": {"t", ""}} {
		t.Run(name, func(t *testing.T) {
			var field *messages.FieldError
			if _, _, err := b.Session(ctxFor(t), key[0], key[1]); !errors.As(err, &field) {
				t.Errorf("read: %v", err)
			}
			if err := b.PutSession(ctxFor(t), key[0], key[1], 0, messages.Session{}); !errors.As(err, &field) {
				t.Errorf("write: %v", err)
			}
		})
	}
	if err := b.PutSession(ctxFor(t), "t", "s", 7, messages.Session{}); !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("another revision: %v", err)
	}
}

// The order is made again from heads: the run that has its turn, then those that wait, as they parked.
func TestSessionRebuilt(t *testing.T) {
	b, _ := openNew(t)
	run := func(id string) messages.Ref { return messages.Ref{Tenant: "t", Run: id} }
	ended := &record.Finished{Result: messages.AgentResult{Status: messages.StatusCompleted}}
	wait := &record.Parked{Reason: messages.ParkSession}
	sessionLog(t, b, run("ended1"), &record.Recalled{}, ended)
	sessionLog(t, b, run("refused"), ended) // without a turn
	sessionLog(t, b, run("waits1"), wait)
	sessionLog(t, b, run("approval"), &record.Parked{Reason: "approval"}) // of before there were turns
	sessionLog(t, b, run("turn"), &record.Recalled{}, &record.Parked{Reason: "approval"})
	sessionLog(t, b, run("waits2"), wait)
	sessionLog(t, b, run("cancelled"), wait, &record.CancelRequested{ID: "x"})
	sessionLog(t, b, run("ended2"), &record.Recalled{}, ended)
	sessionLog(t, b, messages.Ref{Tenant: "other", Run: "o"}, &record.Recalled{})
	for range 2 { // it is stored the first time
		s, revision, err := b.Session(ctxFor(t), "t", "s")
		if err != nil || revision == 0 {
			t.Fatalf("revision %d, %v", revision, err)
		}
		if diff := cmp.Diff([]string{"turn", "waits1", "waits2"}, s.Runs); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"ended1", "ended2"}, s.Ended); diff != "" {
			t.Error(diff)
		}
	}
	list, more, err := b.Sessions(ctxFor(t), "t")
	if err != nil || more || len(list) != 1 || list[0].Queue != 2 || list[0].Turn != "turn" || list[0].Waiting != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if s, _, err := b.Session(ctxFor(t), "other", "s"); err != nil || !slices.Equal(s.Runs, []string{"o"}) {
		t.Errorf("%+v, %v", s, err)
	}
}
