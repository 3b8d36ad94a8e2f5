package runlogs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/runlog"
)

// subjects are the names in the subjects of what is stored, in its order, with the ids of the messages.
func subjects(t *testing.T, nc *nats.Conn) (names, ids []string, largest int) {
	t.Helper()
	all := bustest.EventStreams(t, nc)
	in := all[bus.PartitionOf(bustest.Run(), len(all))]
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), in)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= bustest.StreamLength(t, nc, in); seq++ {
		m, err := s.GetMsg(bustest.Context(t), seq)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
		ids = append(ids, m.Header.Get(bus.HeaderMsgID))
		largest = max(largest, len(m.Data))
	}
	return names, ids, largest
}

func TestBundlesOfOneEntry(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	run := bustest.Run()
	var all []messages.Event
	for i, name := range []string{
		messages.EventRunQueued, messages.EventRunStarted, messages.EventStepStart, // alone: as it is
		messages.EventPolicyViolation, messages.EventMessageEnd, messages.EventToolExecutionStart, // two
		messages.EventToolExecutionEnd, messages.EventStepEnd, messages.EventTurnEnd, // of the next entry
	} {
		all = append(all, bustest.Event(run, i+1, name))
	}
	out := runlogs.New(b, runlogs.Config{Bundles: true}).Open(run)
	out.Publish(bustest.Context(t), 10, slices.Values(all[:6]))
	out.Publish(bustest.Context(t), 20, slices.Values(all[6:]))
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	names, ids, _ := subjects(t, nc)
	if diff := cmp.Diff([]string{"run_queued", "run_started", "step_start", "policy_violation", "bundle", "bundle"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"acme.run-1.1", "acme.run-1.2", "acme.run-1.3", "acme.run-1.4", "acme.run-1.5-6", "acme.run-1.7-9"}, ids); diff != "" {
		t.Error(diff)
	}
	if out.Through() != 20 {
		t.Errorf("through %d", out.Through())
	}
}

func TestBundlesAreBounded(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	run := bustest.Run()
	all := bustest.Events(run, 1, 100)
	for i := 50; i < 100; i++ {
		all[i].Data = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", 30<<10))
	}
	out := runlogs.New(b, runlogs.Config{Bundles: true}).Open(run)
	out.Publish(bustest.Context(t), 1, slices.Values(all))
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 100), bustest.StoredNumbers(t, b, run.EventFilter())); diff != "" {
		t.Error(diff)
	}
	names, ids, largest := subjects(t, nc)
	if len(names) != 14 || largest > 128<<10+64 {
		t.Errorf("%d messages, the largest of %d bytes: %q", len(names), largest, ids)
	}
}

