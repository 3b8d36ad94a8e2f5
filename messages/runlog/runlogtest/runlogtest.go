// Package runlogtest is what every runlog.Log must pass. Call [Run] in the tests of an implementation.
package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// long is the size of a log that no single answer holds.
const long = 3000

// Run tests the logs that open returns, each of which must be empty of the runs of tenant "suite" and its neighbours.
// A subtest asks for a log once.
func Run(t *testing.T, open func(t *testing.T) runlog.Log) {
	t.Helper()
	for _, tt := range []struct {
		name string
		test func(*testing.T, runlog.Log)
	}{
		{"an unknown run has nothing", testUnknown},
		{"an entry comes back as it was", testEntry},
		{"a claim and a park learn their own sequence", testOwnSequence},
		{"an end comes with its records", testEnd},
		{"an append elsewhere than at the end conflicts", testConflict},
		{"an append that is repeated is the same append", testRepeat},
		{"a read yields what was asked for", testRead},
		{"a read may be broken off", testBreak},
		{"runs do not mix", testInterleaved},
		{"each position is won once", testConcurrent},
		{"a large entry comes back whole", testLarge},
		{"a long log comes back whole", testLong},
		{"a context that has ended leaves no half-done call", testContext},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open(t)) })
	}
}

// Ref is a run of the suite.
func Ref(id string) messages.Ref { return messages.Ref{Tenant: "suite", Run: id} }

// entry is a valid entry with records; id makes it the one it is.
func entry(id string, records ...record.Record) record.Entry {
	h := record.Follow(record.Head{}, records...)
	h.ID, h.Time = id, time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	return record.Entry{Head: h, Records: records}
}

func step(n int) record.Entry {
	return entry("entry-"+strconv.Itoa(n), &record.StepStarted{Step: n})
}

func mustAppend(t *testing.T, log runlog.Log, run messages.Ref, last uint64, e record.Entry) uint64 {
	t.Helper()
	seq, err := log.Append(t.Context(), run, last, e)
	if err != nil {
		t.Fatalf("append %s after %d: %v", e.Head.ID, last, err)
	}
	if seq <= last {
		t.Fatalf("append after %d: got sequence %d, want a greater one", last, seq)
	}
	return seq
}

// fill appends n steps and returns them as the log should have them.
func fill(t *testing.T, log runlog.Log, run messages.Ref, n int) []record.Entry {
	t.Helper()
	entries := make([]record.Entry, n)
	last := uint64(0)
	for i := range entries {
		last = mustAppend(t, log, run, last, step(i+1))
		entries[i] = step(i + 1).At(last)
	}
	return entries
}

func read(t *testing.T, log runlog.Log, run messages.Ref, after, through uint64) []record.Entry {
	t.Helper()
	var entries []record.Entry
	for e, err := range log.Read(t.Context(), run, after, through) {
		if err != nil {
			t.Fatalf("read %s after %d through %d: %v", run, after, through, err)
		}
		entries = append(entries, e)
	}
	return entries
}

func equal(t *testing.T, what string, want, got []record.Entry) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, strict.Clip(diff, 4<<10))
	}
}

func testUnknown(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("unknown")
	if _, ok, err := log.Last(t.Context(), run); ok || err != nil {
		t.Errorf("last: got %v, %v, want false, nil", ok, err)
	}
	for _, heard := range []bool{false, true} {
		if _, ok, err := log.End(t.Context(), run, heard); ok || err != nil {
			t.Errorf("end, heard %t: got %v, %v, want false, nil", heard, ok, err)
		}
	}
	for _, through := range []uint64{0, 1, 1000, runlog.Tail} {
		if got := read(t, log, run, 0, through); len(got) != 0 {
			t.Errorf("read through %d: got %d entries", through, len(got))
		}
	}
	if _, err := log.Append(t.Context(), run, 7, step(1)); !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("append after 7: got %v, want %v", err, runlog.ErrConflict)
	}
}

