//go:build unix

package fleet_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// liveWatch follows the replies of a run while they are written.
type liveWatch struct {
	t     *testing.T
	reply messages.LiveReply
	seen  []messages.Live
	next  chan messages.Live
}

// live begins to watch, and returns once the server knows that.
func (w *town) live(run messages.Ref) *liveWatch {
	w.t.Helper()
	g := &liveWatch{t: w.t, next: make(chan messages.Live)}
	before := w.nc.NumSubscriptions()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for l, err := range w.client.Live(ctx, run) {
			if err != nil {
				return
			}
			select {
			case g.next <- l:
			case <-ctx.Done():
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	deadline := time.After(patience)
	for w.nc.NumSubscriptions() == before {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			w.t.Fatal("no watcher is connected")
		}
	}
	if err := w.nc.Flush(); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// until waits until the reply is what the test waits for.
func (g *liveWatch) until(what string, is func(*messages.LiveReply) bool) {
	g.t.Helper()
	deadline := time.After(patience)
	for !is(&g.reply) {
		select {
		case l := <-g.next:
			g.seen = append(g.seen, l)
			g.reply.Add(&l)
		case <-deadline:
			g.t.Fatalf("no %s: %+v", what, g.reply)
		}
	}
}

// A worker that is killed in the middle of a reply leaves half a text behind. What the next one writes begins anew
// for every watcher.
func TestLiveTextOfAKilledWorker(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		key := strings.TrimPrefix(c.Auth, "Bearer ")
		return reply{Begin: "The key is " + key + ". " + key[:9], Hold: true}
	})
	run := w.submit("work")
	text := w.live(run)
	first := w.worker("first")
	g := w.watch(run)
	w.model.next(t)
	const begun = "The key is [redacted]. "
	text.until("beginning", func(r *messages.LiveReply) bool { return r.Text == begun })
	old := text.reply
	second := w.worker("second")
	first.kill()
	call := w.model.next(t)
	text.until("new beginning", func(r *messages.LiveReply) bool { return r.Attempt > old.Attempt && r.Text == begun })
	call.answer <- reply{Text: " That is all."}
	text.until("end", func(r *messages.LiveReply) bool { return strings.HasSuffix(r.Text, "all.") })
	want := "The key is [redacted]. " + apiKey[:9] + " That is all."
	completed(t, g.end(), want)
	if text.reply.Text != want || text.reply.Step != old.Step || text.reply.Try != 1 || text.reply.Incomplete {
		t.Errorf("in the end the watcher has %+v", text.reply)
	}
	if text.reply.Add(&text.seen[0]) {
		t.Error("what the dead worker wrote is shown again")
	}
	published := 0
	for _, l := range text.seen {
		if l.Attempt > old.Attempt {
			published++
		}
		if strings.Contains(l.Text, apiKey) {
			t.Errorf("the key is in %+v", l)
		}
	}
	m := metrics(t, second)
	if m["longshore_worker_live_messages_total"] != strconv.Itoa(published) || m["longshore_worker_live_dropped_bytes_total"] != "0" {
		t.Errorf("counted %s messages, %s bytes dropped", m["longshore_worker_live_messages_total"], m["longshore_worker_live_dropped_bytes_total"])
	}
}
