//go:build unix

package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// A dispatcher's metrics count the runs that it has removed after their retention, and those among them whose end was no
// longer stored.
func TestRemovedRunsAreCounted(t *testing.T) {
	t.Parallel()
	const runs = 5
	servers := embeddedtest.Start(t)
	m := &measured{t: t, pages: map[string]string{}}
	anHourOn := func(s *settings.Dispatcher) { s.Retention = -time.Hour } // as if an hour had passed since each run ended
	stop := m.dispatcher("dispatcher", servers, anHourOn)
	m.town = &town{t: t, nats: servers.NATSURL, redis: servers.RedisURL, model: newModel(t, hello)}
	m.town.connect()
	m.worker(servers)
	counts := func(of string, all, late int) {
		t.Helper()
		want := []string{fmt.Sprintf("\nlongshore_runs_removed_total %d\n", all), fmt.Sprintf("\nlongshore_runs_removed_late_total %d\n", late)}
		eventually(t, fmt.Sprintf("%d runs were removed, %d of them late", all, late), func() bool { return containsAll(m.page(of), want) })
	}
	counts("dispatcher", 0, 0)
	for i := range runs {
		m.town.submit(fmt.Sprint("hello ", i))
	}
	counts("dispatcher", runs, 0)
	stop()

	// Without a dispatcher a run ends, and its end expires among the events.
	late := messages.Ref{Tenant: messages.DefaultTenant, Run: "late"}
	if _, err := m.town.nc.Request("tasks.normal.default.late", []byte(`{"input":"hello"}`), patience); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it ends", func() bool {
		ended, err := runlogs.New(m.town.bus, runlogs.Config{}).Ended(t.Context(), late)
		return err == nil && ended
	})
	end := `{"filter":"` + late.EventSubject(messages.EventRunFinished) + `"}`
	if r, err := m.town.nc.Request("$JS.API.STREAM.PURGE."+m.town.bus.Partitions(bus.StreamEvents).NameOf(late), []byte(end), patience); err != nil || !strings.Contains(string(r.Data), `"purged":1`) {
		t.Fatalf("%s, %v", r.Data, err)
	}
	eventually(t, "no end is still to come", func() bool {
		l, ok, err := m.town.bus.Partitions(bus.StreamEvents).Lag(t.Context(), "retention")
		return err == nil && ok && l.Oldest.IsZero()
	})
	m.dispatcher("another", servers, anHourOn)
	counts("another", 1, 1)
}
