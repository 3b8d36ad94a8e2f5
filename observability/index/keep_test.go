//go:build unix

package index_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

// Each event counts once, however often processes are stopped in the middle.
func TestRestarts(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		where := place()
		var want []control.RunSummary
		for round := range 4 {
			for i := range 5 {
				events := made(acme(fmt.Sprintf("run-%d-%d", round, i)), noon, nil)
				h.publish(events...)
				want = append(want, fold(events))
			}
			x, err := index.New(index.Config{Bus: h.bus, Where: where})
			if err != nil {
				t.Fatal(err)
			}
			stop := h.keep(x)
			if round%2 == 0 { // else somewhere
				h.caughtUp(x)
			}
			stop()
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		x := h.open(where)
		h.keep(x)
		h.caughtUp(x)
		runs, steps := dump(t, x)
		for _, w := range want {
			got := runs["acme/"+w.ID]
			if diff := cmp.Diff(w, got, asFolded); diff != "" || got.ModelCalls != 1 || got.ToolCalls != 1 {
				t.Errorf("%+v: %s", got, diff)
			}
		}
		if len(runs) != len(want) || len(steps) != len(want) {
			t.Errorf("%d runs, %d with steps, want %d", len(runs), len(steps), len(want))
		}
	})
}

// A batch is applied with its position or not at all, and only from the position that it follows.
func TestApplyIsAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		where := place()
		x, y := h.open(where), h.open(where)
		if err := x.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := y.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := made(acme("run"), noon, nil)
		batch := func(from, to int) (out []index.Placed) {
			for i := from; i < to; i++ {
				out = append(out, index.NewPlaced(events[i], uint64(i+1)))
			}
			return out
		}
		if err := x.Apply(t.Context(), 0, 4, batch(0, 4)...); err != nil {
			t.Fatal(err)
		}
		if err := y.Apply(t.Context(), 0, 7, batch(0, 7)...); !is(err, index.ErrMoved) {
			t.Errorf("by another from where it was: %v", err)
		}
		before, stepsBefore := dump(t, x)
		if err := x.Exec(t.Context(), "ALTER TABLE longshore_sums RENAME TO longshore_gone"); err != nil {
			t.Fatal(err)
		}
		if err := x.Apply(t.Context(), 4, 7, batch(4, 7)...); err == nil {
			t.Error("applied without a table")
		}
		after, stepsAfter := dump(t, x)
		if diff := cmp.Diff(before, after) + cmp.Diff(stepsBefore, stepsAfter); diff != "" {
			t.Errorf("half of a batch: %s", diff)
		}
		if err := x.Exec(t.Context(), "ALTER TABLE longshore_gone RENAME TO longshore_sums"); err != nil {
			t.Fatal(err)
		}
		if err := y.Apply(t.Context(), 4, 7, batch(4, 7)...); err != nil {
			t.Errorf("by another from where it is: %v", err)
		}
		runs, _ := dump(t, x)
		if diff := cmp.Diff(fold(events), runs["acme/run"], asFolded); diff != "" {
			t.Error(diff)
		}
	})
}

// The tables of version 1 get a column for the parent of a run, and keep their rows, of which EVENTS may have no events left.
func TestTablesWithoutParents(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		x := h.open(place())
		stop := h.keep(x)
		h.publish(made(acme("old"), noon, nil)...)
		h.caughtUp(x)
		stop()
		for _, back := range []string{
			"DROP INDEX longshore_runs_parent", "ALTER TABLE longshore_runs DROP COLUMN parent", "DROP INDEX longshore_runs_code",
			"DROP TABLE longshore_loose", "DROP TABLE longshore_blocks", "DROP TABLE longshore_bits",
			"DROP TABLE longshore_sums", "DROP TABLE longshore_toolsums", "DROP TABLE longshore_kept", "ALTER TABLE longshore_runs DROP COLUMN tools",
			`CREATE TABLE longshore_tools (
				tenant TEXT NOT NULL, run TEXT NOT NULL, step TEXT NOT NULL, tool TEXT NOT NULL, calls BIGINT NOT NULL, errors BIGINT NOT NULL, millis BIGINT NOT NULL,
				PRIMARY KEY (tenant, run, step, tool))`,
			"INSERT INTO longshore_tools VALUES ('acme', 'old', 'step-1', 't', 1, 0, 7)",
		} {
			if err := x.Exec(t.Context(), back); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.SetVersion(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		h.purge(acme("old"), 0)
		h.keep(x)
		h.publish(numbered(acme("child"), noon, messages.EventRunQueued, messages.RunQueued{Agent: "leaf"},
			messages.EventRunStarted, messages.RunStarted{Agent: "leaf", Parent: &messages.ParentRef{Run: "old", CallID: "c1"}})...)
		h.caughtUp(x)
		if diff := cmp.Diff([]string{"child", "old"}, ids(t, x, control.RunsRequest{})); diff != "" {
			t.Errorf("all runs: %s", diff)
		}
		if diff := cmp.Diff([]string{"child"}, ids(t, x, control.RunsRequest{Parent: "old"})); diff != "" {
			t.Errorf("the children of a run: %s", diff)
		}
		if runs, _ := dump(t, x); runs["acme/child"].Parent != "old" || runs["acme/old"].Parent != "" {
			t.Errorf("%+v", runs)
		}
		sumsAreRight(t, x)
	})
}

