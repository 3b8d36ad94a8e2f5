package audit

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

// An auditor of events in four streams has each message once and compares each run once, however often it is stopped; what is in the wrong
// stream is no event of a run. Its folder is not continued with another number of streams.
func TestAuditOfSeveralStreams(t *testing.T) {
	t.Parallel()
	p, key, dir := openPortOf(t, 4), newKey(t), t.TempDir()
	if len(p.bus.Partitions(bus.StreamEvents).Names()) != 4 {
		t.Skip("LONGSHORE_TEST_PARTITIONS says otherwise")
	}
	var want []string
	const rounds, each = 3, 6
	for round := range rounds {
		logs := make([][]messages.Event, each)
		for i := range logs {
			run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d-%d", round, i)}
			_, logs[i] = p.begin(run)
		}
		for n := range logs[0] { // by turns
			for _, events := range logs {
				p.raw(events[n].Ref(), events[n])
				want = append(want, "acme event acme."+events[n].Subject+"."+events[n].Name())
			}
		}
		compared := (round + 1) * each
		if round == 1 { // stopped as soon as it has compared one more
			compared = each + 1
		}
		p.audit(dir, key, time.Hour, func(_ Summary, entries []string) bool {
			return len(kinds(entries, KindCompared)) >= compared
		})
	}
	ghost := messages.Ref{Tenant: "acme", Run: "ghost"}
	_, events := p.begin(ghost)
	end := events[len(events)-1]
	wrong := bus.PartitionSubject(ghost.EventSubject(end.Name()), (bus.PartitionOf(ghost, 4)+1)%4, 4)
	if _, err := p.nc.Request(wrong, record.AppendEvent(nil, &end), patience); err != nil {
		t.Fatal(err)
	}
	entries := p.audit(dir, key, time.Hour, func(sum Summary, entries []string) bool {
		return len(kinds(entries, KindForeign)) == 1 && sum.Head.Position == uint64(len(want))+1
	})
	if got := kinds(entries, KindEvent); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%d events, want %d: %q", len(got), len(want), got)
	}
	if got := kinds(entries, KindCompared); len(got) != rounds*each {
		t.Errorf("%d runs were compared, want %d", len(got), rounds*each)
	}
	if found := kinds(entries, KindFinding); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if os.Getenv(embeddedtest.PartitionsVariable) != "" {
		return
	}
	whole := openPortOf(t, 1)
	s, err := Open(StoreConfig{Dir: dir, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := New(Config{Store: s, Bus: whole.bus}).Run(ctx); err == nil || !strings.Contains(err.Error(), "start a new folder") {
		t.Errorf("with one stream: %v", err)
	}
}
