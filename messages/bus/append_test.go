package bus_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// quickly is a bus that soon notices an answer that does not come.
func quickly() bus.Config {
	return bus.Config{Answer: 250 * time.Millisecond, Budget: 10 * time.Second}
}

func mustAppend(tb testing.TB, b *bus.Bus, run messages.Ref, last uint64, e record.Entry) uint64 {
	tb.Helper()
	seq, err := b.Append(ctxFor(tb), run, last, e)
	if err != nil {
		tb.Fatal(err)
	}
	return seq
}

func ids(tb testing.TB, b *bus.Bus, run messages.Ref) []string {
	tb.Helper()
	var got []string
	for e, err := range b.Read(ctxFor(tb), run, 0, runlog.Tail) {
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, e.Head.ID)
	}
	return got
}

func TestAppendWhoseAnswerIsLost(t *testing.T) {
	b, line, _ := openLossy(t, quickly())
	first := mustAppend(t, b, run1(), 0, step("01", 1))
	line.lose(run1().LogSubject(), true)
	second := mustAppend(t, b, run1(), first, step("02", 2))
	if lost, seen := line.counts(); lost != 1 || seen != 1 {
		t.Errorf("%d answers were lost and %d publishes sent, want 1 and 1: it is in the log", lost, seen)
	}
	if diff := cmp.Diff([]string{"01", "02"}, ids(t, b, run1())); diff != "" {
		t.Error(diff)
	}
	if last, _, err := b.Last(ctxFor(t), run1()); err != nil || last.Seq != second {
		t.Errorf("last: got %d, %v, want %d", last.Seq, err, second)
	}
}

func TestAppendThatIsLost(t *testing.T) {
	b, line, _ := openLossy(t, quickly())
	first := mustAppend(t, b, run1(), 0, step("01", 1))
	line.lose(run1().LogSubject(), false)
	mustAppend(t, b, run1(), first, step("02", 2))
	if lost, seen := line.counts(); lost != 1 || seen != 1 {
		t.Errorf("%d publishes were lost and %d sent again, want 1 and 1", lost, seen)
	}
	if diff := cmp.Diff([]string{"01", "02"}, ids(t, b, run1())); diff != "" {
		t.Error(diff)
	}
}

func TestAppendThatIsLostToAnother(t *testing.T) {
	b, line, nc := openLossy(t, quickly())
	other, err := bus.Open(ctxFor(t), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	first := mustAppend(t, b, run1(), 0, step("01", 1))
	line.lose(run1().LogSubject(), false)
	done := make(chan error, 1)
	go func() {
		_, err := b.Append(ctxFor(t), run1(), first, step("mine", 2))
		done <- err
	}()
	mustAppend(t, other, run1(), first, step("theirs", 2))
	if err := <-done; !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("got %v, want %v", err, runlog.ErrConflict)
	}
	if diff := cmp.Diff([]string{"01", "theirs"}, ids(t, b, run1())); diff != "" {
		t.Error(diff)
	}
}

