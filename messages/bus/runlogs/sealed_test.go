package runlogs_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

const planted = "xylophone-7731"

// entry is one with a text that is stored; large makes it a blob.
func entry(id string, large bool) record.Entry {
	e := bustest.Step(id, 1)
	text := planted
	if large {
		text += strings.Repeat(".", 2*messages.MaxPayload)
	}
	r := &record.CancelRequested{ID: text}
	e.Records, e.Head.Kinds = []record.Record{r}, []record.Kind{r.Kind()}
	return e
}

func readAll(t *testing.T, logs *runlogs.Store) (all []record.Entry, err error) {
	t.Helper()
	for e, err := range logs.Read(bustest.Context(t), bustest.Run(), 0, runlog.Tail) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// A log that was begun before there were keys continues sealed, and is read whole, unless the configuration refuses what is clear.
func TestLogThatBecomesSealed(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	plain := runlogs.New(b, runlogs.Config{})
	sealed := runlogs.New(b, runlogs.Config{Sealer: keyring.New(b, keyring.Config{Master: master})})
	last := bustest.MustAppend(t, plain, bustest.Run(), 0, bustest.Step("01", 1))
	last = bustest.MustAppend(t, sealed, bustest.Run(), last, entry("02", false))
	bustest.MustAppend(t, sealed, bustest.Run(), last, entry("03", true))
	if all, err := readAll(t, sealed); err != nil || len(all) != 3 {
		t.Errorf("read %d entries, %v", len(all), err)
	}
	required := runlogs.New(b, runlogs.Config{Sealer: keyring.New(b, keyring.Config{Master: master, Required: true})})
	if _, err := readAll(t, required); !errors.Is(err, keyring.ErrClear) {
		t.Errorf("required: got %v", err)
	}
	for _, off := range []*runlogs.Store{plain, runlogs.New(b, runlogs.Config{Sealer: keyring.New(b, keyring.Config{})})} {
		if all, err := readAll(t, off); !errors.Is(err, record.ErrNoKey) || len(all) != 1 {
			t.Errorf("without keys: %d entries, %v", len(all), err)
		}
		var locked []bool
		for e := range bustest.Values(t, off.Heads(bustest.Context(t), bustest.Run(), 0, runlog.Tail)) {
			locked = append(locked, e.Locked)
		}
		if len(locked) != 3 || locked[0] || !locked[1] || !locked[2] {
			t.Errorf("locked: %v", locked)
		}
	}
	for _, stream := range []string{bustest.LogIn(b, bustest.Run()), bus.StreamBlobs} {
		s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), stream)
		if err != nil {
			t.Fatal(err)
		}
		for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
			if m, err := s.GetMsg(bustest.Context(t), seq); err != nil || bytes.Contains(m.Data, []byte(planted)) {
				t.Errorf("message %d of %s is in the clear: %v", seq, stream, err)
			}
		}
	}
}

// A blob is bound like a body: the entry that names it decides where it opens.
func TestASealedBlobIsBound(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	logs := runlogs.New(b, runlogs.Config{Sealer: newSealer(t, b)})
	last := bustest.MustAppend(t, logs, bustest.Run(), 0, entry("01", true))
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.LogIn(b, bustest.Run()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.GetMsg(bustest.Context(t), last)
	if err != nil {
		t.Fatal(err)
	}
	raw.Header.Set(bus.HeaderExpect, "1")
	forge(t, b, nc, bustest.Run(), raw, func(*nats.Msg) {})
	if all, err := readAll(t, logs); !errors.Is(err, keyring.ErrDamaged) || len(all) != 1 {
		t.Errorf("a blob that another entry names: %d entries, %v", len(all), err)
	}
}

// A tenant whose key was destroyed has none to seal the end of a run with. The end alone is stored in the clear, for it says nothing, and it
// is read also where nothing in the clear is.
func TestEndOfALogWhoseKeyWasDestroyed(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(b, keyring.Config{Master: master, Required: true})
	logs := runlogs.New(b, runlogs.Config{Sealer: ring})
	run := bustest.Run()
	last := bustest.MustAppend(t, logs, run, 0, entry("01", false))
	if err := ring.Destroy(bustest.Context(t), run.Tenant, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := logs.Append(bustest.Context(t), run, last, entry("02", false)); !record.IsGone(err) {
		t.Errorf("another entry: %v", err)
	}
	ends := func(rs ...record.Record) record.Entry {
		e := record.Entry{Head: record.Follow(record.Head{}, rs...), Records: rs}
		e.Head.ID, e.Head.Time = "03", time.Now()
		return e
	}
	for _, change := range []func(*record.Finished){
		func(f *record.Finished) { f.Result.Result = planted },
		func(f *record.Finished) { f.Result.Error.Message += planted },
		func(f *record.Finished) { f.Dead = true },
	} {
		f := record.Gone(run, time.Now())
		change(f)
		if _, err := logs.Append(bustest.Context(t), run, last, ends(f)); !record.IsGone(err) {
			t.Errorf("an end that says something: %v", err)
		}
	}
	end := bustest.MustAppend(t, logs, run, last, ends(record.Gone(run, time.Now())))
	for e, err := range logs.Read(bustest.Context(t), run, last, end) {
		if err != nil || !record.SaysNothing(run, e.Records) {
			t.Errorf("read %+v, %v", e, err)
		}
	}
	if _, err := readAll(t, logs); !record.IsGone(err) {
		t.Errorf("the log before it: %v", err)
	}
	other := messages.Ref{Tenant: run.Tenant, Run: "other"} // a task that came since
	bustest.MustAppend(t, logs, other, 0, ends(record.Unread(other, messages.PriorityNormal, time.Now()), record.Gone(other, time.Now())))
	for e, err := range logs.Read(bustest.Context(t), other, 0, runlog.Tail) {
		if err != nil || len(e.Records) != 2 {
			t.Errorf("read %+v, %v", e, err)
		}
	}
}
