package runlog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// What a parked run waits for when the queue has no message for it.
func TestStrandedParks(t *testing.T) {
	const tenant, session = "acme", "talk"
	semaphore := queue.TenantSemaphore(tenant)
	until := time.Now().Add(time.Hour).UTC()
	turn, permit := &record.Parked{Reason: queue.ParkSession}, &record.Parked{Reason: queue.ParkSemaphore, Semaphore: semaphore}
	order := func(runs ...string) func(*testing.T, *runlog.Controller) {
		return func(t *testing.T, k *runlog.Controller) {
			t.Helper()
			if err := k.Sessions.PutSession(t.Context(), tenant, session, 0, messages.Session{Runs: runs}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		park    *record.Parked
		prepare func(*testing.T, *runlog.Controller)
		queued  bool
		want    string // a part; empty: not stranded
	}{
		"a person":               {park: &record.Parked{Reason: queue.ParkApproval}},
		"a time":                 {park: &record.Parked{Reason: "timer", Until: &until}, want: "no timer is set"},
		"a time that is set":     {park: &record.Parked{Reason: "timer", Until: &until}, queued: true},
		"not queued":             {park: permit, want: "queues at no semaphore: " + semaphore},
		"not queued, but a wake": {park: permit, queued: true},
		"no session":             {park: turn, want: "is not in its order"},
		"its own turn":           {park: turn, prepare: order("x", "y"), want: "has its turn in session talk, and was not woken"},
		"the turn of another":    {park: turn, prepare: order("works", "x")},
		"the turn of an ended":   {park: turn, prepare: order("ended", "x"), want: "behind run ended, which has ended"},
		"the turn is lost":       {park: turn, prepare: order("purged", "x"), want: "behind run purged, which has ended"},
		"queued": {park: permit, prepare: func(t *testing.T, k *runlog.Controller) {
			t.Helper()
			if err := k.Semaphores.Wait(t.Context(), semaphore, messages.Ref{Tenant: tenant, Run: "x"}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &runlog.Controller{
				Log: &runlog.Memory{}, Sessions: &runlog.SessionsInMemory{}, Semaphores: &runlog.SemaphoresInMemory{},
				Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) },
			}
			begin := func(id string, more ...record.Record) {
				t.Helper()
				task := messages.Task{ID: id, Tenant: tenant, Session: session, Input: messages.TextInput("x")}
				records := append([]record.Record{&record.Started{Task: task}, &record.Claimed{Claim: "c", Worker: "w", Ticket: 1}}, more...)
				if _, err := k.Begin(t.Context(), messages.Ref{Tenant: tenant, Run: id}, records...); err != nil {
					t.Fatal(err)
				}
			}
			begin("works")
			begin("ended", &record.Finished{})
			begin("x", &record.Lined{Semaphores: []string{semaphore}}, tt.park)
			if tt.prepare != nil {
				tt.prepare(t, k)
			}
			why, last, err := k.Stranded(t.Context(), messages.Ref{Tenant: tenant, Run: "x"}, func(context.Context, messages.Ref) (bool, error) { return tt.queued, nil })
			if err != nil || last.Head.Phase != record.PhaseParked || tt.want == "" && why != "" || !strings.Contains(why, tt.want) {
				t.Errorf("%q, %v, %+v", why, err, last.Head)
			}
		})
	}
}
