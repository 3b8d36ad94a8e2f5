package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newKey(t *testing.T) Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sample is a stream of messages of three tenants, over three days, with junk and a hole.
func sample() []Message {
	begin := time.Date(2026, 1, 2, 11, 0, 0, 123000, time.UTC)
	var out []Message
	for i := range uint64(40) {
		if i == 20 || i == 21 { // gone
			continue
		}
		run := messages.Ref{Tenant: []string{"acme", "Acme", "harbour"}[i%3], Run: fmt.Sprintf("run-%d", i%5)}
		m := Message{
			Seq: i + 1, At: begin.Add(time.Duration(i) * 40 * time.Minute), Subject: run.EventSubject("step_start"), Run: run,
			Body: fmt.Appendf(nil, `{"id":"%s.%d","data":{"text":"a < b & c"}}`, run.Run, i),
		}
		switch i {
		case 7:
			m.Run, m.Body = messages.Ref{}, []byte("junk\x00\xff\n")
		case 8:
			m.Run, m.Subject = messages.Ref{}, "events.unknown.x.y"
		case 9:
			m.Body = bytes.Repeat([]byte("x"), maxBody+1)
		}
		out = append(out, m)
	}
	return out
}

func tenantIn(m *Message) string { return strings.Split(m.Subject, ".")[1] }

// fill feeds a store what it has not, and commits after each few.
func fill(s *Store, stream []Message, every int) error {
	n := 0
	for _, m := range stream {
		if m.Seq <= s.Position().Sum() {
			continue
		}
		if err := s.Message(m, tenantIn(&m)); err != nil {
			return err
		}
		if m.Seq%10 == 0 && m.Run.Tenant != "" {
			c := Comparison{Outcome: OutcomeComplete, Entries: 1, run: m.Run}
			if err := s.Compared(&c, events.Position{m.Seq}); err != nil {
				return err
			}
		}
		if n++; n%every == 0 {
			if err := s.Commit(); err != nil {
				return err
			}
		}
	}
	return s.Commit()
}

// clock is a time that the test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.Date(2026, 1, 4, 12, 0, 0, 0, time.UTC)} }

func openStore(t *testing.T, cfg StoreConfig) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// recorded makes a folder with the sample in it.
func recorded(t *testing.T, key Key) string {
	t.Helper()
	dir := t.TempDir()
	s := openStore(t, StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: newClock().Now})
	if err := fill(s, sample(), 3); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// verified is what is wrong with a folder, and what stands in it.