// A rebuilt index equals the old one, except for events that EVENTS no longer holds.
func TestRebuild(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		x := h.open(place())
		h.keep(x)
		for _, l := range golden(t) {
			h.publish(l...)
		}
		h.caughtUp(x)
		wantRuns, wantSteps := dump(t, x)
		if err := x.Exec(t.Context(), "UPDATE longshore_runs SET agent = 'wrong', steps = 77"); err != nil {
			t.Fatal(err)
		}
		rebuild := func() {
			t.Helper()
			if err := x.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.caughtUp(x)
		}
		rebuild()
		runs, steps := dump(t, x)
		if diff := cmp.Diff(wantRuns, runs) + cmp.Diff(wantSteps, steps); diff != "" {
			t.Error(diff)
		}
		h.publish(made(acme("late"), noon, nil)...)
		h.caughtUp(x)
		wantRuns, wantSteps = dump(t, x)
		h.purge(acme("late"), 3) // of the last run only its end
		rebuild()
		runs, steps = dump(t, x)
		if diff := cmp.Diff(wantRuns, runs) + cmp.Diff(wantSteps, steps); diff != "" {
			t.Errorf("what EVENTS does not tell: %s", diff)
		}
		h.purge(acme("late"), 0)
		rebuild() // of a stream with nothing in it
		if runs, _ = dump(t, x); len(runs) != len(wantRuns) {
			t.Errorf("%d runs, want %d", len(runs), len(wantRuns))
		}
	})
}

// The rows of another stream, of one that was restored, and of another version, are given up.
func TestMadeAgain(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		where := place()
		old := newHarbour(t)
		x := old.open(where)
		stop := old.keep(x)
		old.publish(made(acme("old"), noon, nil)...)
		old.publish(made(acme("old2"), noon, nil)...)
		old.caughtUp(x)
		stop()

		h := newHarbour(t)
		h.publish(made(acme("new"), noon, nil)...)
		y := h.open(where)
		stop = h.keep(y)
		h.caughtUp(y)
		if diff := cmp.Diff([]string{"new"}, ids(t, y, control.RunsRequest{})); diff != "" {
			t.Errorf("another stream: %s", diff)
		}
		stop()

		state, err := events.New(h.bus).State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ahead := slices.Clone(state.Last)
		ahead[0] += 5000
		// With several streams the position in each is behind the name of the stream.
		move := "UPDATE longshore_index SET position = %d, stream = replace(stream, ' at %s', ' at %s')"
		if err := y.Exec(t.Context(), fmt.Sprintf(move, ahead.Sum(), state.Last, ahead)); err != nil {
			t.Fatal(err)
		}
		stop = h.keep(y)
		h.caughtUp(y)
		if diff := cmp.Diff([]string{"new"}, ids(t, y, control.RunsRequest{})); diff != "" {
			t.Errorf("ahead: %s", diff)
		}
		stop()

		if err := y.SetVersion(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		stop = h.keep(y)
		h.caughtUp(y)
		if diff := cmp.Diff([]string{"new"}, ids(t, y, control.RunsRequest{})); diff != "" {
			t.Errorf("another version: %s", diff)
		}
		stop()

		if err := y.SetVersion(t.Context(), 99); err != nil {
			t.Fatal(err)
		}
		h.keep(y)
		h.until("an index of a newer version is left alone", func() bool {
			s, err := y.Status(t.Context())
			return err == nil && strings.Contains(s.Error, "newer version")
		})
		if _, err := y.Runs(t.Context(), control.RunsRequest{Tenant: "acme", Limit: 1}); !is(err, index.ErrNotReady) {
			t.Errorf("a list of a newer version: %v", err)
		}
	})
}

