package audit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	busevents "github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// What events tell of runs stands in the audit encrypted with the key of the tenant. When that is destroyed it cannot be read, what comes after it is kept
// as its hash, who did what can be read still, and the chains verify.
func TestSealedAudit(t *testing.T) {
	t.Parallel()
	p, key, dir := openPort(t), newKey(t), t.TempDir()
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(p.bus, keyring.Config{Master: master})
	p.sealer = ring
	told := busevents.New(p.bus)
	work := func(id string, position uint64) {
		t.Helper()
		run := messages.Ref{Tenant: "acme", Run: id}
		_, events := p.begin(run)
		events[0].Data = bytes.Replace(events[0].Data, []byte(`"input":"x"`), []byte(`"input":"planted-input"`), 1)
		p.publish(run, events)
		if err := told.AnnounceTo(t.Context(), "acme", control.EventFeedback, control.Feedback{Run: id, ID: "f", Comment: "planted-comment"}); err != nil {
			t.Fatal(err)
		}
		if err := told.AnnounceTo(t.Context(), "acme", control.EventActed, control.Acted{Action: "pause", By: "ann-" + id, Outcome: control.ActDone}); err != nil {
			t.Fatal(err)
		}
		p.audit(dir, key, time.Hour, func(sum Summary, entries []string) bool {
			return sum.Head.Position == position && len(kinds(entries, KindCompared))+len(kinds(entries, KindFinding)) == int(position/7)
		})
	}
	inFiles := func(word string) (n int) {
		t.Helper()
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(filepath.Clean(path))
			n += bytes.Count(data, []byte(word))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// opened are the bodies that open, and how many do not, each for the same reason.
	opened := func(want error) (bodies string, closed int) {
		t.Helper()
		_, err := Verify(t.Context(), VerifyConfig{Dir: dir, Keys: PublicKeys{key.Public()}, Entry: func(tenant string, e *Entry) error {
			switch err := e.Open(t.Context(), ring, tenant); {
			case err == nil, errors.Is(err, ErrNotSealed):
				bodies += string(e.Body) + string(e.Raw) + "\n"
			case want != nil && errors.Is(err, want):
				closed++
			default:
				t.Errorf("entry %d: %v", e.N, err)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return bodies, closed
	}
	work("before", 7)
	if n := inFiles("planted"); n != 0 || inFiles("ann-before") != 1 || inFiles("events.acme.before.run_queued") != 1 {
		t.Errorf("%d of what was planted is in the files, who acted %d times", n, inFiles("ann-before"))
	}
	if bodies, _ := opened(nil); !strings.Contains(bodies, "planted-input") || !strings.Contains(bodies, "planted-comment") {
		t.Errorf("the entries do not open as they were: %s", bodies)
	}
	if err := ring.Destroy(t.Context(), "acme", "ann"); err != nil {
		t.Fatal(err)
	}
	work("after", 14)
	bodies, closed := opened(record.ErrUnreadable)
	if strings.Contains(bodies, "planted") || closed != 6 || strings.Count(bodies, `{"omitted":`) != 6 || !strings.Contains(bodies, "ann-after") || inFiles("planted") != 0 {
		t.Errorf("%d entries are closed: %s", closed, bodies)
	}
	if found, _, _ := audited(t, dir, key); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
