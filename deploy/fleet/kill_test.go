//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

const (
	// The ack wait of most is far from patience: the run of a dead worker is taken over before we give up.
	shortAckWait = 2 * time.Second
	// And this is how long after its worker's death a run takes that has nothing else to wait for.
	takeover = shortAckWait + 2*time.Second
)

// killOwner kills the first worker, lets the second one finish, and checks who claimed the run. It returns how long after
// the death of its worker the run ended, too.
func killOwner(t *testing.T, first *process, g *watching, owners ...string) (*messages.AgentResult, time.Duration) {
	t.Helper()
	killed := time.Now()
	first.kill()
	r := g.end()
	took := time.Since(killed)
	if diff := cmp.Diff(owners, g.w.owners(g.run)); diff != "" {
		t.Errorf("owners: %s", diff)
	}
	return r, took
}

// soon checks how long after the death of its worker a run took, or many did. Half is how long they took before, from
// their submission to the place where the worker died: a machine that was slow then may be slow now.
func soon(t *testing.T, half, took time.Duration) {
	t.Helper()
	t.Logf("it took %v to the death of the worker, and %v from there", half, took)
	if most := takeover + 4*half; took > most {
		t.Errorf("the run of a dead worker took %v to its end, want at most %v, for it had taken %v to the death", took, most, half)
	}
}

func TestKillInModelCall(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	w := open(t, shortAckWait, func(c *modelCall) reply {
		r := turn(c, 3)
		r.Hold = c.Turn == 1 && calls.Add(1) == 1
		return r
	})
	first := w.worker("first")
	submitted := time.Now()
	g := w.watch(w.submit("work"))
	w.model.next(t)
	half := time.Since(submitted)
	second := w.worker("second")
	r, took := killOwner(t, first, g, "first", "second")
	completed(t, r, "Done: Wrote 2 bytes to step-1.txt")
	counted(t, second, "1", "0")
	if diff := cmp.Diff(map[string]int{"work 0": 1, "work 1": 2, "work 2": 1}, w.model.counts()); diff != "" {
		t.Errorf("model calls: %s", diff)
	}
	soon(t, half, took)
}

// counted checks what the worker says that took the run of another one over.
func counted(t *testing.T, p *process, repeatedModel, repeatedTool string) {
	t.Helper()
	has := metrics(t, p)
	for name, want := range map[string]string{
		"reclaims": "1", "redeliveries": "1", "repeated_model_calls": repeatedModel, "repeated_tool_calls": repeatedTool,
	} {
		if got := has["longshore_worker_"+name+"_total"]; got != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}

// gateServer is what the tool gate asks. It tells the key of each call and holds the first one.
type gateServer struct {
	*httptest.Server
	keys chan string
}

func newGate(t *testing.T) *gateServer {
	t.Helper()
	g := &gateServer{keys: make(chan string, 8)}
	var calls atomic.Int32
	over := make(chan struct{})
	g.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key, _ := io.ReadAll(r.Body)
		g.keys <- string(key)
		if calls.Add(1) == 1 {
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

// call waits for a call and returns its key.
func (g *gateServer) call(t *testing.T) string {
	t.Helper()
	select {
	case key := <-g.keys:
		return key
	case <-time.After(patience):
		t.Fatal("the tool is not called")
		return ""
	}
}

func TestKillInToolCall(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "gate", Args: "{}"}
		}
		return reply{Text: "Done: " + c.Last}
	})
	gate := newGate(t)
	first := w.toolWorker("first", gateVariable+"="+gate.URL)
	submitted := time.Now()
	g := w.watch(w.submit("work", withTools))
	key := gate.call(t)
	half := time.Since(submitted)
	second := w.toolWorker("second", gateVariable+"="+gate.URL)
	r, took := killOwner(t, first, g, "first", "second")
	completed(t, r, "Done: passed")
	counted(t, second, "0", "1")
	if diff := cmp.Diff(map[string]int{"work 0": 1, "work 1": 1}, w.model.counts()); diff != "" {
		t.Errorf("model calls: %s", diff)
	}
	if again := gate.call(t); again != key || key == "" || len(gate.keys) != 0 {
		t.Errorf("the call was made with the keys %q and %q, and %d more times", key, again, len(gate.keys))
	}
	soon(t, half, took)
}

// TestKillBetweenSteps kills a worker whose append has just been stored, or has just not been stored.
func TestKillBetweenSteps(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		kind   record.Kind // of a record in the append at which the worker dies
		cut    verdict
		owners []string
	}{
		{"reply stored", record.KindModelReplied, cutAfter, []string{"first", "second"}},
		{"step ended", record.KindStepEnded, cutAfter, []string{"first", "second"}},
		{"step end lost", record.KindStepEnded, cutBefore, []string{"first", "second"}},
		{"run ended and not settled", record.KindFinished, cutAfter, []string{"first"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, shortAckWait, func(c *modelCall) reply { return turn(c, 3) })
			line := newTap(t, w.nats, func(m published) verdict {
				if m.isAppend(string(tc.kind)) {
					return tc.cut
				}
				return pass
			})
			first := w.worker("first", "NATS_URL="+line.url)
			submitted := time.Now()
			g := w.watch(w.submit("work"))
			select {
			case <-line.dead:
			case <-time.After(patience):
				t.Fatal("the worker does not get there")
			}
			half := time.Since(submitted)
			w.worker("second")
			r, took := killOwner(t, first, g, tc.owners...)
			completed(t, r, "Done: Wrote 2 bytes to step-1.txt")
			if diff := cmp.Diff(map[string]int{"work 0": 1, "work 1": 1, "work 2": 1}, w.model.counts()); diff != "" {
				t.Errorf("model calls: %s", diff)
			}
			soon(t, half, took)
		})
	}
}
