package runlogs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// yard has runs whose logs are open or have ended.
type yard struct {
	t    *testing.T
	bus  *bus.Bus
	nc   *nats.Conn
	logs *runlogs.Store
	last map[string]uint64 // of the open runs
	n    int

	before func(id string) // a look at a run; nil: nothing
}

func newYard(t *testing.T, b *bus.Bus, nc *nats.Conn) *yard {
	t.Helper()
	return &yard{t: t, bus: b, nc: nc, logs: bustest.Logs(b), last: map[string]uint64{}}
}

func yardRun(id string) messages.Ref { return messages.Ref{Tenant: "acme", Run: id} }

func (y *yard) append(id string, phase record.Phase) {
	y.t.Helper()
	y.n++
	e := bustest.Step(fmt.Sprintf("e%d", y.n), 1)
	e.Head.Phase = phase
	y.last[id] = bustest.MustAppend(y.t, y.logs, yardRun(id), y.last[id], e)
	if phase == record.PhaseFinished {
		delete(y.last, id)
	}
}

func (y *yard) open() []string { return slices.Sorted(maps.Keys(y.last)) }

// purge removes the log of a run that has ended.
func (y *yard) purge(id string) {
	y.t.Helper()
	s, err := bustest.NewJetStream(y.t, y.nc).Stream(bustest.Context(y.t), bustest.LogIn(y.bus, yardRun(id)))
	if err != nil {
		y.t.Fatal(err)
	}
	if err := s.Purge(bustest.Context(y.t), jetstream.WithPurgeSubject(yardRun(id).LogSubject())); err != nil {
		y.t.Fatal(err)
	}
}

// pass looks at the open runs as a sweep does: what has ended is over. It returns the runs that were looked at.
func (y *yard) pass(ctx context.Context, settle time.Duration) (looked map[string]bool, did runlogs.Looked, err error) {
	looked = map[string]bool{}
	o := runlogs.OpenRuns{Logs: y.logs, Keep: true, Settle: settle, Look: func(ctx context.Context, run messages.Ref) (runlog.Swept, error) {
		if y.before != nil {
			y.before(run.Run)
		}
		last, ok, err := y.logs.Last(ctx, run)
		if err == nil {
			looked[run.Run] = true
		}
		ended := !ok || last.Head.Phase == record.PhaseFinished
		return runlog.Swept{Ended: ended, Over: ended, Seq: last.Seq}, err
	}}
	did, err = o.Each(ctx)
	return looked, did, err
}

// passed is a pass that must succeed, look at every open run and miss none.
func (y *yard) passed(settle time.Duration) (map[string]bool, runlogs.Looked) {
	y.t.Helper()
	looked, did, err := y.pass(bustest.Context(y.t), settle)
	if err != nil {
		y.t.Fatal(err)
	}
	for _, id := range y.open() {
		if !looked[id] {
			y.t.Fatalf("%s is open, and was not looked at", id)
		}
	}
	if did.Missed > 0 {
		y.t.Fatalf("%d open runs were not in the record", did.Missed)
	}
	return looked, did
}

const atOnce = time.Nanosecond // all but the newest entry has settled

// What a pass costs follows what is open and what has changed, not what is retained.
func TestOpenRuns(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	y := newYard(t, b, nc)
	if looked, _ := y.passed(atOnce); len(looked) > 0 {
		t.Errorf("of no runs: %v", looked)
	}
	for i := range 100 {
		id := fmt.Sprintf("run-%d", i)
		y.append(id, record.PhaseActive)
		if i%20 > 0 {
			y.append(id, record.PhaseFinished)
		}
	}
	if looked, _ := y.passed(atOnce); len(looked) != 100 { // each end once
		t.Errorf("looked at %d runs first, want 100", len(looked))
	}
	y.passed(atOnce) // and the newest one again
	looked, did := y.passed(atOnce)
	if diff := cmp.Diff([]string{"run-0", "run-20", "run-40", "run-60", "run-80", "run-99"}, slices.Sorted(maps.Keys(looked))); diff != "" {
		t.Error(diff)
	}
	if did.Runs > 10 {
		t.Errorf("looked %d times", did.Runs)
	}
	y.append("run-20", record.PhaseParked)
	y.append("run-40", record.PhaseFinished)
	y.append("new", record.PhaseReady)
	y.passed(atOnce)
	y.append("new", record.PhaseActive)
	y.passed(atOnce)
	looked, _ = y.passed(atOnce)
	if diff := cmp.Diff([]string{"new", "run-0", "run-20", "run-60", "run-80"}, slices.Sorted(maps.Keys(looked))); diff != "" {
		t.Error(diff)
	}
}

