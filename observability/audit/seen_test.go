package audit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

// An honest run is compared with what the feed had: nothing of EVENTS is read again.
func TestHonestRunsAreNotReadAgain(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	for i := range 20 {
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprint("honest-", i)}
		_, events := p.begin(run)
		p.publish(run, events)
	}
	reads, err := p.nc.SubscribeSync("$JS.API.STREAM.MSG.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	p.audit(dir, key, time.Hour, func(_ Summary, entries []string) bool { return len(kinds(entries, KindCompared)) == 20 })
	if err := p.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for n, _, _ := reads.Pending(); n > 0; n-- {
		m, err := reads.NextMsg(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		stream, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$JS.API.STREAM.MSG.GET."), "_")
		of[stream]++
	}
	if of["RUNS"] == 0 || of["EVENTS"] != 0 {
		t.Errorf("%v", of)
	}
}

// Of an honest run that begins and ends while the auditor is there nothing at all is asked for.
func TestHonestRunsAreNotAskedFor(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	reads, err := p.nc.SubscribeSync("$JS.API.STREAM.MSG.GET.RUNS")
	if err != nil {
		t.Fatal(err)
	}
	const warm, runs, some = 30, 60, 10 // until the auditor follows the logs
	before, begun := 0, 0
	p.audit(dir, key, time.Hour, func(_ Summary, entries []string) bool {
		if len(kinds(entries, KindCompared)) < begun {
			return false
		}
		if begun == warm {
			if err := p.nc.Flush(); err != nil {
				t.Fatal(err)
			}
			before, _, _ = reads.Pending()
		}
		if begun == runs {
			return true
		}
		for range some {
			run := messages.Ref{Tenant: "acme", Run: fmt.Sprint("honest-", begun)}
			_, events := p.begin(run)
			p.publish(run, events)
			begun++
		}
		return false
	})
	if err := p.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := reads.Pending(); after != before {
		t.Errorf("logs were asked for %d times", after-before)
	}
}

// An event that is stored once as the log has it and once otherwise is found, in whatever order.
func TestAuditOfEventsStoredTwice(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	for i, id := range []string{"right-first", "wrong-first"} {
		run := messages.Ref{Tenant: "acme", Run: id}
		_, events := p.begin(run)
		changed := events[2]
		changed.Data = json.RawMessage(`{"by":"bob"}`)
		pair := []messages.Event{events[2], changed}
		if i == 1 {
			slices.Reverse(pair)
		}
		p.raw(run, slices.Concat(events[:2], pair, events[3:])...)
	}
	entries := p.audit(dir, key, time.Hour, func(_ Summary, entries []string) bool { return len(kinds(entries, KindFinding)) == 2 })
	for _, want := range []string{
		`acme finding runs.acme.right-first.log {"outcome":"differs","entries":1,"events":5,"altered":[3]}`,
		`acme finding runs.acme.wrong-first.log {"outcome":"differs","entries":1,"events":5,"altered":[3]}`,
	} {
		if !slices.Contains(entries, want) {
			t.Errorf("%q is not in %q", want, entries)
		}
	}
}

func TestSeenIsBounded(t *testing.T) {
	t.Parallel()
	var s seen
	for i := range 3 * maxSeen {
		s.add(messages.Ref{Tenant: "acme", Run: strconv.Itoa(i / 10)}, uint64(i), []byte("x"))
		if s.count > maxSeen {
			t.Fatalf("%d are remembered", s.count)
		}
	}
	last := messages.Ref{Tenant: "acme", Run: strconv.Itoa((3*maxSeen - 1) / 10)}
	before := s.count
	got := s.take(last)
	want := map[uint64]Hash{}
	for i := uint64(3*maxSeen - 10); i < 3*maxSeen; i++ {
		want[i] = sha256.Sum256([]byte("x"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.count != before-10 || s.take(last) != nil {
		t.Errorf("%d are remembered", s.count)
	}
}