func verified(t *testing.T, cfg VerifyConfig) ([]Finding, []string, Summary) {
	t.Helper()
	var found []Finding
	var entries []string
	cfg.Found = func(f Finding) { found = append(found, f) }
	cfg.Entry = func(tenant string, e *Entry) error {
		entries = append(entries, fmt.Sprintf("%s %d %s %d", tenant, e.N, e.Kind, e.Position))
		return nil
	}
	sum, err := Verify(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Findings < len(found) {
		t.Errorf("%d findings are counted, %d told", sum.Findings, len(found))
	}
	return found, entries, sum
}

func TestRecord(t *testing.T) {
	key := newKey(t)
	dir := recorded(t, key)
	keys := PublicKeys{key.Public()}
	found, entries, sum := verified(t, VerifyConfig{Dir: dir, Keys: keys})
	if found != nil || sum.Pending != 0 {
		t.Errorf("%+v %+v", found, sum)
	}
	if sum.Tenants != 3 || sum.Head.Position != 40 || sum.Head.Key != key.Public() || int(sum.Entries) != len(entries) {
		t.Errorf("%+v", sum)
	}
	for _, want := range []string{"harbour 3 event 12", "acme 1 event 1", "Acme 1 event 2", "Acme 3 foreign 8", "acme 4 foreign 10", "harbour 9 compared 30"} {
		if !slices.Contains(entries, want) {
			t.Errorf("%q is not in %q", want, entries)
		}
	}
	gaps, junk := 0, 0
	for _, e := range headsIn(t, dir) {
		if e.Kind == KindForeign {
			junk++
		}
		if e.Kind != KindGap {
			continue
		}
		gaps++
		if string(e.Body) != `{"from":21,"to":22}` {
			t.Errorf("%s", e.Body)
		}
	}
	if gaps != 1 || junk != 1 {
		t.Errorf("%d gaps, %d junk", gaps, junk)
	}
}

func headsIn(t *testing.T, dir string) (out []Entry) {
	t.Helper()
	segs, err := segments(dir, headsChain)
	if err != nil {
		t.Fatal(err)
	}
	for _, seg := range segs {
		for l, err := range lines(dir, headsChain, seg) {
			if err != nil {
				t.Fatal(err)
			}
			e, err := parseLine(l.text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
	}
	return out
}

func TestTwoAuditorsAreKeptApart(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	openStore(t, StoreConfig{Dir: dir, Key: key})
	if s, err := Open(StoreConfig{Dir: dir, Key: key}); err == nil {
		_ = s.Close()
		t.Error("two auditors write")
	}
}

// quick is a folder that does not wait for its disk.
type quick string

func (d quick) add(path string, data []byte) error {
	full := filepath.Join(string(d), path)
	if err := os.MkdirAll(filepath.Dir(full), privateDir); err != nil {
		return err
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_APPEND, privateFile)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (d quick) truncate(path string, size int64) error {
	return os.Truncate(filepath.Join(string(d), path), size)
}
func (d quick) remove(path string) error { return os.Remove(filepath.Join(string(d), path)) }

// errKilled is what a process that was killed sees of the rest.
var errKilled = errors.New("killed")

// dying is a disk whose process is killed after so many bytes and operations.
type dying struct {
	disk
	left int
}

func (d *dying) spend(n int) int {
	got := min(n, d.left)
	d.left -= got
	return got
}

func (d *dying) add(path string, data []byte) error {
	got := d.spend(len(data) + 1)
	if got > 0 { // the file is made, and holds what was written
		if err := d.disk.add(path, data[:got-1]); err != nil {
			return err
		}
	}
	if got <= len(data) {
		return errKilled
	}
	return nil
}

func (d *dying) truncate(path string, size int64) error {
	if d.spend(1) == 0 {
		return errKilled
	}
	return d.disk.truncate(path, size)
}

func (d *dying) remove(path string) error {
	if d.spend(1) == 0 {
		return errKilled
	}
	return d.disk.remove(path)
}

// Killed again and again, each time a bit later, a store ends with each message once, in the same chains.
func TestKilledAnywhere(t *testing.T) {
	key := newKey(t)
	_, want, _ := verified(t, VerifyConfig{Dir: recorded(t, key)})
	stream := sample()
	for step := 150; step < 9000; step = step*3/2 + 1 {
		dir := t.TempDir()
		cfg := StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: newClock().Now}
		lives := 0
		for budget := step; ; budget += step {
			lives++
			cfg.disk = &dying{quick(dir), budget}
			s, err := Open(cfg)
			if err == nil {
				err = errors.Join(fill(s, stream, 3), s.Close())
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatalf("budget %d: %v", budget, err)
			}
			if found, _, _ := verified(t, VerifyConfig{Dir: dir}); len(found) > 0 && len(headSegments(dir)) > 0 {
				t.Fatalf("budget %d: a folder of a killed auditor: %+v", budget, found)
			}
		}
		found, got, sum := verified(t, VerifyConfig{Dir: dir, Keys: PublicKeys{key.Public()}})
		if found != nil || sum.Pending != 0 {
			t.Fatalf("step %d: %+v %+v", step, found, sum)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d, %d lives: %s", step, lives, diff)
		}
	}
}

// headSegments are the segments of heads that hold something.
func headSegments(dir string) (out []uint64) {
	segs, _ := segments(dir, headsChain)
	for _, seg := range segs {
		if info, err := os.Stat(filepath.Join(dir, headsChain, segmentName(seg))); err == nil && info.Size() > 0 {
			out = append(out, seg)
		}
	}
	return out
}

// Within the last commit, at bytes all over it.
func TestKilledInACommit(t *testing.T) {
	key := newKey(t)
	base := t.TempDir()
	s := openStore(t, StoreConfig{Dir: base, Key: key, Now: newClock().Now, disk: quick(base)})
	stream := sample()[:7]
	if err := errors.Join(fill(s, stream[:3], 3), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, want, _ := func() ([]Finding, []string, Summary) {
		dir := copied(t, base)
		s := openStore(t, StoreConfig{Dir: dir, Key: key, Now: newClock().Now, disk: quick(dir)})
		if err := fill(s, stream, 9); err != nil {
			t.Fatal(err)
		}
		return verified(t, VerifyConfig{Dir: dir})
	}()
	for budget := 0; ; budget += 29 {
		dir := copied(t, base)
		cfg := StoreConfig{Dir: dir, Key: key, Now: newClock().Now, disk: &dying{quick(dir), budget}}
		s := openStore(t, cfg)
		err := errors.Join(fill(s, stream, 9), s.Close())
		if found, _, _ := verified(t, VerifyConfig{Dir: dir}); found != nil {
			t.Fatalf("budget %d: %+v", budget, found)
		}
		if err == nil {
			break
		}
		cfg.disk = quick(dir)
		s = openStore(t, cfg)
		if err := errors.Join(fill(s, stream, 9), s.Close()); err != nil {
			t.Fatalf("budget %d: %v", budget, err)
		}
		found, got, sum := verified(t, VerifyConfig{Dir: dir})
		if diff := cmp.Diff(want, got); diff != "" || found != nil || sum.Pending != 0 {
			t.Fatalf("budget %d: %s %+v", budget, diff, found)
		}
		_ = os.RemoveAll(dir)
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestRetire(t *testing.T) {
	key, c := newKey(t), newClock()
	dir := t.TempDir()
	open := func(d disk) *Store {
		return openStore(t, StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: c.Now, disk: d})
	}
	s := open(quick(dir))
	stream := sample()
	if err := fill(s, stream[:30], 3); err != nil {
		t.Fatal(err)
	}
	_, before, _ := verified(t, VerifyConfig{Dir: dir})
	n, err := s.Retire(stream[28].At)
	if err != nil || n == 0 {
		t.Fatalf("%d removed, %v", n, err)
	}
	found, after, _ := verified(t, VerifyConfig{Dir: dir, Keys: PublicKeys{key.Public()}})
	if found != nil || len(after) >= len(before) {
		t.Errorf("%+v, %d entries of %d", found, len(after), len(before))
	}
	// All of it, heads too, killed at each step in between.
	c.now = c.now.Add(30 * day)
	_ = s.Close()
	for budget := 0; ; budget += 97 {
		s, err := Open(StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: c.Now, disk: &dying{quick(dir), budget}})
		if err == nil {
			_, err = s.Retire(c.now.Add(-day))
			_ = s.Close()
		}
		if found, _, _ := verified(t, VerifyConfig{Dir: dir}); found != nil {
			t.Fatalf("budget %d: %+v", budget, found)
		}
		if err == nil {
			break
		}
	}
	s = open(quick(dir))
	if err := fill(s, stream, 3); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Retire(c.now.Add(-day)); err != nil || n == 0 { // the old heads
		t.Errorf("%d %v", n, err)
	}
	found, after, _ = verified(t, VerifyConfig{Dir: dir, Keys: PublicKeys{key.Public()}})
	if found != nil {
		t.Errorf("%+v", found)
	}
	_ = s.Close()
	s = open(quick(dir))
	if s.Position().Sum() != 40 {
		t.Errorf("position %d, %q", s.Position().Sum(), after)
	}
}

func FuzzLine(f *testing.F) {
	e := Entry{N: 1, At: time.Unix(1, 5).UTC(), Kind: KindEvent, Position: 3}
	e.message("events.a.b.c", []byte(`{"a":"<"}`))
	f.Add(e.appendLine(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parseLine(text)
		if err == nil && !bytes.Equal(e.appendLine(nil), text) {
			t.Errorf("%q is read and not written so", text)
		}
		var m Entry
		m.At = time.Unix(1, 0).UTC()
		m.message(string(text), text)
		back, err := parseLine(m.appendLine(nil))
		if err != nil || back.sum("c") != m.sum("c") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