// A caller that gives up in the middle may try again later with the same entry.
func TestAppendGivenUp(t *testing.T) {
	b, line, _ := openLossy(t, bus.Config{Answer: time.Minute})
	first := mustAppend(t, b, run1(), 0, step("01", 1))
	line.lose(run1().LogSubject(), true)
	ctx, cancel := context.WithTimeout(ctxFor(t), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Append(ctx, run1(), first, step("02", 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	mustAppend(t, b, run1(), first, step("02", 2))
	if diff := cmp.Diff([]string{"01", "02"}, ids(t, b, run1())); diff != "" {
		t.Error(diff)
	}
}

// What no replica answers the leader does.
func TestReadWithoutAReplica(t *testing.T) {
	cfg := quickly()
	cfg.Direct = true
	b, line, _ := openLossy(t, cfg)
	last := uint64(0)
	for i, id := range []string{"01", "02", "03"} {
		last = mustAppend(t, b, run1(), last, step(id, i+1))
	}
	for _, through := range []uint64{last, runlog.Tail} {
		line.lose("$JS.API.DIRECT.GET.RUNS", false)
		var got []string
		for e := range values(t, b.Read(ctxFor(t), run1(), 0, through)) {
			got = append(got, e.Head.ID)
		}
		if diff := cmp.Diff([]string{"01", "02", "03"}, got); diff != "" {
			t.Errorf("through %d: %s", through, diff)
		}
		if lost, _ := line.counts(); lost != 1 {
			t.Errorf("lost %d requests, want 1", lost)
		}
	}
}

func TestAppendToAPurgedLog(t *testing.T) {
	b, nc := openNew(t)
	first := mustAppend(t, b, run1(), 0, step("01", 1))
	second := mustAppend(t, b, run1(), first, step("02", 2))
	s, err := newJetStream(t, nc).Stream(ctxFor(t), bus.StreamRuns)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(ctxFor(t), jetstream.WithPurgeSubject(run1().LogSubject())); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := b.Append(ctxFor(t), run1(), second, step("03", 3)); !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("got %v, want %v", err, runlog.ErrConflict)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v, as if the server were gone", d)
	}
}

func TestAppendIsOneRequest(t *testing.T) {
	b, nc := openNew(t)
	last := mustAppend(t, b, run1(), 0, step("01", 1))
	before := nc.Stats().OutMsgs
	mustAppend(t, b, run1(), last, step("02", 2))
	if n := nc.Stats().OutMsgs - before; n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

func TestAppendWithoutAServer(t *testing.T) {
	s := startNATS(t)
	b, _ := open(t, s, bus.Config{Budget: 300 * time.Millisecond, Answer: 100 * time.Millisecond})
	s.StopNATS()
	_, err := b.Append(ctxFor(t), run1(), 0, step("01", 1))
	if err == nil || !strings.Contains(err.Error(), "attempts over 300ms") {
		t.Errorf("got %v", err)
	}
}

func TestRefsAreChecked(t *testing.T) {
	b, _ := openNew(t)
	for _, run := range []messages.Ref{{}, {Tenant: "*", Run: "*"}, {Tenant: "a", Run: ">"}, {Tenant: "a.b", Run: "c"}, {Tenant: "a", Run: "b c"}} {
		var fe *messages.FieldError
		for name, err := range map[string]error{
			"append": second(b.Append(ctxFor(t), run, 0, step("01", 1))),
			"last":   third(b.Last(ctxFor(t), run)),
			"wake":   b.Wake(ctxFor(t), run, 1),
			"timer":  b.Timer(ctxFor(t), run, 1, time.Now()),
			"cancel": b.CancelTimer(ctxFor(t), run, 1),
			"net":    b.Net(ctxFor(t), run, "c", time.Now()),
			"bury":   b.Bury(ctxFor(t), run, "a", messages.Dead{}),
			"queued": third(b.Queued(ctxFor(t), run)),
			"nudge":  b.Nudge(ctxFor(t), run),
		} {
			if !errors.As(err, &fe) {
				t.Errorf("%s of %q: got %v, want a field error", name, run, err)
			}
		}
		for _, err := range b.Read(ctxFor(t), run, 0, runlog.Tail) {
			if !errors.As(err, &fe) {
				t.Errorf("read of %q: got %v, want a field error", run, err)
			}
		}
		for _, err := range b.Watch(ctxFor(t), run) {
			if !errors.As(err, &fe) {
				t.Errorf("watch of %q: got %v, want a field error", run, err)
			}
		}
	}
	if err := b.Net(ctxFor(t), run1(), "*", time.Now()); err == nil {
		t.Error("net with control *: got no error")
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// forge publishes an entry as somebody with access to the stream could, with other headers or another body.
func forge(t *testing.T, nc *nats.Conn, to messages.Ref, from *jetstream.RawStreamMsg, change func(*nats.Msg)) {
	t.Helper()
	m := &nats.Msg{Subject: to.LogSubject(), Data: from.Data, Header: nats.Header{}}
	maps.Copy(m.Header, from.Header)
	change(m)
	if _, err := newJetStream(t, nc).PublishMsg(ctxFor(t), m); err != nil {
		t.Fatal(err)
	}
}

func TestASealedEntryIsBound(t *testing.T) {
	const expected = jetstream.ExpectedLastSubjSeqHeader
	other := messages.Ref{Tenant: "acme", Run: "other"}
	for _, tt := range []struct {
		name   string
		to     messages.Ref
		change func(m *nats.Msg, last uint64)
	}{
		{"to its run", other, func(m *nats.Msg, _ uint64) { m.Header.Set(expected, "0") }},
		{"to its place", run1(), func(m *nats.Msg, last uint64) { m.Header.Set(expected, strconv.FormatUint(last, 10)) }},
		{"to its place, not told", run1(), func(m *nats.Msg, _ uint64) { m.Header.Del(expected) }},
		{"to its head", run1(), func(m *nats.Msg, last uint64) {
			m.Header.Set(expected, strconv.FormatUint(last, 10))
			m.Header.Set("Longshore-Head", strings.Replace(m.Header.Get("Longshore-Head"), `"01"`, `"02"`, 1))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, nc := open(t, startNATS(t), bus.Config{Sealer: newSealer(t)})
			last := mustAppend(t, b, run1(), 0, step("01", 1))
			s, err := newJetStream(t, nc).Stream(ctxFor(t), bus.StreamRuns)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := s.GetMsg(ctxFor(t), last)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(raw.Data), "step_started") {
				t.Errorf("the entry is in the clear: %s", raw.Data)
			}
			forge(t, nc, tt.to, raw, func(m *nats.Msg) { tt.change(m, last) })
			if err := openLast(t, b, tt.to); err == nil {
				t.Error("a forged entry was opened")
			}
		})
	}
}

func TestReadOfWhatIsNotOurs(t *testing.T) {
	b, nc := openNew(t)
	for _, tt := range []struct {
		name, run, want string
		header          nats.Header
		data            string
	}{
		{"no head", "a", "it has no head", nil, "[]"},
		{"bad head", "b", "head: unexpected end", nats.Header{"Longshore-Head": {"{"}}, "[]"},
		{"bad records", "c", "unknown", nats.Header{"Longshore-Head": {`{"id":"1","version":1,"kinds":["x"],"firstEvent":1}`}}, `[{"kind":"x","data":{}}]`},
		{"bad blob", "d", "is not hash/parts/size", nats.Header{"Longshore-Head": {`{"id":"1","version":1,"kinds":["x"],"firstEvent":1}`}, "Longshore-Blob": {"*/1/>"}}, ""},
		{"missing blob", "e", "it is missing", nats.Header{"Longshore-Head": {`{"id":"1","version":1,"kinds":["x"],"firstEvent":1}`}, "Longshore-Blob": {strings.Repeat("ab", 32) + "/1/9"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := messages.Ref{Tenant: "acme", Run: tt.run}
			m := &nats.Msg{Subject: run.LogSubject(), Header: tt.header, Data: []byte(tt.data)}
			if _, err := newJetStream(t, nc).PublishMsg(ctxFor(t), m); err != nil {
				t.Fatal(err)
			}
			err := openLast(t, b, run)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "of acme/"+tt.run) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			n := 0
			for _, err := range b.Read(ctxFor(t), run, 0, runlog.Tail) {
				if n++; err == nil {
					t.Error("read: got no error")
				}
			}
			if n != 1 {
				t.Errorf("read: got %d elements, want the error alone", n)
			}
		})
	}
}

func TestReadOfANewerVersion(t *testing.T) {
	b, _ := openNew(t)
	e := step("01", 1)
	e.Head.Version = record.Version + 1
	mustAppend(t, b, run1(), 0, e)
	got, ok, err := b.Last(ctxFor(t), run1())
	if !ok || !errors.Is(err, record.ErrNewerVersion) || got.Head.ID != "01" {
		t.Errorf("last: got %+v, %v, %v", got, ok, err)
	}
	for got, err := range b.Read(ctxFor(t), run1(), 0, runlog.Tail) {
		if !errors.Is(err, record.ErrNewerVersion) || got.Head.ID != "01" {
			t.Errorf("read: got %+v, %v", got, err)
		}
	}
}

// A blob is stored once however often it is put, and damage shows.
func TestBlobs(t *testing.T) {
	b, nc := openNew(t)
	large := record.Entry{Records: []record.Record{&record.CancelRequested{ID: "c", Reason: strings.Repeat("x", 600<<10)}}}
	large.Head = record.Follow(run1(), record.Head{}, large.Records...)
	large.Head.ID = "01"
	first := mustAppend(t, b, run1(), 0, large)
	large.Head.ID = "02"
	mustAppend(t, b, run1(), first, large)
	if n := streamLength(t, nc, bus.StreamBlobs); n != 3 {
		t.Errorf("got %d parts, want 3", n)
	}
	s, err := newJetStream(t, nc).Stream(ctxFor(t), bus.StreamBlobs)
	if err != nil {
		t.Fatal(err)
	}
	part, err := s.GetMsg(ctxFor(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	part.Data[0] ^= 1
	if _, err := newJetStream(t, nc).Publish(ctxFor(t), part.Subject, part.Data); err != nil {
		t.Fatal(err)
	}
	if err := openLast(t, b, run1()); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("got %v", err)
	}
}

// How large an entry may be before it is stored as a blob is a setting.
func TestInlineIsASetting(t *testing.T) {
	for inline, want := range map[int]uint64{0: 0, 4 << 10: 1} {
		b, nc := open(t, startNATS(t), bus.Config{Inline: inline})
		e := record.Entry{Records: []record.Record{&record.CancelRequested{ID: "c", Reason: strings.Repeat("x", 8<<10)}}}
		e.Head = record.Follow(run1(), record.Head{}, e.Records...)
		e.Head.ID = "01"
		mustAppend(t, b, run1(), 0, e)
		if n := streamLength(t, nc, bus.StreamBlobs); n != want {
			t.Errorf("%d: %d parts, want %d", inline, n, want)
		}
	}
}

func TestAppendsOverARestart(t *testing.T) {
	s := startNATS(t)
	b, _ := open(t, s, quickly())
	const n = 300
	halfway := make(chan struct{})
	done := make(chan []string, 1)
	go func() {
		var acked []string
		last := uint64(0)
		for i := range n {
			id := fmt.Sprintf("%03d", i)
			seq, err := b.Append(ctxFor(t), run1(), last, step(id, i+1))
			if err != nil {
				t.Error(err)
				break
			}
			last, acked = seq, append(acked, id)
			if i == n/2 {
				close(halfway)
			}
		}
		done <- acked
	}()
	<-halfway
	s.StopNATS()
	if err := s.StartNATS(); err != nil {
		t.Fatal(err)
	}
	acked := <-done
	if diff := cmp.Diff(acked, ids(t, b, run1())); diff != "" || len(acked) != n {
		t.Errorf("%d acked; log (-acked +stored):\n%s", len(acked), diff)
	}
}

func TestRuns(t *testing.T) {
	b, _ := openNew(t)
	want := map[messages.Ref]bool{}
	for i := range 20 {
		run := messages.Ref{Tenant: fmt.Sprintf("t%d", i%3), Run: fmt.Sprintf("r%d", i)}
		mustAppend(t, b, run, mustAppend(t, b, run, 0, step("01", 1)), step("02", 2))
		want[run] = true
	}
	got := map[messages.Ref]bool{}
	for run, err := range b.Runs(ctxFor(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if got[run] {
			t.Errorf("%s twice", run)
		}
		got[run] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNudges(t *testing.T) {
	b, nc := openNew(t)
	got := make(chan messages.Ref)
	ctx, cancel := context.WithCancel(ctxFor(t))
	done := make(chan error, 1)
	go func() { done <- b.Nudges(ctx, func(run messages.Ref) { got <- run }) }()
	for heard := false; !heard; { // until the subscription is there
		if err := nc.Publish("nudge.acme.ü", nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Nudge(ctx, run1()); err != nil {
			t.Fatal(err)
		}
		select {
		case run := <-got:
			heard = true
			if run != run1() {
				t.Errorf("got %s", run)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	for {
		select {
		case <-got:
			continue
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

func TestAgents(t *testing.T) {
	s := startNATS(t)
	b, nc := open(t, s, bus.Config{})
	def := messages.Definition{Name: "writer", Instructions: "Write.", Tools: []string{"read_file"}}
	rev, changed, err := b.PutAgent(ctxFor(t), def)
	if err != nil || !changed || rev != 1 {
		t.Fatalf("got %d, %v, %v", rev, changed, err)
	}
	def.Revision = 99
	if again, changed, err := b.PutAgent(ctxFor(t), def); err != nil || changed || again != rev {
		t.Errorf("the same again: got %d, %v, %v", again, changed, err)
	}
	fresh, err := bus.Open(ctxFor(t), connect(t, s), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := fresh.Agent(ctxFor(t), "writer")
	want := def
	want.SetDefaults()
	want.Revision = rev
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	before := nc.Stats().OutMsgs
	if _, err := b.Agent(ctxFor(t), "writer"); err != nil || nc.Stats().OutMsgs != before {
		t.Errorf("got %v and %d requests, want none", err, nc.Stats().OutMsgs-before)
	}
	if d, err := b.Agent(ctxFor(t), messages.DefaultAgent); err != nil || d.Revision != 0 || len(d.Tools) == 0 {
		t.Errorf("built in: got %+v, %v", d, err)
	}
	if d, err := b.Agent(ctxFor(t), messages.LiteAgent); err != nil || d.Planner != messages.PlannerJSON || *d.Temperature != 0 {
		t.Errorf("built in: got %+v, %v", d, err)
	}
	for _, name := range []string{"nobody", "*", "a.b", ""} {
		if _, err := b.Agent(ctxFor(t), name); !errors.Is(err, messages.ErrUnknownAgent) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, err := b.Agent(ctxFor(t), "nobody"); !strings.Contains(fmt.Sprint(err), `"nobody"; known: default, run-lite, writer`) {
		t.Errorf("got %v", err)
	}
	def.Instructions = "Write well."
	if rev, changed, err = b.PutAgent(ctxFor(t), def); err != nil || !changed || rev != 2 {
		t.Errorf("got %d, %v, %v", rev, changed, err)
	}
	if d, err := b.Agent(ctxFor(t), "writer"); err != nil || d.Revision != 2 || d.Instructions != def.Instructions {
		t.Errorf("after an edit: got %+v, %v", d, err)
	}
	kv, err := newJetStream(t, nc).KeyValue(ctxFor(t), bus.BucketAgents) // it is an ordinary bucket
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(ctxFor(t), "writer"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fresh.PutAgent(ctxFor(t), messages.Definition{Name: "x y"}); err == nil {
		t.Error("a bad name: got no error")
	}
	if all, err := b.Agents(ctxFor(t)); err != nil || len(all) != 2 || all[0].Name != messages.DefaultAgent || all[1].Name != messages.LiteAgent {
		t.Errorf("after the removal: got %+v, %v", all, err)
	}
	if _, err := kv.Put(ctxFor(t), "broken", []byte(`{"name":"broken","surprise":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Agent(ctxFor(t), "broken"); err == nil || !strings.Contains(err.Error(), "surprise") {
		t.Errorf("an unknown field: got %v", err)
	}
}

// openLast reads the last entry of a log whole.
func openLast(t *testing.T, b *bus.Bus, run messages.Ref) error {
	t.Helper()
	last, _, err := b.Last(ctxFor(t), run)
	if err != nil {
		return err
	}
	for _, err := range b.Read(ctxFor(t), run, last.Seq-1, last.Seq) {
		return err
	}
	t.Fatal("the last entry is not there")
	return nil
}