// Two on one database: one applies, the other answers and takes over.
func TestTwoOnOne(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		where := place()
		x, y := h.open(where), h.open(where)
		stopX := h.keep(x)
		h.publish(made(acme("one"), noon, nil)...)
		h.caughtUp(x)
		h.keep(y)
		h.caughtUp(y)
		for i := range 20 {
			h.publish(made(acme(fmt.Sprintf("both-%d", i)), noon, nil)...)
			for _, z := range []*index.Index{x, y} {
				if got := ids(t, z, control.RunsRequest{Limit: 1}); len(got) != 1 || got[0] != fmt.Sprintf("both-%d", i) {
					t.Fatalf("%d: got %v", i, got) // what was stored before a list is in it
				}
			}
		}
		stopX()
		h.publish(made(acme("two"), noon, nil)...)
		h.caughtUp(y)
		runs, _ := dump(t, y)
		if len(runs) != 22 {
			t.Errorf("%d runs", len(runs))
		}
		for _, r := range runs {
			if r.ModelCalls != 1 || r.Usage.Total != 10 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Whatever is in an event, the next ones are applied.
func TestHostileEvents(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		x := h.open(place())
		h.keep(x)
		ref := acme("hostile")
		huge := strings.Repeat("ü'\\\"%_\x00", 20_000)
		text, _ := json.Marshal(huge)
		key, _ := json.Marshal(strings.Repeat("k", 50_000))
		var many []string
		for i := range 500 {
			many = append(many, fmt.Sprintf(`"k%d":"v"`, i))
		}
		data := map[string]string{
			messages.EventRunQueued:        fmt.Sprintf(`{"agent":%s,"priority":%s,"sessionId":%s,"labels":{%s:%s,%s},"input":%s,"queuedAt":"9999-12-31T23:59:59Z"}`, text, text, text, key, text, strings.Join(many, ","), text),
			messages.EventRunStarted:       fmt.Sprintf(`{"model":%s}`, text),
			messages.EventStepStart:        `{"stepId":"step-99999999999999999999","step":9223372036854775807}`,
			messages.EventMessageEnd:       fmt.Sprintf(`{"stepId":%s,"model":%s,"usage":{"input":9223372036854775807,"total":9223372036854775807},"millis":-9223372036854775808,"cost":1e300}`, text, text),
			messages.EventToolExecutionEnd: fmt.Sprintf(`{"stepId":%s,"toolName":%s,"millis":9223372036854775807,"isError":true}`, text, text),
			messages.EventStepEnd:          fmt.Sprintf(`{"stepId":%s,"status":%s,"reason":%s}`, text, text, text),
			messages.EventError:            fmt.Sprintf(`{"stepId":"","message":%s,"code":%s}`, text, text),
			messages.EventRunWaiting:       fmt.Sprintf(`{"reason":%s}`, text),
			messages.EventRunResumed:       `[]`,
			messages.EventRunFinished:      fmt.Sprintf(`{"result":{"id":"x","status":%s,"steps":-5,"error":{"code":%s,"message":%s},"result":{"a":1},"costEstimate":-1e300}}`, text, text, text),
			"unknown":                      `"\ud800"`,
		}
		n := 0
		for name, d := range data {
			n++
			h.publish(event(ref, n*1000, time.Time{}, name, d), event(acme("broken"), n, noon, name, `"\u0000"`), event(acme("null"), n, noon, name, `null`))
			bad := event(ref, 1, noon, name, d)
			bad.Sequence = "18446744073709551615"
			h.publish(bad)
		}
		for i, sequence := range []string{"0", "-1", "x", "99999999999999999999999"} {
			e := event(ref, i, noon, messages.EventStepStart, `{}`)
			e.Sequence = sequence
			h.publish(e)
		}
		if _, err := h.js.Publish(t.Context(), h.at(acme("hostile"), messages.EventStepStart), []byte("\x00\xff{")); err != nil {
			t.Fatal(err)
		}
		h.publish(made(acme("after"), noon, nil)...)
		h.caughtUp(x)
		got := ids(t, x, control.RunsRequest{})
		if len(got) != 4 || got[0] != "after" {
			t.Errorf("%v", got)
		}
		for _, by := range []control.StatsBy{"", control.StatsByAgent, control.StatsByDay, control.StatsByTool} {
			if _, err := x.Stats(t.Context(), control.StatsRequest{RunsRequest: control.RunsRequest{Tenant: "acme"}, By: by}); err != nil {
				t.Errorf("stats by %s: %v", by, err)
			}
		}
		if list, err := x.Steps(t.Context(), ref); err != nil || len(list.Steps) == 0 {
			t.Errorf("%v, %v", list, err)
		}
		runs, _ := dump(t, x)
		if r := runs["acme/hostile"]; len(r.Input) > 3000 || len(r.Labels) > 64 || !r.Status.Ended() || r.Finished == nil {
			t.Errorf("%+v", r)
		}
	})
}

