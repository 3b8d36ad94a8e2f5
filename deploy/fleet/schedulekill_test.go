//go:build unix

package fleet_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/control"
)

// ends counts, from outside, how often each run of a schedule has ended.
type ends struct {
	mu  sync.Mutex
	all map[string]int // by run
}

func (w *town) ends(schedule string) *ends {
	w.t.Helper()
	e := &ends{all: map[string]int{}}
	if _, err := w.nc.Subscribe("events.default.*."+messages.EventRunFinished, func(m *nats.Msg) {
		run := strings.Split(m.Subject, ".")[2]
		if !strings.HasPrefix(run, schedule+"-") {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all[run]++
	}); err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (e *ends) of(run string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[run]
}

func (e *ends) runs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

// Of two dispatchers one after the other is killed and started again, six times and up to twelve within 25 seconds, each time right after
// one of them armed the next occurrence of a schedule that comes each second, kept what it begins, or submitted it. Every
// occurrence has run once, or the schedule lists it as skipped and says why.
func TestScheduleOutlivesItsDispatchers(t *testing.T) {
	t.Parallel()
	const least, most, long = 6, 12, 25 * time.Second
	servers := embeddedtest.Start(t)
	env := []string{"NATS_URL=" + servers.NATSURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_AUTH=off", "LONGSHORE_INDEX=none"}
	begin := func(name string) *process { return spawn(t, name, env, binary, "dispatcher") }
	pair := []*process{begin("dispatcher 0"), begin("dispatcher 1")}
	for _, p := range pair {
		p.line(`"message":"ready"`)
	}
	w := &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL, model: newModel(t, hello)}
	w.connect()
	w.worker("worker")
	s := control.Schedule{Name: "often", Cron: "* * * * * *", Overlap: control.OverlapAllow, Task: messages.Task{Input: messages.TextInput("tick")}}
	s.SetDefaults()
	ref, ended := s.Ref(), w.ends("often")
	points := []string{
		w.bus.Partitions(bus.StreamTasks).SubjectIn(0, ref.NextSubject()), "$KV.SCHEDULES.state.default.often",
		bustest.QueueOf(w.bus, messages.PriorityNormal, messages.DefaultTenant),
	}
	reached := make([]chan struct{}, len(points))
	for i, subject := range points {
		reached[i] = make(chan struct{}, 1)
		if _, err := w.nc.Subscribe(subject, func(*nats.Msg) {
			select {
			case reached[i] <- struct{}{}:
			default:
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.client.Schedules().Put(t.Context(), s, "", nil); err != nil {
		t.Fatal(err)
	}
	begun, killed := time.Now(), 0
	for ; killed < least || killed < most && time.Since(begun) < long; killed++ {
		point, victim := reached[killed%len(reached)], killed%len(pair)
		select {
		case <-point: // of before
		default:
		}
		select {
		case <-point:
		case <-time.After(patience):
			t.Fatalf("kill %d: nothing on %s within %s", killed, points[killed%len(points)], patience)
		}
		pair[victim].kill()
		pair[victim] = begin(fmt.Sprintf("dispatcher %d after %d kills", victim, killed+1))
	}
	for _, p := range pair {
		p.line(`"message":"ready"`)
	}
	over := time.Now()
	var st *control.ScheduleStatus
	eventually(t, "an occurrence after the kills runs", func() (ok bool) {
		var err error
		st, err = w.client.Schedules().Get(t.Context(), ref)
		return err == nil && st.Last != nil && st.Last.At.After(over) && ended.of(ref.Run(st.Last.At).Run) > 0
	})
	if _, err := w.client.Schedules().Pause(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	skipped, from := map[time.Time]string{}, begun.Truncate(time.Second).Add(time.Second)
	if len(st.Skipped) == control.MaxSkipped {
		from = st.Skipped[0].At // those before are no longer listed
	}
	for _, sk := range st.Skipped {
		if sk.Reason == "" {
			t.Errorf("%+v has no reason", sk)
		}
		for i := range sk.Count {
			skipped[sk.At.Add(time.Duration(i)*time.Second).UTC()] = sk.Reason
		}
	}
	ran := 0
	for at := from.UTC(); !at.After(st.Last.At); at = at.Add(time.Second) {
		run, reason := ref.Run(at), skipped[at]
		if reason == "" {
			eventually(t, "the run "+run.Run+" ends, for its occurrence is not listed as skipped", func() bool { return ended.of(run.Run) > 0 })
		}
		switch n := ended.of(run.Run); {
		case n > 1:
			t.Errorf("%s ended %d times", run.Run, n)
		case n == 1 && reason != "":
			t.Errorf("%s ran, and is listed as skipped: %s", run.Run, reason)
		case n == 1:
			ran++
		}
	}
	t.Logf("%d kills in %s: %d ran, %d were skipped: %+v", killed, over.Sub(begun).Round(time.Second), ran, len(skipped), st.Skipped)
	if ran == 0 {
		t.Error("no occurrence ran")
	}
	eventually(t, "the model is called once for each run", func() bool { return w.model.counts()["tick 0"] == ended.runs() })
}