// A bundle that is lost, or whose acknowledgement is, is sent again with all that follow, and what is published as stored does not pass it.
func TestBundlesAfterALoss(t *testing.T) {
	for _, answer := range []bool{false, true} {
		t.Run(fmt.Sprintf("of the answer %v", answer), func(t *testing.T) {
			b, line, nc := bustest.OpenLossy(t, bustest.Quickly())
			run := bustest.Run()
			out := runlogs.New(b, runlogs.Config{Bundles: true}).Open(run)
			out.Publish(bustest.Context(t), 5, slices.Values(bustest.Events(run, 1, 1)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			line.Lose(b.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(messages.NameBundle)), answer)
			out.Publish(bustest.Context(t), 10, slices.Values(bustest.Events(run, 2, 4)))
			if through := out.Through(); through != 5 && !answer {
				t.Errorf("through %d while the bundle is on its way", through)
			}
			out.Publish(bustest.Context(t), 15, slices.Values(bustest.Events(run, 5, 9)))
			end := bustest.Event(run, 10, messages.EventRunFinished)
			if err := out.Finish(bustest.Context(t), end); err != nil {
				t.Fatal(err)
			}
			if lost, _ := line.Counts(); lost != 1 || out.Through() != 15 {
				t.Errorf("lost %d, through %d", lost, out.Through())
			}
			if diff := cmp.Diff(append(bustest.Events(run, 1, 9), end), bustest.Watched(t, b, run, time.Minute)); diff != "" {
				t.Error(diff)
			}
			if names, _, _ := subjects(t, nc); len(names) != 4 {
				t.Errorf("stored %q", names)
			}
		})
	}
}

// What cannot be sent ends the outbox; what came before it is sent.
func TestBundlesBeforeAForeignEvent(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	run := bustest.Run()
	out := runlogs.New(b, runlogs.Config{Bundles: true}).Open(run)
	out.Publish(bustest.Context(t), 1, slices.Values(append(bustest.Events(run, 1, 3), messages.Event{Type: ">", Sequence: "4"})))
	if err := out.Flush(bustest.Context(t)); err == nil || out.Through() != 0 {
		t.Errorf("got %v, through %d", err, out.Through())
	}
	watchStored(t, b, run, 3)
}

func watchStored(t *testing.T, b *bus.Bus, run messages.Ref, n uint64) {
	t.Helper()
	for {
		got := bustest.StoredNumbers(t, b, run.EventFilter())
		if uint64(len(got)) == n {
			if diff := cmp.Diff(bustest.Numbers(1, n), got); diff != "" {
				t.Error(diff)
			}
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-bustest.Context(t).Done():
			t.Fatalf("stored %v, want %d", got, n)
		}
	}
}

// What is held back while many appends are on their way becomes one bundle, whatever entries it is of.
func TestBundlesOfHeldEntries(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	logs := runlogs.New(b, runlogs.Config{Bundles: true})
	run := bustest.Run()
	out := logs.Open(run)
	logs.Appending(runlogs.FewAppends + 1)
	for i := range 4 {
		out.Publish(bustest.Context(t), uint64(i+1), slices.Values(bustest.Events(run, 2*i+1, 2*i+2)))
	}
	if through := out.Through(); through != 0 {
		t.Errorf("through %d while all are held back", through)
	}
	if err := out.Finish(bustest.Context(t), bustest.Event(run, 9, messages.EventRunFinished)); err != nil {
		t.Fatal(err)
	}
	if names, ids, _ := subjects(t, nc); len(names) != 2 || out.Through() != 4 {
		t.Errorf("stored %q, through %d", ids, out.Through())
	}
	if diff := cmp.Diff(bustest.Numbers(1, 9), bustest.StoredNumbers(t, b, run.EventFilter())); diff != "" {
		t.Error(diff)
	}
}

// What a model call cost is sent before the bundle that holds events of earlier entries too. While both are on their way, or lost, those
// entries do not count as published.
func TestCostsBeforeABundle(t *testing.T) {
	cfg := bustest.Quickly()
	cfg.Answer = time.Minute // nothing is sent again while the test looks
	b, line, _ := bustest.OpenLossy(t, cfg)
	logs := runlogs.New(b, runlogs.Config{Bundles: true})
	run, now := bustest.Run(), time.Now()
	out := logs.Open(run)
	logs.Appending(runlogs.FewAppends + 1)
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(run, 1, 2)))
	ledger, ok := out.(runlog.Ledger)
	if !ok {
		t.Fatal("an outbox counts no costs")
	}
	ledger.Spend(bustest.Context(t), 2, now, 100)
	out.Publish(bustest.Context(t), 2, slices.Values(bustest.Events(run, 3, 4)))
	line.Lose("spend."+run.Tenant+"."+now.UTC().Format("200601.02"), false)
	logs.Appending(-runlogs.FewAppends - 1)
	ctx := bustest.Context(t)
	for lost := 0; lost == 0; lost, _ = line.Counts() {
		if ctx.Err() != nil {
			t.Fatal("what was held back is not sent")
		}
		if through := out.Through(); through != 0 {
			t.Fatalf("through %d before anything is stored", through)
		}
	}
	if through := out.Through(); through != 0 {
		t.Errorf("through %d, but the bundle with the events of entry 1 may be lost", through)
	}
}