// A list that is read page by page shows each run that was there at its beginning once, whatever comes meanwhile.
func TestPagesWhileRunsCome(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		x := h.open(place())
		h.keep(x)
		for i := range 25 {
			h.publish(made(acme(fmt.Sprintf("old-%02d", i)), noon, nil)[0])
		}
		h.caughtUp(x)
		var got []string
		req := control.RunsRequest{Tenant: "acme", Limit: 4}
		for page := 0; ; page++ {
			p, err := x.Runs(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range p.Runs {
				got = append(got, r.ID)
			}
			if req.After = p.Next; req.After == "" {
				break
			}
			h.publish(made(acme(fmt.Sprintf("new-%02d", page)), noon.Add(time.Hour), nil)...)
			h.publish(made(acme(fmt.Sprintf("old-%02d", page)), noon, nil)[1:]...) // which continue
		}
		var want []string
		for i := range 25 {
			want = append(want, fmt.Sprintf("old-%02d", 24-i))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRetention(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		x := h.open(place())
		stop := h.keep(x)
		ago := time.Now().Add(-91 * 24 * time.Hour)
		for i := range 3 {
			h.publish(made(acme(fmt.Sprintf("old-%d", i)), ago, nil)...)
		}
		h.publish(made(acme("waits"), ago, nil)[:4]...)
		h.publish(made(acme("young"), time.Now().Add(-80*24*time.Hour), nil)...)
		h.caughtUp(x)
		stop()
		if err := x.RetainNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs, steps := dump(t, x)
		if len(runs) != 2 || runs["acme/waits"].ID == "" || runs["acme/young"].ID == "" || len(steps) != 2 {
			t.Errorf("%v, steps of %d", runs, len(steps))
		}
	})
}

// The last events are removed before the index has them, as those of a run that is to leave nothing are: it has all that there is.
func TestTheLastEventsAreRemoved(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbourOf(t, 2)
		where := place()
		x := h.open(where)
		stop := h.keep(x)
		h.publish(made(acme("stays"), noon, nil)...)
		h.caughtUp(x)
		stop()
		all := h.bus.Partitions(bus.StreamEvents)
		for i := range 8 { // in each stream some
			gone := acme(fmt.Sprintf("gone-%d", i))
			h.publish(made(gone, noon, nil)...)
			if err := all.Of(gone).Clear(t.Context(), gone.EventFilter()); err != nil {
				t.Fatal(err)
			}
		}
		x = h.open(where)
		h.keep(x)
		h.caughtUp(x)
		if got := ids(t, x, control.RunsRequest{Limit: 100}); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}

// A database that cannot be reached is waited for; the password of its URL is in no error.
func TestUnreachable(t *testing.T) {
	h := newHarbour(t)
	x := h.open("postgres://u:hush-hush@127.0.0.1:1/db?connect_timeout=1")
	h.keep(x)
	h.until("it says why", func() bool {
		s, err := x.Status(t.Context())
		return err == nil && s.Error != ""
	})
	s, _ := x.Status(t.Context())
	_, err := x.Runs(t.Context(), control.RunsRequest{Tenant: "acme", Limit: 1})
	if !is(err, index.ErrNotReady) || strings.Contains(err.Error()+s.Error, "hush-hush") {
		t.Errorf("%v, %s", err, s.Error)
	}
	if _, err := index.New(index.Config{Bus: h.bus, Where: "postgres://u:hush-hush@%zz"}); err == nil || strings.Contains(err.Error(), "hush-hush") {
		t.Errorf("a broken URL: %v", err)
	}
	if _, err := index.New(index.Config{Bus: h.bus, Where: "/dev/null/index.db"}); err == nil {
		t.Error("a folder that cannot be")
	}
}

// A process that stops applying releases the lock of a shared database, whatever happens to its connections.
func TestTheLockIsLeft(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		t.Helper()
		h := newHarbour(t)
		x := h.open(place())
		for range 10 {
			stop := h.keep(x)
			h.until("it leads", func() bool { s, err := x.Status(t.Context()); return err == nil && s.Leads })
			stop()
		}
	})
}
