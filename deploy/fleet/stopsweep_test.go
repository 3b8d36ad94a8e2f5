//go:build unix

package fleet_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// A worker that is stopped in the midst of a sweep ends without a warning: nothing is wrong, the next sweep does the rest.
func TestStopInTheMidstOfASweep(t *testing.T) {
	t.Parallel()
	const runs, tries = 250, 5
	w := open(t, shortAckWait, hello)
	p := w.worker("first")
	p.line(`"swept"`) // that of the dispatcher's start
	for i := range runs {
		w.submit("hello", func(task *messages.Task) { task.ID = fmt.Sprint("r", i) })
	}
	for i := range runs {
		run := messages.Ref{Tenant: messages.DefaultTenant, Run: fmt.Sprint("r", i)}
		eventually(t, run.Run+" ends", func() bool {
			ended, err := w.bus.Ended(t.Context(), run)
			return err == nil && ended
		})
	}
	listed := make(chan struct{}, 64)
	if _, err := w.nc.Subscribe("$JS.API.STREAM.INFO.RUNS", func(m *nats.Msg) {
		if strings.Contains(string(m.Data), `"runs.*.*.log"`) {
			select {
			case listed <- struct{}{}:
			default:
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for try := range tries {
		if try > 0 { // the sweep had ended before the stop came
			p = w.worker(fmt.Sprint("another ", try))
		}
		swept := strings.Count(strings.Join(p.log(), "\n"), `"swept"`)
		if err := w.bus.AskSweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-listed:
		case <-time.After(patience):
			t.Fatal("no sweep begins")
		}
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("the worker ended with %d", code)
		}
		for _, line := range p.log() {
			fault := strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`)
			if fault && (strings.Contains(line, "sweep") || strings.Contains(line, "canceled")) {
				t.Errorf("a stop in the midst of a sweep is logged as a fault: %s", line)
			}
		}
		if strings.Count(strings.Join(p.log(), "\n"), `"swept"`) == swept {
			return
		}
	}
	t.Errorf("none of %d sweeps was cut short", tries)
}
