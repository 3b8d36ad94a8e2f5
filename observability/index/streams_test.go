//go:build unix

package index_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

// An index of events in four streams has each event once and its runs by the time at which they began, also when it is stopped in the middle
// and when it is made again, and of what is in the wrong stream nothing.
func TestSeveralStreams(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbourOf(t, 4)
		streams := h.bus.Partitions(bus.StreamEvents)
		if len(streams.Names()) != 4 {
			t.Skip("LONGSHORE_TEST_PARTITIONS says otherwise")
		}
		where := place()
		var want []control.RunSummary
		var newest []string
		for round := range 3 {
			var all [][]messages.Event
			for i := range 8 {
				events := made(acme(fmt.Sprintf("run-%d-%d", round, i)), noon, nil)
				all = append(all, events)
				want = append(want, fold(events))
				newest = append(newest, events[0].Subject)
			}
			for n := range all[0] { // by turns
				for i := range all {
					h.publish(all[i][n])
				}
			}
			x, err := index.New(index.Config{Bus: h.bus, Where: where})
			if err != nil {
				t.Fatal(err)
			}
			stop := h.keep(x)
			if round != 1 { // else somewhere
				h.caughtUp(x)
			}
			stop()
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		slices.Reverse(newest)
		ghost := made(acme("ghost"), noon, nil)[0]
		body, err := json.Marshal(ghost)
		if err != nil {
			t.Fatal(err)
		}
		wrong := bus.PartitionSubject(ghost.Ref().EventSubject(ghost.Name()), (bus.PartitionOf(ghost.Ref(), 4)+1)%4, 4)
		if _, err := h.js.Publish(t.Context(), wrong, body); err != nil {
			t.Fatal(err)
		}
		x := h.open(where)
		h.keep(x)
		h.caughtUp(x)
		same := func(what string) {
			t.Helper()
			runs, steps := dump(t, x)
			for _, w := range want {
				if diff := cmp.Diff(w, runs["acme/"+w.ID], asFolded); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
			if len(runs) != len(want) || len(steps) != len(want) {
				t.Errorf("%s: %d runs, %d with steps, want %d", what, len(runs), len(steps), len(want))
			}
			if diff := cmp.Diff(newest, ids(t, x, control.RunsRequest{Limit: 100})); diff != "" {
				t.Errorf("%s: the order: %s", what, diff)
			}
			sumsAreRight(t, x)
		}
		same("kept")
		rebuild := func() {
			t.Helper()
			if err := x.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.caughtUp(x)
		}
		if err := x.Exec(t.Context(), "UPDATE longshore_runs SET input = 'wrong'"); err != nil {
			t.Fatal(err)
		}
		rebuild()
		same("made again")
		// Of one stream half is gone, of another all: what is left of their runs are the rows.
		for i, keep := range []uint64{5, 0} {
			s, err := h.js.Stream(t.Context(), streams.Names()[i])
			if err != nil {
				t.Fatal(err)
			}
			opt := jetstream.WithPurgeKeep(keep)
			if keep == 0 {
				opt = func(*jetstream.StreamPurgeRequest) error { return nil }
			}
			if err := s.Purge(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
		}
		rebuild()
		same("made again of what is left")
	})
}