func testEntry(t *testing.T, log runlog.Log) {
	t.Helper()
	run, until := Ref("entry"), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	want := entry("01", &record.Started{
		Task:     messages.Task{ID: run.Run, Tenant: run.Tenant, Agent: "a", Input: messages.TextInput("Grüße \x7f \u2028 <&>"), Priority: messages.PriorityHigh},
		Agent:    messages.BuiltinAgent(),
		Tools:    []messages.ToolSpec{{Name: "t", InputSchema: []byte(`{"type":"object"}`), Effect: messages.EffectRead}},
		QueuedAt: until,
	}, &record.CancelRequested{ID: "c", By: "someone", Reason: "line\nbreak\r\n\x00"}, &record.Parked{Reason: "timer", Until: &until})
	want.Head.EventsThrough, want.Head.Attempt, want.Head.Waits = 12, 3, "timer \"quoted\" ü\n\t"
	seq := mustAppend(t, log, run, 0, want)
	want = want.At(seq)
	equal(t, "read", []record.Entry{want}, read(t, log, run, 0, runlog.Tail))
	got, ok, err := log.Last(t.Context(), run)
	if !ok || err != nil {
		t.Fatalf("last: got %v, %v", ok, err)
	}
	equal(t, "last", heads(want), []record.Entry{got})
	equal(t, "heads", heads(want), readHeads(t, log, run, 0, runlog.Tail))
}

// heads are entries without their records.
func heads(entries ...record.Entry) []record.Entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].Records = nil
	}
	return out
}

