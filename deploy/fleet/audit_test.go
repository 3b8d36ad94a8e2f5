//go:build unix

package fleet_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/observability/audit"
)

// An auditor that is killed again and again while runs are worked has each event once, and compares each run once.
func TestAuditorIsKilled(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(*modelCall) reply { return reply{Text: "done"} })
	w.worker("bundling")
	key := filepath.Join(t.TempDir(), "key")
	made := call(t, nil, "audit", "key", key)
	if made.code != 0 || !strings.HasPrefix(made.stdout, "lsap_") {
		t.Fatalf("%+v", made)
	}
	public := strings.TrimSpace(made.stdout)
	dir := filepath.Join(t.TempDir(), "audit")
	start := func() *process {
		p := spawn(t, "audit", []string{"NATS_URL=" + w.nats}, binary, "audit", "run", "--dir", dir, "--key", key)
		p.line(`"message":"ready"`)
		return p
	}
	read := func() (seen map[uint64]int, compared map[string]int) {
		seen, compared = map[uint64]int{}, map[string]int{}
		_, err := audit.Verify(t.Context(), audit.VerifyConfig{Dir: dir, Keys: audit.PublicKeys{public}, Found: func(f audit.Finding) {
			if f.Detail != "there are no heads" { // yet
				t.Errorf("%+v", f)
			}
		}, Entry: func(_ string, e *audit.Entry) error {
			if e.Kind == audit.KindEvent {
				seen[e.Position]++
				return nil
			}
			if compared[e.Subject]++; e.Kind != audit.KindCompared {
				t.Errorf("%s %s %s", e.Kind, e.Subject, e.Body)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return seen, compared
	}
	const lives, each = 4, 3
	for life := range lives {
		p := start()
		before, _ := read()
		for i := range each {
			w.submit(fmt.Sprintf("task %d %d", life, i), func(t *messages.Task) { t.Tenant = []string{"acme", "harbour"}[i%2] })
		}
		eventually(t, "some more is there", func() bool {
			seen, _ := read()
			return len(seen) > len(before)+life*life // another moment each time
		})
		p.kill()
	}
	last := start()
	eventually(t, "all runs are compared", func() bool {
		_, compared := read()
		return len(compared) == lives*each
	})
	last.kill()
	seen, compared := read()
	for run, n := range compared {
		if n != 1 {
			t.Errorf("%s was compared %d times", run, n)
		}
	}
	stored := map[uint64]bool{}
	for f, err := range events.New(w.bus).Feed(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Position == 0 {
			break
		}
		stored[f.Position] = true
		if n := seen[f.Position]; n != 1 {
			t.Errorf("message %d is there %d times", f.Position, n)
		}
	}
	if len(stored) < lives*each*5 || len(seen) != len(stored) {
		t.Errorf("%d messages, %d in the audit", len(stored), len(seen))
	}
	if got := call(t, nil, "audit", "verify", "--dir", dir, "--public-key", public); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "audit", "verify", "--dir", dir, "--public-key", "lsap_x"); got.code != 2 {
		t.Errorf("%+v", got)
	}
}
