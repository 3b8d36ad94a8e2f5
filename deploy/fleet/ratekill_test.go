//go:build unix

package fleet_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// pacedGate is what the tool gate asks. It holds the first call, and knows when each one arrived.
type pacedGate struct {
	*httptest.Server

	first chan struct{} // closed when a call has arrived

	mu    sync.Mutex
	calls []time.Time
}

func newPacedGate(t *testing.T) *pacedGate {
	t.Helper()
	g := &pacedGate{first: make(chan struct{})}
	over := make(chan struct{})
	g.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.calls = append(g.calls, time.Now())
		n := len(g.calls)
		g.mu.Unlock()
		if n == 1 {
			close(g.first)
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}
	}))
	t.Cleanup(func() {
		close(over)
		g.Close()
	})
	return g
}

// A worker that is killed while it calls a tool has used its permit. The worker that takes its run over needs another one to make the
// call again, and waits for it; so the killed worker's call, its repetition and that of another run fall into three windows. They
// are of six seconds here, which is longer than the takeover.
func TestKillWithAPermit(t *testing.T) {
	t.Parallel()
	const minute = 6 * time.Second
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "gate", Args: "{}"}
		}
		return reply{Text: "Done: " + c.Last}
	})
	rules := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(rules, []byte("apiVersion: longshore.run/v1\nkind: Policy\nspec:\n  fleet: {rates: [{name: gates, tool: gate, perMinute: 1}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gate := newPacedGate(t)
	env := []string{gateVariable + "=" + gate.URL, "LONGSHORE_POLICY=" + rules, minuteVariable + "=" + minute.String()}
	first := w.toolWorker("first", env...)
	killed := w.watch(w.submit("killed", withTools))
	select {
	case <-gate.first:
	case <-time.After(patience):
		t.Fatal("the tool is not called")
	}
	w.toolWorker("second", env...)
	other := w.watch(w.submit("other", withTools))
	first.kill()
	for _, g := range []*watching{killed, other} {
		completed(t, g.end(), "Done: passed")
		for _, e := range g.events {
			if e.Name() != messages.EventRunWaiting {
				continue
			}
			var waits messages.RunWaiting
			if err := json.Unmarshal(e.Data, &waits); err != nil {
				t.Fatal(err)
			}
			if waits.Reason != queue.ParkRate || waits.Limit != "gates" || waits.Question != "rule gates of the fleet allows 1 call of gate in a minute" {
				t.Errorf("%s waits so: %+v", g.run, waits)
			}
		}
	}
	gate.mu.Lock()
	defer gate.mu.Unlock()
	if len(gate.calls) != 3 {
		t.Errorf("%d calls arrived, want 3", len(gate.calls))
	}
	last := int64(0)
	for _, at := range gate.calls {
		window := at.Unix() / int64(minute/time.Second)
		if window == last {
			t.Errorf("two calls in a window: %v", gate.calls)
		}
		last = window
	}
}