// An end at which no pass could look yet is looked at again, however often, as its events may have been lost.
func TestOpenRunsThatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	y := newYard(t, b, nc)
	y.append("ended", record.PhaseActive)
	y.append("ended", record.PhaseFinished)
	y.append("newest", record.PhaseActive)
	for range 3 {
		looks := 0
		o := runlogs.OpenRuns{Logs: y.logs, Keep: true, Settle: atOnce, Look: func(_ context.Context, run messages.Ref) (runlog.Swept, error) {
			if run == yardRun("ended") {
				looks++
			}
			return runlog.Swept{}, errors.New("no answer")
		}}
		if _, err := o.Each(bustest.Context(t)); err != nil || looks != 1 {
			t.Errorf("%d looks, %v", looks, err)
		}
	}
	if looked, _ := y.passed(atOnce); !looked["ended"] {
		t.Error("it was not looked at")
	}
	if looked, _ := y.passed(atOnce); looked["ended"] {
		t.Error("it was looked at again after it was found to be over")
	}
}

// Whatever happens between and during passes, the next one looks at every open run, whether the logs are in one stream or in several.
func TestOpenRunsAreNeverForgotten(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 4} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			b, nc := bustest.OpenDivided(t, n)
			neverForgotten(t, newYard(t, b, nc))
		})
	}
}

func neverForgotten(t *testing.T, y *yard) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	phases := []record.Phase{record.PhaseActive, record.PhaseParked, record.PhaseReady, record.PhaseFinished, record.PhaseFinished}
	ended := []string{}
	for range 300 {
		id := fmt.Sprintf("run-%d", random.IntN(40))
		switch n := random.IntN(20); {
		case n < 12:
			phase := phases[random.IntN(len(phases))]
			if _, isOpen := y.last[id]; !isOpen {
				if slices.Contains(ended, id) { // a run of that id may begin again once the old one was purged
					y.purge(id)
					ended = slices.DeleteFunc(ended, func(e string) bool { return e == id })
				}
				phase = record.PhaseActive
			}
			y.append(id, phase)
			if phase == record.PhaseFinished {
				ended = append(ended, id)
			}
		case n < 15: // one that is interrupted after some looks
			left := random.IntN(10)
			ctx, cancel := context.WithCancel(bustest.Context(t))
			o := runlogs.OpenRuns{Logs: y.logs, Keep: true, Settle: atOnce, Look: func(context.Context, messages.Ref) (runlog.Swept, error) {
				if left--; left < 0 {
					cancel()
				}
				return runlog.Swept{}, context.Canceled
			}}
			_, _ = o.Each(ctx) // it may have had nothing to look at
			cancel()
		case n < 17: // two at once
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _, _, err := y.pass(bustest.Context(t), atOnce); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		default:
			y.passed(atOnce)
		}
	}
	y.passed(atOnce)
}

