//go:build unix

package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// timerSkew is how much too early the server may be by the clock of the test.
const timerSkew = 100 * time.Millisecond

// hastyAgent waits one second for an approval.
const hastyAgent = `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: hasty}
spec: {tools: [write_file], approve: {always: [write_file], expires: 1s}}
`

// A worker is killed around the timer of a park, or around what it does when the timer fires. The park ends at its time
// all the same, once.
func TestKilledAroundATimer(t *testing.T) {
	t.Parallel()
	timer := func(m published) bool { return strings.HasPrefix(m.Subject, "sched.timer.") }
	expired := func(m published) bool { return m.isAppend(string(record.KindExpired)) }
	wakeUp := func(m published) bool { return strings.HasPrefix(m.Subject, "tasks.wake.default.") }
	for name, tc := range map[string]struct {
		at  func(published) bool
		cut verdict
	}{
		"before it is set":              {timer, cutBefore},
		"after it is set":               {timer, cutAfter},
		"before the end of the park":    {expired, cutBefore},
		"after the end of the park":     {expired, cutAfter},
		"before the wake-up":            {wakeUp, cutBefore},
		"after the wake-up, ack is due": {wakeUp, cutAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, shortAckWait, func(c *modelCall) reply {
				if c.Turn == 0 {
					return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "hi"}}
				}
				return reply{Text: "no approval came"}
			})
			line := newTap(t, w.nats, func(m published) verdict {
				if tc.at(m) {
					return tc.cut
				}
				return pass
			})
			first := w.worker("first", "NATS_URL="+line.url)
			run := w.submit("work", func(t *messages.Task) { t.Agent = "hasty" })
			g := w.watch(run)
			select {
			case <-line.dead:
			case <-time.After(patience):
				t.Fatal("the worker does not get there")
			}
			first.kill()
			w.worker("second")
			completed(t, g.end(), "no approval came")
			over := 0
			for _, e := range w.log(run) {
				for _, r := range e.Records {
					if r.Kind() == record.KindExpired {
						over++
					}
				}
			}
			if over != 1 {
				t.Errorf("the park ended %d times", over)
			}
			if diff := cmp.Diff(map[string]int{"work 0": 1, "work 1": 1}, w.model.counts()); diff != "" {
				t.Errorf("model calls: %s", diff)
			}
		})
	}
}

// A delayed task is submitted through a dispatcher that is killed before or after the schedule is stored. Submitting it again
// results in one run, which begins on time even without a dispatcher.
func TestKilledAroundADelayedTask(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]verdict{"before it is stored": cutBefore, "after it is stored": cutAfter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newControlHall(t)
			h.worker("worker")
			line := newTap(t, h.nats, func(m published) verdict {
				if strings.HasPrefix(m.Subject, "sched.task.") {
					return cut
				}
				return pass
			})
			victim := h.dispatcher("victim", line.url)
			at := time.Now().Add(3 * time.Second)
			task := messages.Task{ID: "later", Input: messages.TextInput("work"), NotBefore: &at}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := make(chan error, 1)
			go func() {
				_, err := h.client.Submit(ctx, task)
				asked <- err
			}()
			select {
			case <-line.dead:
			case <-time.After(patience):
				t.Fatal("the dispatcher does not get there")
			}
			victim.kill()
			cancel()
			if err := <-asked; err == nil {
				t.Error("the request succeeds")
			}
			second := h.dispatcher("second", h.nats)
			if _, err := h.client.Submit(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			second.kill()
			run := dispatcher.Run(task.ID)
			select {
			case <-h.watch(run).done:
			case <-time.After(patience):
				t.Fatal("the task is not worked")
			}
			if began := h.log(run)[0].Head.Time; began.Before(at.Add(-timerSkew)) {
				t.Errorf("it began at %s, its time is %s", began, at)
			}
			h.dispatcher("third", h.nats) // tells the result
			completed(t, h.watch(run).end(), "Done: Wrote 2 bytes to a.txt")
		})
	}
}
