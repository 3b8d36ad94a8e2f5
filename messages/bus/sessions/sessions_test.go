package sessions_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

func TestSessionJoinedByMany(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Sessions: sessions.New(b, bustest.Logs(b)), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	var all sync.WaitGroup
	turns := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			id := fmt.Sprint("r", i)
			turn, _, err := k.JoinSession(bustest.Context(t), messages.Ref{Tenant: "t", Run: id}, "s")
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
	s, _, err := sessions.New(b, bustest.Logs(b)).Session(bustest.Context(t), "t", "s")
	if err != nil || len(s.Runs) != 20 || len(turns) != 1 || s.Runs[0] != <-turns {
		t.Errorf("%+v, %v", s, err)
	}
	if s, _, err = sessions.New(b, bustest.Logs(b)).Session(bustest.Context(t), "other", "s"); err != nil || !s.Empty() {
		t.Errorf("another tenant's: %+v, %v", s, err)
	}
}

func TestSessionRefuses(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	for name, key := range map[string][2]string{"tenant": {"a.b", "s"}, "name": {"t", ">"}, "nothing": {"t", ""}} {
		t.Run(name, func(t *testing.T) {
			var field *messages.FieldError
			if _, _, err := sessions.New(b, bustest.Logs(b)).Session(bustest.Context(t), key[0], key[1]); !errors.As(err, &field) {
				t.Errorf("read: %v", err)
			}
			if err := sessions.New(b, bustest.Logs(b)).PutSession(bustest.Context(t), key[0], key[1], 0, messages.Session{}); !errors.As(err, &field) {
				t.Errorf("write: %v", err)
			}
		})
	}
	if err := sessions.New(b, bustest.Logs(b)).PutSession(bustest.Context(t), "t", "s", 7, messages.Session{}); !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("another revision: %v", err)
	}
}

// The order is made again from heads: the run that has its turn, then those that wait, as they parked.
func TestSessionRebuilt(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			b, _ := bustest.OpenDivided(t, n)
			testRebuilt(t, b)
		})
	}
}

func testRebuilt(t *testing.T, b *bus.Bus) {
	t.Helper()
	run := func(id string) messages.Ref { return messages.Ref{Tenant: "t", Run: id} }
	ended := &record.Finished{Result: messages.AgentResult{Status: messages.StatusCompleted}}
	wait := &record.Parked{Reason: queue.ParkSession}
	bustest.LogOf(t, b, run("ended1"), &record.Recalled{}, ended)
	bustest.LogOf(t, b, run("refused"), ended) // without a turn
	bustest.LogOf(t, b, run("waits1"), wait)
	bustest.LogOf(t, b, run("approval"), &record.Parked{Reason: "approval"}) // of before there were turns
	bustest.LogOf(t, b, run("turn"), &record.Recalled{}, &record.Parked{Reason: "approval"})
	bustest.LogOf(t, b, run("waits2"), wait)
	bustest.LogOf(t, b, run("cancelled"), wait, &record.CancelRequested{ID: "x"})
	bustest.LogOf(t, b, run("ended2"), &record.Recalled{}, ended)
	bustest.LogOf(t, b, messages.Ref{Tenant: "other", Run: "o"}, &record.Recalled{})
	for range 2 { // it is stored the first time
		s, revision, err := sessions.New(b, bustest.Logs(b)).Session(bustest.Context(t), "t", "s")
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
	list, more, err := sessions.New(b, bustest.Logs(b)).List(bustest.Context(t), "t")
	if err != nil || more || len(list) != 1 || list[0].Queue != 2 || list[0].Turn != "turn" || list[0].Waiting != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if s, _, err := sessions.New(b, bustest.Logs(b)).Session(bustest.Context(t), "other", "s"); err != nil || !slices.Equal(s.Runs, []string{"o"}) {
		t.Errorf("%+v, %v", s, err)
	}
}
