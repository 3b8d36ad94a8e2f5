package runlogs_test

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
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

func TestAppendWhoseAnswerIsLost(t *testing.T) {
	b, line, _ := bustest.OpenLossy(t, bustest.Quickly())
	first := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	line.Lose(bustest.LogAt(b, bustest.Run()), true)
	second := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), first, bustest.Step("02", 2))
	if lost, seen := line.Counts(); lost != 1 || seen != 1 {
		t.Errorf("%d answers were lost and %d publishes sent, want 1 and 1: it is in the log", lost, seen)
	}
	if diff := cmp.Diff([]string{"01", "02"}, bustest.IDs(t, b, bustest.Run())); diff != "" {
		t.Error(diff)
	}
	if last, _, err := bustest.Logs(b).Last(bustest.Context(t), bustest.Run()); err != nil || last.Seq != second {
		t.Errorf("last: got %d, %v, want %d", last.Seq, err, second)
	}
}

func TestAppendThatIsLost(t *testing.T) {
	b, line, _ := bustest.OpenLossy(t, bustest.Quickly())
	first := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	line.Lose(bustest.LogAt(b, bustest.Run()), false)
	bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), first, bustest.Step("02", 2))
	if lost, seen := line.Counts(); lost != 1 || seen != 1 {
		t.Errorf("%d publishes were lost and %d sent again, want 1 and 1", lost, seen)
	}
	if diff := cmp.Diff([]string{"01", "02"}, bustest.IDs(t, b, bustest.Run())); diff != "" {
		t.Error(diff)
	}
}

func TestAppendThatIsLostToAnother(t *testing.T) {
	b, line, nc := bustest.OpenLossy(t, bustest.Quickly())
	other, err := bus.Open(bustest.Context(t), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	first := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	line.Lose(bustest.LogAt(b, bustest.Run()), false)
	done := make(chan error, 1)
	go func() {
		_, err := bustest.Logs(b).Append(bustest.Context(t), bustest.Run(), first, bustest.Step("mine", 2))
		done <- err
	}()
	bustest.MustAppend(t, bustest.Logs(other), bustest.Run(), first, bustest.Step("theirs", 2))
	if err := <-done; !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("got %v, want %v", err, runlog.ErrConflict)
	}
	if diff := cmp.Diff([]string{"01", "theirs"}, bustest.IDs(t, b, bustest.Run())); diff != "" {
		t.Error(diff)
	}
}

// A caller that gives up in the middle may try again later with the same entry.
func TestAppendGivenUp(t *testing.T) {
	b, line, _ := bustest.OpenLossy(t, bus.Config{Answer: time.Minute})
	first := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	line.Lose(bustest.LogAt(b, bustest.Run()), true)
	ctx, cancel := context.WithTimeout(bustest.Context(t), 100*time.Millisecond)
	defer cancel()
	if _, err := bustest.Logs(b).Append(ctx, bustest.Run(), first, bustest.Step("02", 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), first, bustest.Step("02", 2))
	if diff := cmp.Diff([]string{"01", "02"}, bustest.IDs(t, b, bustest.Run())); diff != "" {
		t.Error(diff)
	}
}

// What no replica answers the leader does.
func TestReadWithoutAReplica(t *testing.T) {
	cfg := bustest.Quickly()
	cfg.Direct = true
	b, line, _ := bustest.OpenLossy(t, cfg)
	last := uint64(0)
	for i, id := range []string{"01", "02", "03"} {
		last = bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), last, bustest.Step(id, i+1))
	}
	for _, through := range []uint64{last, runlog.Tail} {
		line.Lose("$JS.API.DIRECT.GET."+bustest.LogIn(b, bustest.Run()), false)
		var got []string
		for e := range bustest.Values(t, bustest.Logs(b).Read(bustest.Context(t), bustest.Run(), 0, through)) {
			got = append(got, e.Head.ID)
		}
		if diff := cmp.Diff([]string{"01", "02", "03"}, got); diff != "" {
			t.Errorf("through %d: %s", through, diff)
		}
		if lost, _ := line.Counts(); lost != 1 {
			t.Errorf("lost %d requests, want 1", lost)
		}
	}
}

func TestAppendToAPurgedLog(t *testing.T) {
	b, nc := bustest.Open(t, bustest.Start(t), bus.Config{Budget: time.Hour})
	first := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	second := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), first, bustest.Step("02", 2))
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.LogIn(b, bustest.Run()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(bustest.Context(t), jetstream.WithPurgeSubject(bustest.Run().LogSubject())); err != nil {
		t.Fatal(err)
	}
	// An answer as if the server were gone would be asked for again, for an hour.
	if _, err := bustest.Logs(b).Append(bustest.Context(t), bustest.Run(), second, bustest.Step("03", 3)); !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("got %v, want %v", err, runlog.ErrConflict)
	}
}

