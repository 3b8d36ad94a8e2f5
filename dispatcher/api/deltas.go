package api

import (
	"context"
	"sync"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// eventDelta is the name of live text in a stream of events. It has no id, so a client that comes back asks for what
// follows the last event.
const eventDelta = "delta"

// deltaRoom is how many pieces of live text wait for a client; more are dropped, as their numbers show.
const deltaRoom = 64

// deltas gives live text to watchers: those of one run share one subscription, which lasts as long as there are any.
type deltas struct {
	client *dispatcher.Client

	mu   sync.Mutex
	runs map[messages.Ref]*deltaRun
}

type deltaRun struct {
	watchers map[chan messages.Live]struct{} // the lock of deltas holds for it
	stop     context.CancelFunc
	ended    chan struct{} // closed when nothing more is given
}

func newDeltas(c *dispatcher.Client) *deltas {
	return &deltas{client: c, runs: map[messages.Ref]*deltaRun{}}
}

// watch gives the live text of a run from now on. Text that a slow reader does not take is dropped. It ends with
// leave.
func (d *deltas) watch(ctx context.Context, run messages.Ref) (pieces <-chan messages.Live, leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[run]
	if r == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // it lasts as long as its last watcher
		r = &deltaRun{watchers: map[chan messages.Live]struct{}{}, stop: stop, ended: make(chan struct{})}
		d.runs[run] = r
		go d.follow(ctx, run, r)
	}
	in := make(chan messages.Live, deltaRoom)
	r.watchers[in] = struct{}{}
	return in, func() { d.leave(run, r, in) }
}

// leave ends a watch. The last one of a run ends its subscription, and waits until that is gone.
func (d *deltas) leave(run messages.Ref, r *deltaRun, in chan messages.Live) {
	d.mu.Lock()
	delete(r.watchers, in)
	last := len(r.watchers) == 0
	if last && d.runs[run] == r {
		delete(d.runs, run)
	}
	d.mu.Unlock()
	if last {
		r.stop()
		<-r.ended
	}
}

func (d *deltas) follow(ctx context.Context, run messages.Ref, r *deltaRun) {
	defer close(r.ended)
	for l, err := range d.client.Live(ctx, run) {
		if err != nil {
			return // its watchers get the events alone
		}
		d.mu.Lock()
		for in := range r.watchers {
			select {
			case in <- l:
			default:
			}
		}
		d.mu.Unlock()
	}
}
