package embed

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
)

// queue is what Run waits for while its run is parked.
type queue struct {
	now    func() time.Time
	wakes  chan struct{} // the log may say that the run is ready
	timers chan uint64   // a park's time may be over

	mu    sync.Mutex
	timer *time.Timer // of the park; nil: none
}

var _ runlog.Queue = (*queue)(nil)

// Wake implements runlog.Queue. The log says what follows from it.
func (q *queue) Wake(context.Context, messages.Ref, uint64) error {
	select {
	case q.wakes <- struct{}{}:
	default:
	}
	return nil
}

// Timer implements runlog.Queue.
func (q *queue) Timer(_ context.Context, _ messages.Ref, park uint64, at time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timer = time.AfterFunc(at.Sub(q.now()), func() {
		select {
		case q.timers <- park:
		default:
		}
	})
	return nil
}

// disarm stops the timer: the run no longer waits.
func (q *queue) disarm() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
	}
}

// Net implements runlog.Queue. It does nothing: in one process a control record and its wake-up are not separated by a crash.
func (q *queue) Net(context.Context, messages.Ref, string, time.Time) error { return nil }

// Holds implements runlog.Queue.
func (q *queue) Holds(context.Context, messages.Ref, uint64) (bool, error) { return true, nil }

// DeadLetter implements runlog.Queue: the result says that the task could not be worked.
func (q *queue) DeadLetter(context.Context, messages.Ref, string, messages.Dead) error { return nil }
