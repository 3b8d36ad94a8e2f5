//go:build unix

package fleet_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// A worker that is stopped in the midst of a sweep ends without a warning: nothing is wrong, the next sweep does the rest.
func TestStopInTheMidstOfASweep(t *testing.T) {
	t.Parallel()
	const runs = 10
	w := open(t, shortAckWait, hello)
	var asked, listed atomic.Bool
	line := newTap(t, w.nats, func(m published) verdict {
		switch {
		case !asked.Load():
		case strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.CREATE.RUNS.") && strings.Contains(m.Body, `"runs.*.*.log"`):
			listed.Store(true)
		case listed.Load() && strings.HasPrefix(m.Subject, "$JS.API.STREAM.MSG.GET."):
			return defers // forever: the sweep does not get further, however fast it is
		}
		return pass
	})
	p := w.worker("first", "NATS_URL="+line.url)
	p.line(`"swept"`) // that of the dispatcher's start
	for i := range runs {
		w.watch(w.submit("hello", func(task *messages.Task) { task.ID = fmt.Sprint("r", i) })).end()
	}
	before := len(line.all())
	asked.Store(true)
	if err := taskqueue.NewSweeps(w.bus).AskSweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	line.await(t, before, func(m published) bool {
		return listed.Load() && strings.HasPrefix(m.Subject, "$JS.API.STREAM.MSG.GET.")
	})
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	said := p.log()
	if n := strings.Count(strings.Join(said, "\n"), `"swept"`); n != 1 {
		t.Errorf("%d sweeps ended, want the first alone", n)
	}
	for _, line := range said {
		fault := strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`)
		if fault && (strings.Contains(line, "sweep") || strings.Contains(line, "canceled")) {
			t.Errorf("a stop in the midst of a sweep is logged as a fault: %s", line)
		}
	}
}
