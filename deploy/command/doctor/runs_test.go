package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// stranded is what the command printed as JSON.
type stranded struct {
	Looked int               `json:"looked"`
	Runs   []doctor.Stranded `json:"runs"`
}

func lookForRuns(t *testing.T, environ []string, args ...string) (stranded, error) {
	t.Helper()
	out, err := runDoctor(t, environ, append([]string{"runs", "--older", "0s", "-o", "json"}, args...)...)
	var s stranded
	if jerr := json.Unmarshal([]byte(out), &s); jerr != nil {
		t.Fatalf("%q: %v, %v", out, jerr, err)
	}
	return s, err
}

// logs writes the logs of runs as if their messages had been lost.
type logs struct {
	*testing.T

	bus        *bus.Bus
	stored     *runlogs.Store
	controller *runlog.Controller
}

func openLogs(t *testing.T, url string) *logs {
	t.Helper()
	nc, _ := connect(t, url)
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stored := runlogs.New(b, runlogs.Config{})
	return &logs{t, b, stored, &runlog.Controller{
		Log: stored, Queue: taskqueue.New(b), Events: stored, Sessions: sessions.New(b, stored), Now: func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) },
		NewID: func() string { return messages.NewID(time.Now()) },
	}}
}

// begin writes the log of a run that a worker had claimed.
func (l *logs) begin(id string, more ...record.Record) messages.Ref {
	l.Helper()
	task := textTask(id, "hello")
	task.SetDefaults()
	run := dispatcher.Run(id)
	records := append([]record.Record{
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: time.Now().UTC()},
		&record.Claimed{Claim: "c-" + id, Worker: "gone", Ticket: 1 << 40},
	}, more...)
	if _, err := l.controller.Begin(l.Context(), run, records...); err != nil {
		l.Fatal(err)
	}
	return run
}

// loses is a queue that loses what would wake a run.
type loses struct{ *taskqueue.Queue }

func (loses) Wake(context.Context, messages.Ref, uint64) error { return nil }

func (loses) Net(context.Context, messages.Ref, string, time.Time) error { return nil }

func TestStrandedRuns(t *testing.T) {
	dev := startFleet(t, func(c *fleet.DevConfig) { c.NoWorker = true })
	environ := []string{"NATS_URL=" + dev.NATS}
	l := openLogs(t, dev.NATS)
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	l.begin("lost")
	l.begin("person", &record.Parked{Reason: queue.ParkAnswer, Question: "?"})
	l.begin("untimed", &record.Parked{Reason: "timer", Until: &later})
	timed := l.begin("timed", &record.Parked{Reason: "timer", Until: &later})
	last, _, err := l.stored.Last(t.Context(), timed)
	if err != nil {
		t.Fatal(err)
	}
	if err := taskqueue.New(l.bus).Timer(t.Context(), timed, last.Head.ParkSeq, later); err != nil {
		t.Fatal(err)
	}
	l.begin("lineless", &record.Parked{Reason: queue.ParkSemaphore, Semaphore: queue.TenantSemaphore("default")})
	l.begin("turnless", &record.Parked{Reason: queue.ParkSession})
	l.begin("untold", &record.Finished{Result: messages.AgentResult{ID: "untold", Status: messages.StatusCompleted}})
	told := l.begin("told", &record.Finished{Result: messages.AgentResult{ID: "told", Status: messages.StatusCompleted}})
	if err := l.controller.Settle(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	ready := l.begin("ready", &record.Parked{Reason: queue.ParkAnswer, Question: "?"})
	last, _, err = l.stored.Last(t.Context(), ready)
	if err != nil {
		t.Fatal(err)
	}
	losing := *l.controller
	losing.Queue = loses{taskqueue.New(l.bus)}
	if _, err := losing.Control(t.Context(), ready, &record.Answered{Park: last.Head.ParkSeq}); err != nil {
		t.Fatal(err)
	}
	if _, err := runDoctor(t, environ, "runs"); err != nil {
		t.Errorf("they are too young: %v", err)
	}
	s, err := lookForRuns(t, environ)
	if !errors.Is(err, doctor.ErrStranded) {
		t.Error(err)
	}
	why := map[string]string{}
	for _, r := range s.Runs {
		why[r.ID] = r.Why
	}
	for id, text := range map[string]string{
		"lost": "its ticket is no longer in the queue", "untimed": "no timer is set", "untold": "its end was not told", "lineless": "queues at no semaphore",
		"ready": "no wake-up is in the queue",
	} {
		if !strings.Contains(why[id], text) {
			t.Errorf("%s: %q", id, why[id])
		}
		delete(why, id)
	}
	if len(why) != 0 {
		t.Errorf("and %v", why)
	}
	if _, err := lookForRuns(t, environ, "--tenant", "another"); err != nil {
		t.Error(err)
	}
	out, err := runDoctor(t, environ, "runs", "--older", "0s")
	if !errors.Is(err, doctor.ErrStranded) || !strings.Contains(out, "--fix") || !strings.Contains(out, "lost") || strings.Contains(out, "person") {
		t.Errorf("%v\n%s", err, out)
	}
	if first := strings.Split(out, "\n")[1]; !strings.Contains(first, "+02:00 ") {
		t.Errorf("the time of a run is not in the zone of the process: %s", first)
	}
	// There is no worker to repair them.
	out, err = runDoctor(t, environ, "runs", "--older", "0s", "--fix", "--wait", "0s")
	if !errors.Is(err, doctor.ErrStranded) || !strings.Contains(out, "is a worker running") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestStrandedRunIsRepaired(t *testing.T) {
	dev := startFleet(t)
	environ := []string{"NATS_URL=" + dev.NATS}
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.Submit(ctx, textTask("well", "hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Wait(ctx, dispatcher.Run("well")); err != nil {
		t.Fatal(err)
	}
	run := openLogs(t, dev.NATS).begin("lost")
	s, err := lookForRuns(t, environ, "--fix")
	if err != nil || len(s.Runs) != 1 || s.Runs[0].ID != "lost" || !s.Runs[0].Repaired || s.Looked < 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if !slices.Contains(s.Runs[0].Last, record.KindClaimed) {
		t.Errorf("%+v", s.Runs[0])
	}
	r, err := client.Wait(ctx, run)
	if err != nil || r.Status != messages.StatusCompleted {
		t.Errorf("%+v, %v", r, err)
	}
	if out, err := runDoctor(t, environ, "runs", "--older", "0s"); err != nil || !strings.Contains(out, "none is stuck") {
		t.Errorf("%v\n%s", err, out)
	}
}
