//go:build unix

package index_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
)

// Of runs that were erased no row is left, nor a byte in the files of SQLite; others stay, and so it is after a rebuild of an index that
// had the events.
func TestErasedRunsHaveNoRows(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		h := newHarbour(t)
		all := golden(t)
		var of []messages.Event
		for _, es := range all {
			if len(es) > len(of) {
				of = es
			}
		}
		gone, stays := messages.Ref{Tenant: of[0].Ref().Tenant, Run: "gone"}, messages.Ref{Tenant: of[0].Ref().Tenant, Run: "stays"}
		for _, run := range []messages.Ref{gone, stays} {
			for _, e := range of {
				e.Subject, e.ID = run.Run, run.Run+"."+e.Sequence
				e.Data = bytes.ReplaceAll(e.Data, []byte(of[0].Subject), []byte(run.Run))
				if e.Name() == messages.EventRunQueued {
					e.Data = []byte(`{"agent":"a","priority":"normal","input":"planted-` + run.Run + `","labels":{"team":"planted-` + run.Run + `"},"queuedAt":"2026-01-01T00:00:00Z"}`)
				}
				h.publish(e)
			}
		}
		where := place()
		x := h.open(where)
		h.keep(x)
		h.caughtUp(x)
		runs := func() (ids []string) {
			page, err := x.Runs(t.Context(), control.RunsRequest{Tenant: gone.Tenant, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Runs {
				ids = append(ids, page.Runs[i].ID)
			}
			return ids
		}
		if got := strings.Join(runs(), " "); got != "stays gone" {
			t.Fatalf("before: %s", got)
		}
		if err := events.New(h.bus).AnnounceTo(t.Context(), gone.Tenant, erasure.EventErased, erasure.Erased{Of: "subject", Runs: []string{"gone", "other"}}); err != nil {
			t.Fatal(err)
		}
		h.caughtUp(x)
		if got := strings.Join(runs(), " "); got != "stays" {
			t.Errorf("after: %s", got)
		}
		steps, err := x.Steps(t.Context(), gone)
		if err != nil || len(steps.Steps) > 0 {
			t.Errorf("steps of the run that is gone: %v, %v", steps, err)
		}
		if err := x.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.caughtUp(x)
		if got := strings.Join(runs(), " "); got != "stays" {
			t.Errorf("after a rebuild: %s", got)
		}
		if strings.HasPrefix(where, "postgres") {
			return
		}
		h.until("no file holds what was erased", func() bool {
			found := 0
			for _, name := range []string{where, where + "-wal"} {
				data, err := os.ReadFile(filepath.Clean(name))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				if bytes.Contains(data, []byte("planted-gone")) {
					return false
				}
				found += bytes.Count(data, []byte("planted-stays"))
			}
			return found > 0
		})
	})
}