func TestAppendIsOneRequest(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	last := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, bustest.Step("01", 1))
	before := nc.Stats().OutMsgs
	bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), last, bustest.Step("02", 2))
	if n := nc.Stats().OutMsgs - before; n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

func TestAppendWithoutAServer(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bus.Config{Budget: 300 * time.Millisecond, Answer: 100 * time.Millisecond})
	s.StopNATS()
	_, err := bustest.Logs(b).Append(bustest.Context(t), bustest.Run(), 0, bustest.Step("01", 1))
	if err == nil || !strings.Contains(err.Error(), "attempts over 300ms") {
		t.Errorf("got %v", err)
	}
}

func TestRefsAreChecked(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	for _, run := range []messages.Ref{{}, {Tenant: "*", Run: "*"}, {Tenant: "a", Run: ">"}, {Tenant: "a.b", Run: "c"}, {Tenant: "a", Run: "b c"}} {
		var fe *messages.FieldError
		for name, err := range map[string]error{
			"append":      second(bustest.Logs(b).Append(bustest.Context(t), run, 0, bustest.Step("01", 1))),
			"last":        third(bustest.Logs(b).Last(bustest.Context(t), run)),
			"wake":        taskqueue.New(b).Wake(bustest.Context(t), run, 1),
			"timer":       taskqueue.New(b).Timer(bustest.Context(t), run, 1, time.Now()),
			"cancel":      taskqueue.New(b).CancelTimer(bustest.Context(t), run, 1),
			"net":         taskqueue.New(b).Net(bustest.Context(t), run, "c", time.Now()),
			"dead-letter": taskqueue.New(b).DeadLetter(bustest.Context(t), run, "a", messages.Dead{}),
			"queued":      third(taskqueue.New(b).Queued(bustest.Context(t), run)),
			"nudge":       taskqueue.New(b).Nudge(bustest.Context(t), run),
		} {
			if !errors.As(err, &fe) {
				t.Errorf("%s of %q: got %v, want a field error", name, run, err)
			}
		}
		for _, err := range bustest.Logs(b).Read(bustest.Context(t), run, 0, runlog.Tail) {
			if !errors.As(err, &fe) {
				t.Errorf("read of %q: got %v, want a field error", run, err)
			}
		}
		for _, err := range events.New(b).Watch(bustest.Context(t), run) {
			if !errors.As(err, &fe) {
				t.Errorf("watch of %q: got %v, want a field error", run, err)
			}
		}
	}
	if err := taskqueue.New(b).Net(bustest.Context(t), bustest.Run(), "*", time.Now()); err == nil {
		t.Error("net with control *: got no error")
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// forge publishes an entry as a client with access to the stream could, with other headers or another body.
func forge(t *testing.T, b *bus.Bus, nc *nats.Conn, to messages.Ref, from *jetstream.RawStreamMsg, change func(*nats.Msg)) {
	t.Helper()
	m := &nats.Msg{Subject: bustest.LogAt(b, to), Data: from.Data, Header: nats.Header{}}
	maps.Copy(m.Header, from.Header)
	change(m)
	if _, err := bustest.NewJetStream(t, nc).PublishMsg(bustest.Context(t), m); err != nil {
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
		{"to its place", bustest.Run(), func(m *nats.Msg, last uint64) { m.Header.Set(expected, strconv.FormatUint(last, 10)) }},
		{"to its place, not told", bustest.Run(), func(m *nats.Msg, _ uint64) { m.Header.Del(expected) }},
		{"to its head", bustest.Run(), func(m *nats.Msg, last uint64) {
			m.Header.Set(expected, strconv.FormatUint(last, 10))
			m.Header.Set("Longshore-Head", strings.Replace(m.Header.Get("Longshore-Head"), `"01"`, `"02"`, 1))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, nc := bustest.OpenNew(t)
			logs := runlogs.New(b, runlogs.Config{Sealer: newSealer(t, b)})
			last := bustest.MustAppend(t, logs, bustest.Run(), 0, bustest.Step("01", 1))
			s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.LogIn(b, bustest.Run()))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := s.GetMsg(bustest.Context(t), last)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(raw.Data), "step_started") {
				t.Errorf("the entry is in the clear: %s", raw.Data)
			}
			forge(t, b, nc, tt.to, raw, func(m *nats.Msg) { tt.change(m, last) })
			if err := openLast(t, logs, tt.to); err == nil {
				t.Error("a forged entry was opened")
			}
		})
	}
}