func readHeads(t *testing.T, log runlog.Log, run messages.Ref, after, through uint64) []record.Entry {
	t.Helper()
	var out []record.Entry
	for e, err := range log.Heads(t.Context(), run, after, through) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func testOwnSequence(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("own")
	claim := mustAppend(t, log, run, 0, entry("01", &record.Claimed{Claim: "c", Worker: "w", Ticket: 5}))
	park := mustAppend(t, log, run, claim, entry("02", &record.Parked{Reason: "answer"}))
	both := mustAppend(t, log, run, park, entry("03", &record.Claimed{Claim: "d"}, &record.Parked{Reason: "answer"}))
	got := read(t, log, run, 0, both)
	if len(got) != 3 {
		t.Fatalf("got %d entries, want 3", len(got))
	}
	for i, want := range []struct{ claim, park uint64 }{{claim, 0}, {0, park}, {both, both}} {
		if h := got[i].Head; h.ClaimSeq != want.claim || h.ParkSeq != want.park {
			t.Errorf("entry %d: got claim %d and park %d, want %d and %d", i, h.ClaimSeq, h.ParkSeq, want.claim, want.park)
		}
	}
	last, _, err := log.Last(t.Context(), run)
	if err != nil || last.Seq != both || last.Head.ClaimSeq != both || last.Head.ParkSeq != both {
		t.Errorf("last: got %+v, %v", last, err)
	}
}

func testEnd(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("end")
	end := func(what string, want record.Entry) {
		t.Helper()
		for _, heard := range []bool{false, true} {
			got, ok, err := log.End(t.Context(), run, heard)
			if !ok || err != nil {
				t.Fatalf("%s, heard %t: got %v, %v", what, heard, ok, err)
			}
			equal(t, what, []record.Entry{want}, []record.Entry{got})
		}
	}
	claim := mustAppend(t, log, run, 0, entry("01", &record.Claimed{Claim: "c", Worker: "w", Ticket: 5}))
	end("of a run that works", heads(read(t, log, run, 0, claim)...)[0])
	finished := mustAppend(t, log, run, claim, entry("02", &record.StepStarted{Step: 1},
		&record.Finished{Result: messages.AgentResult{ID: run.Run, Status: messages.StatusCompleted, Result: "ok"}}))
	got := read(t, log, run, claim, finished)
	if len(got) != 1 || got[0].Head.Phase != record.PhaseFinished || len(got[0].Records) != 2 {
		t.Fatalf("got %+v, want one entry that ends the run", got)
	}
	end("of a run that has ended", got[0])
	if last, ok, err := log.Last(t.Context(), run); !ok || err != nil || last.Seq != finished || len(last.Records) != 0 {
		t.Errorf("last: got %+v, %v, %v, want the end without its records", last, ok, err)
	}
}

func testConflict(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("conflict")
	other := mustAppend(t, log, Ref("conflict-other"), 0, step(1))
	first := mustAppend(t, log, run, 0, step(1))
	second := mustAppend(t, log, run, first, step(2))
	for _, last := range []uint64{0, first, other, second + 1} {
		if _, err := log.Append(t.Context(), run, last, step(3)); !errors.Is(err, runlog.ErrConflict) {
			t.Errorf("append after %d of %d: got %v, want %v", last, second, err, runlog.ErrConflict)
		}
	}
	equal(t, "after conflicts", []record.Entry{step(1).At(first), step(2).At(second)}, read(t, log, run, 0, runlog.Tail))
}

func testRepeat(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("repeat")
	first := mustAppend(t, log, run, 0, step(1))
	second := mustAppend(t, log, run, first, step(2))
	mustAppend(t, log, run, second, step(3))
	for _, tt := range []struct {
		last, want uint64
		e          record.Entry
	}{{0, first, step(1)}, {first, second, step(2)}} {
		if seq, err := log.Append(t.Context(), run, tt.last, tt.e); seq != tt.want || err != nil {
			t.Errorf("append %s again: got %d, %v, want %d", tt.e.Head.ID, seq, err, tt.want)
		}
	}
	if got := read(t, log, run, 0, runlog.Tail); len(got) != 3 {
		t.Errorf("got %d entries, want 3", len(got))
	}
}

func testRead(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("read")
	want := fill(t, log, run, 5)
	for after := range 6 {
		from := uint64(0)
		if after > 0 {
			from = want[after-1].Seq
		}
		equal(t, fmt.Sprintf("after %d through the tail", after), emptyNil(want[after:]), read(t, log, run, from, runlog.Tail))
		for through := after; through < 5; through++ {
			got := read(t, log, run, from, want[through].Seq)
			if n := through - after + 1; len(got) < n {
				t.Errorf("after %d through %d: got %d entries, want at least %d", after, through, len(got), n)
			}
			equal(t, "a prefix", want[after:after+len(got)], got)
		}
	}
	end := want[4].Seq
	if got := read(t, log, run, end+100, end+200); len(got) != 0 {
		t.Errorf("beyond the end: got %d entries", len(got))
	}
	equal(t, "through more than there is", want, read(t, log, run, 0, end+100))
	equal(t, "after a sequence that is not in the log", want[4:], read(t, log, run, end-1, end))
}

func emptyNil(entries []record.Entry) []record.Entry {
	if len(entries) == 0 {
		return nil
	}
	return entries
}

func testBreak(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("break")
	want := fill(t, log, run, 3)
	for range 2 {
		n := 0
		for e, err := range log.Read(t.Context(), run, 0, runlog.Tail) {
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the first", want[:1], []record.Entry{e})
			n++
			break
		}
		if n != 1 {
			t.Fatalf("got %d entries", n)
		}
	}
}

func testInterleaved(t *testing.T, log runlog.Log) {
	t.Helper()
	runs := []messages.Ref{Ref("a"), Ref("b"), Ref("a-b"), {Tenant: "suite-a", Run: "a"}}
	want := map[messages.Ref][]record.Entry{}
	last := map[messages.Ref]uint64{}
	for i := range 10 {
		for _, run := range runs {
			e := entry(fmt.Sprintf("%s-%d", run, i), &record.StepStarted{Step: i})
			last[run] = mustAppend(t, log, run, last[run], e)
			want[run] = append(want[run], e.At(last[run]))
		}
	}
	for _, run := range runs {
		equal(t, run.String(), want[run], read(t, log, run, 0, runlog.Tail))
	}
}

func testConcurrent(t *testing.T, log runlog.Log) {
	t.Helper()
	const writers, each = 8, 20
	run := Ref("concurrent")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := appendSomewhere(t.Context(), log, run, fmt.Sprintf("%d-%d", w, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	last := uint64(0)
	for _, e := range read(t, log, run, 0, runlog.Tail) {
		if seen[e.Head.ID] || e.Seq <= last {
			t.Errorf("entry %s at %d after %d: twice, or out of order", e.Head.ID, e.Seq, last)
		}
		if got := e.Records[0].(*record.CancelRequested).By; got != strconv.FormatUint(last, 10) { //nolint:forcetypeassert // written here
			t.Errorf("entry %s follows %d, but expected %s", e.Head.ID, last, got)
		}
		seen[e.Head.ID], last = true, e.Seq
	}
	if len(seen) != writers*each {
		t.Errorf("got %d entries, want %d", len(seen), writers*each)
	}
}

// appendSomewhere appends an entry that says what it expected.
func appendSomewhere(ctx context.Context, log runlog.Log, run messages.Ref, id string) error {
	for {
		last, _, err := log.Last(ctx, run)
		if err != nil {
			return err
		}
		_, err = log.Append(ctx, run, last.Seq, entry(id, &record.CancelRequested{ID: id, By: strconv.FormatUint(last.Seq, 10)}))
		if !errors.Is(err, runlog.ErrConflict) {
			return err
		}
	}
}

func testLarge(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("large")
	text := strings.Repeat("Schöne Grüße aus dem Hafen. ", 1<<20/28) // more than a message may have
	large := entry("01", &record.ToolReturned{Step: 1, Name: "read_file", Result: messages.ToolResult{
		CallID: "c", Content: messages.TextContent(text),
	}})
	first := mustAppend(t, log, run, 0, large)
	second := mustAppend(t, log, run, first, step(2))
	third := mustAppend(t, log, run, second, entry("03", large.Records...))
	if seq, err := log.Append(t.Context(), run, 0, large); seq != first || err != nil {
		t.Errorf("append again: got %d, %v, want %d", seq, err, first)
	}
	want := []record.Entry{large.At(first), step(2).At(second), entry("03", large.Records...).At(third)}
	equal(t, "read", want, read(t, log, run, 0, runlog.Tail))
	last, _, err := log.Last(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "last", heads(want[2]), []record.Entry{last})
}

func testLong(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("long")
	want := fill(t, log, run, long)
	equal(t, "all", want, read(t, log, run, 0, runlog.Tail))
	equal(t, "the end", want[long-10:], read(t, log, run, want[long-11].Seq, want[long-1].Seq))
	equal(t, "heads", heads(want...), readHeads(t, log, run, 0, runlog.Tail))
	equal(t, "heads of the end", heads(want[long-10:]...), readHeads(t, log, run, want[long-11].Seq, want[long-1].Seq))
}

// testContext allows a log that need not wait to do its work all the same; nothing may be done by halves.
func testContext(t *testing.T, log runlog.Log) {
	t.Helper()
	run := Ref("context")
	want := fill(t, log, run, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	seq, err := log.Append(ctx, run, want[1].Seq, step(3))
	switch {
	case err == nil:
		want = append(want, step(3).At(seq))
	case !errors.Is(err, why):
		t.Errorf("append: got %v, want %v", err, why)
	}
	if _, _, err := log.Last(ctx, run); err != nil && !errors.Is(err, why) {
		t.Errorf("last: got %v, want %v", err, why)
	}
	var got []record.Entry
	for e, err := range log.Read(ctx, run, 0, runlog.Tail) {
		if err == nil {
			got = append(got, e)
			continue
		}
		if !errors.Is(err, why) {
			t.Errorf("read: got %v, want %v", err, why)
		}
		got = want
	}
	equal(t, "read without an error", want, got)
	equal(t, "afterwards", want, read(t, log, run, 0, runlog.Tail))
}
