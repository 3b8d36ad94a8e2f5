package longterm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
)

func TestMeasured(t *testing.T) {
	now := longtermtest.At(0)
	m := longterm.Measure(memstore.New(memstore.Config{Limits: longterm.Limits{Items: 2}, Now: func() time.Time { return now }}))
	at := longtermtest.Place("c")
	items := []longterm.Item{{ID: "a", Text: "anchor", Expires: longtermtest.At(1)}, {ID: "b"}}
	if err := m.Write(t.Context(), at, items); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), at, []longterm.Item{{ID: "c"}}); err == nil {
		t.Error("want an error of the quota")
	}
	for _, text := range []string{"anchor", "crate", ""} {
		_, _ = m.Search(t.Context(), at, longterm.Search{Text: text}) // the last is refused
	}
	if _, err := m.Delete(t.Context(), at, longterm.Deletion{IDs: []string{"b"}}); err != nil {
		t.Fatal(err)
	}
	now = longtermtest.At(2)
	if _, err := m.Sweep(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	want := longterm.Counts{Hits: 1, Misses: 1, Written: 2, Bytes: uint64(items[0].Size() + items[1].Size()), Deleted: 1, Evicted: 1}
	if diff := cmp.Diff(want, m.Counts()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]uint64{"write": 2, "search": 3, "delete": 1, "sweep": 1, "read": 0, "query": 0}, m.Calls()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]uint64{"quota": 1, "input": 1, "unavailable": 0, "full": 0, "other": 0}, m.Failures()); diff != "" {
		t.Error(diff)
	}
	if s := m.Seconds(); len(s) != 6 || s["write"] <= 0 {
		t.Errorf("%v", s)
	}
}