func TestReadOfWhatIsNotOurs(t *testing.T) {
	b, nc := bustest.OpenNew(t)
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
			m := &nats.Msg{Subject: bustest.LogAt(b, run), Header: tt.header, Data: []byte(tt.data)}
			if _, err := bustest.NewJetStream(t, nc).PublishMsg(bustest.Context(t), m); err != nil {
				t.Fatal(err)
			}
			err := openLast(t, bustest.Logs(b), run)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "of acme/"+tt.run) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			n := 0
			for _, err := range bustest.Logs(b).Read(bustest.Context(t), run, 0, runlog.Tail) {
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
	b, _ := bustest.OpenNew(t)
	e := bustest.Step("01", 1)
	e.Head.Version = record.Version + 1
	bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, e)
	got, ok, err := bustest.Logs(b).Last(bustest.Context(t), bustest.Run())
	if !ok || !errors.Is(err, record.ErrNewerVersion) || got.Head.ID != "01" {
		t.Errorf("last: got %+v, %v, %v", got, ok, err)
	}
	for got, err := range bustest.Logs(b).Read(bustest.Context(t), bustest.Run(), 0, runlog.Tail) {
		if !errors.Is(err, record.ErrNewerVersion) || got.Head.ID != "01" {
			t.Errorf("read: got %+v, %v", got, err)
		}
	}
}

// A blob is stored once however often it is put, and damage shows.
func TestBlobs(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	large := record.Entry{Records: []record.Record{&record.CancelRequested{ID: "c", Reason: strings.Repeat("x", 600<<10)}}}
	large.Head = record.Follow(record.Head{}, large.Records...)
	large.Head.ID = "01"
	first := bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), 0, large)
	large.Head.ID = "02"
	bustest.MustAppend(t, bustest.Logs(b), bustest.Run(), first, large)
	if n := bustest.StreamLength(t, nc, bus.StreamBlobs); n != 3 {
		t.Errorf("got %d parts, want 3", n)
	}
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamBlobs)
	if err != nil {
		t.Fatal(err)
	}
	part, err := s.GetMsg(bustest.Context(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	part.Data[0] ^= 1
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), part.Subject, part.Data); err != nil {
		t.Fatal(err)
	}
	if err := openLast(t, bustest.Logs(b), bustest.Run()); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("got %v", err)
	}
}

// How large an entry may be before it is stored as a blob is a setting.
func TestInlineIsASetting(t *testing.T) {
	for inline, want := range map[int]uint64{0: 0, 4 << 10: 1} {
		b, nc := bustest.OpenNew(t)
		logs := runlogs.New(b, runlogs.Config{Inline: inline})
		e := record.Entry{Records: []record.Record{&record.CancelRequested{ID: "c", Reason: strings.Repeat("x", 8<<10)}}}
		e.Head = record.Follow(record.Head{}, e.Records...)
		e.Head.ID = "01"
		bustest.MustAppend(t, logs, bustest.Run(), 0, e)
		if n := bustest.StreamLength(t, nc, bus.StreamBlobs); n != want {
			t.Errorf("%d: %d parts, want %d", inline, n, want)
		}
	}
}

func TestAppendsOverARestart(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bustest.Quickly())
	const n = 300
	halfway := make(chan struct{})
	done := make(chan []string, 1)
	go func() {
		var acked []string
		last := uint64(0)
		for i := range n {
			id := fmt.Sprintf("%03d", i)
			seq, err := bustest.Logs(b).Append(bustest.Context(t), bustest.Run(), last, bustest.Step(id, i+1))
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
	if diff := cmp.Diff(acked, bustest.IDs(t, b, bustest.Run())); diff != "" || len(acked) != n {
		t.Errorf("%d acked; log (-acked +stored):\n%s", len(acked), diff)
	}
}

func TestRuns(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	want := map[messages.Ref]bool{}
	for i := range 20 {
		run := messages.Ref{Tenant: fmt.Sprintf("t%d", i%3), Run: fmt.Sprintf("r%d", i)}
		bustest.MustAppend(t, bustest.Logs(b), run, bustest.MustAppend(t, bustest.Logs(b), run, 0, bustest.Step("01", 1)), bustest.Step("02", 2))
		want[run] = true
	}
	got := map[messages.Ref]bool{}
	for run, err := range bustest.Logs(b).Runs(bustest.Context(t)) {
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
	b, nc := bustest.OpenNew(t)
	got := make(chan messages.Ref)
	ctx, cancel := context.WithCancel(bustest.Context(t))
	done := make(chan error, 1)
	go func() { done <- taskqueue.New(b).Nudges(ctx, func(run messages.Ref) { got <- run }) }()
	for heard := false; !heard; { // until the subscription is there
		if err := nc.Publish("nudge.acme.ü", nil); err != nil {
			t.Fatal(err)
		}
		if err := taskqueue.New(b).Nudge(ctx, bustest.Run()); err != nil {
			t.Fatal(err)
		}
		select {
		case run := <-got:
			heard = true
			if run != bustest.Run() {
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

// openLast reads the last entry of a log whole.
func openLast(t *testing.T, logs *runlogs.Store, run messages.Ref) error {
	t.Helper()
	last, _, err := logs.Last(bustest.Context(t), run)
	if err != nil {
		return err
	}
	for _, err := range logs.Read(bustest.Context(t), run, last.Seq-1, last.Seq) {
		return err
	}
	t.Fatal("the last entry is not there")
	return nil
}
