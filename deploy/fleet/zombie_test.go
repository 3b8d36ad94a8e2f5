//go:build unix

package fleet_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// TestZombie stops a worker in a model call for so long that another one takes its run over, and lets it continue while
// the other is in its own call. All that the zombie says from then on goes through a line that the test reads.
func TestZombie(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, holdFirst(2))
	var risen atomic.Bool
	line := newTap(t, w.nats, func(m published) verdict {
		switch {
		case !risen.Load():
			return pass
		case strings.HasPrefix(m.Subject, "runs."):
			risen.Store(false)
			return releases
		case strings.HasPrefix(m.Subject, "$JS.API.STREAM.MSG.GET.RUNS"):
			return defers // a look at the log would tell it before it tries to append
		default:
			return pass
		}
	})
	zombie := w.worker("first", "NATS_URL="+line.url)
	run := w.submit("work")
	g := w.watch(run)
	first := w.model.next(t)
	second := w.worker("second")

	zombie.signal(syscall.SIGSTOP)
	taken := w.model.next(t)
	before := len(line.all())
	risen.Store(true)
	first.answer <- reply{Text: "the zombie's"}
	zombie.signal(syscall.SIGCONT)
	own := line.await(t, before, func(m published) bool { return m.Subject == run.LogSubject() })
	zombie.line("another worker owns the run")
	if !own.isAppend(string(record.KindModelReplied)) {
		t.Errorf("the zombie's append: %q", own.Body)
	}

	// The successor is heard three more times before it may end: the run stays its own.
	g.hear(3)
	taken.answer <- reply{Text: "the successor's"}
	completed(t, g.end(), "the successor's")
	if diff := cmp.Diff([]string{"first", "second"}, w.owners(run)); diff != "" {
		t.Errorf("owners: %s", diff)
	}
	for _, e := range w.log(run) {
		if strings.Contains(own.Body, `"id":"`+e.Head.ID+`"`) {
			t.Errorf("the zombie's append is entry %d", e.Seq)
		}
	}
	if n := w.model.counts()["work 0"]; n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}

	// Nothing more comes of it until it ends.
	for _, p := range []*process{zombie, second} {
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("%s ended with %d", p.name, code)
		}
	}
	said := slices.DeleteFunc(slices.Clone(line.all()[before:]), func(m published) bool {
		return strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.MSG.NEXT.") || strings.HasPrefix(m.Subject, "$JS.API.STREAM.MSG.GET.") ||
			strings.HasPrefix(m.Subject, "$JS.API.DIRECT.GET.") || strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.LIST.") ||
			strings.HasPrefix(m.Subject, "$JS.API.STREAM.INFO.") || m.Subject == run.LogEntriesSubject() || // that it is a zombie
			m.Subject == queue.SpillSubject || // lanes with work that it knew when it was told to end
			strings.HasPrefix(m.Subject, messages.SeenPrefix) || strings.HasSuffix(m.Subject, ".keep") || strings.HasPrefix(m.Subject, "$JS.API.CONSUMER.INFO.") // late answers; a look at the clock
	})
	for _, m := range said[1:] {
		t.Errorf("the zombie said %s: %.200q", m.Subject, m.Body)
	}
}

// TestStaleDelivery stops a worker that has nothing to do, so that a task is delivered into its socket and then, for
// want of a sign of life, to another worker. When it finds the task there, the task's owner is alive.
func TestStaleDelivery(t *testing.T) {
	t.Parallel()
	w := open(t, time.Second, holdFirst(1)) // an open pull outlives it by far
	line := newTap(t, w.nats, nil)
	stopped := w.worker("first", "NATS_URL="+line.url)
	stopped.line(`"message":"swept"`) // else the sweep is what it finds
	line.await(t, 0, published.isPull)
	stopped.signal(syscall.SIGSTOP)
	run := w.submit("work")
	g := w.watch(run)
	w.worker("second")
	call := w.model.next(t)

	before := len(line.all())
	stopped.signal(syscall.SIGCONT)
	line.await(t, before, published.isPull) // it has read everything that was stored
	g.hear(3)
	call.answer <- reply{Text: "the owner's"}
	completed(t, g.end(), "the owner's")
	if diff := cmp.Diff([]string{"second"}, w.owners(run)); diff != "" {
		t.Errorf("owners: %s", diff)
	}
	if n := w.model.counts()["work 0"]; n != 1 {
		t.Errorf("%d model calls, want 1", n)
	}
}

// holdFirst is a script that holds the first n calls. Later ones should not be made; it answers them.
func holdFirst(n int32) func(*modelCall) reply {
	var calls atomic.Int32
	return func(*modelCall) reply {
		if calls.Add(1) <= n {
			return reply{Hold: true}
		}
		return reply{Text: "stolen"}
	}
}