// OPEN can be lost, cut, or of another stream, or its contents be those of another program: RUNS is then read from its beginning.
func TestOpenRunsOfARecordThatIsOfNoUse(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	y := newYard(t, b, nc)
	js := bustest.NewJetStream(t, nc)
	for i := range 10 {
		y.append(fmt.Sprintf("run-%d", i), record.PhaseActive)
	}
	y.append("last", record.PhaseActive)
	open, err := js.Stream(bustest.Context(t), bus.StreamOpen)
	if err != nil {
		t.Fatal(err)
	}
	last := func(subject string) *jetstream.RawStreamMsg {
		t.Helper()
		m, err := open.GetLastMsgForSubject(bustest.Context(t), subject)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	put := func(subject, data string) {
		t.Helper()
		if _, err := js.Publish(bustest.Context(t), subject, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func(head string){
		"all gone":       func(string) { _ = open.Purge(bustest.Context(t)) },
		"a part is gone": func(string) { _ = open.DeleteMsg(bustest.Context(t), last("open.part.*.*").Sequence) },
		"a part of junk": func(string) { put(last("open.part.*.*").Subject, `{"open":["acme/a b"]}`) },
		"head of junk":   func(string) { put("open.head", "\x00") },
		"head too far":   func(head string) { put("open.head", strings.Replace(head, `"position":`, `"position":9`, 1)) },
		"other stream":   func(head string) { put("open.head", strings.Replace(head, `"stream":"2`, `"stream":"1`, 1)) },
		"other version":  func(head string) { put("open.head", strings.Replace(head, `"version":1`, `"version":2`, 1)) },
		"many parts":     func(head string) { put("open.head", strings.Replace(head, `"parts":1`, `"parts":1000000000`, 1)) },
		"odd pass":       func(head string) { put("open.head", strings.Replace(head, `"round":"`, `"round":">`, 1)) },
	} {
		y.passed(atOnce)
		spoil(string(last("open.head").Data))
		if _, did := y.passed(atOnce); did.Read < 11 {
			t.Errorf("%s: read %d entries, want all", name, did.Read)
		}
	}
	if n := bustest.StreamLength(t, nc, bus.StreamOpen); n > 15 { // a head, the parts of its pass, and those that were orphaned here
		t.Errorf("%d messages are left in OPEN", n)
	}
}

// A run that is missing from the record for a reason that is not known is found by comparing.
func TestOpenRunsAreCompared(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	y := newYard(t, b, nc)
	y.append("lost", record.PhaseParked)
	y.append("other", record.PhaseParked)
	y.append("newest", record.PhaseActive)
	y.passed(atOnce)
	js := bustest.NewJetStream(t, nc)
	open, err := js.Stream(bustest.Context(t), bus.StreamOpen)
	if err != nil {
		t.Fatal(err)
	}
	m, err := open.GetLastMsgForSubject(bustest.Context(t), "open.part.*.*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(bustest.Context(t), m.Subject, []byte(`{"open":["acme/other"]}`)); err != nil {
		t.Fatal(err)
	}
	looked, did, err := y.pass(bustest.Context(t), atOnce)
	if err != nil || did.Missed != 1 || !looked["lost"] {
		t.Errorf("%v, %+v, %v", looked, did, err)
	}
	y.passed(atOnce)
}

// A loss of power takes the end of RUNS, and other runs get the sequences of what was lost. Nothing that was recorded may hide them. The
// second case shows that it would, if a pass did not wait until entries have settled.
func TestOpenRunsAfterALossOfPower(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		settle time.Duration
		missed bool
	}{
		{"settled entries are recorded", time.Hour, false},
		{"ablation: all entries are recorded", atOnce, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := bustest.Start(t)
			b, nc := bustest.Open(t, s, bustest.Quickly())
			y := newYard(t, b, nc)
			y.append("before", record.PhaseParked)
			y.append("before-too", record.PhaseParked)
			y.append("newest", record.PhaseParked)
			y.passed(atOnce)
			whileStopped := func(do func(runs string)) {
				t.Helper()
				s.StopNATS()
				do(filepath.Join(s.Dir(), "jetstream", "$G", "streams", bus.StreamRuns))
				if err := s.StartNATS(); err != nil {
					t.Fatal(err)
				}
				bustest.AwaitConnected(t, b)
			}
			disk := filepath.Join(t.TempDir(), "disk")
			whileStopped(func(runs string) {
				if err := os.CopyFS(disk, os.DirFS(runs)); err != nil {
					t.Fatal(err)
				}
			})
			before := maps.Clone(y.last)
			y.append("before", record.PhaseFinished) // which is lost, so it is open again
			for i := range 3 {
				y.append(fmt.Sprintf("lost-%d", i), record.PhaseActive)
				y.append(fmt.Sprintf("lost-%d", i), record.PhaseFinished)
			}
			y.before = func(id string) {
				if id == "before-too" && y.last[id] > 0 {
					y.append(id, record.PhaseFinished)
				}
			}
			y.passed(tc.settle)
			y.before = nil
			whileStopped(func(runs string) {
				if err := os.RemoveAll(runs); err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(runs, os.DirFS(disk)); err != nil {
					t.Fatal(err)
				}
			})
			y.last = before
			for i := range 8 {
				y.append(fmt.Sprintf("after-%d", i), record.PhaseActive)
			}
			looked, did, err := y.pass(bustest.Context(t), tc.settle)
			missed := did.Missed > 0 // found by comparing, by chance in time
			for _, id := range y.open() {
				missed = missed || !looked[id]
			}
			if err != nil || missed != tc.missed {
				t.Errorf("missed: %v, want %v; %v, %+v, %v", missed, tc.missed, looked, did, err)
			}
		})
	}
}
