package fetch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/longshore-run/longshore/worker/runner"
)

// ErrQuarantineFull means that too many runs wait for a trial.
var ErrQuarantineFull = errors.New("too many runs wait in quarantine")

// trialTime is how long a trial delays others. After it the run continues in parallel with them.
const trialTime = 10 * time.Second

// quarantine tries runs that may be killing workers. A prime suspect is tried while no other run is on trial. The others are tried
// one at a time at first, and twice as many whenever one of them makes progress. Runs that wait have not claimed anything, so the
// next death costs them no attempt. Only the owner uses it.
type quarantine struct {
	f     *Fetch
	limit int // of runs that wait

	closed    bool       // written by dismiss
	room      int        // trials at once; written by end
	busy      int        // trials within their time; written by admit and passOn
	exclusive bool       // a prime suspect is on trial; written by admit and passOn
	trials    int        // runs without progress, including those whose time is over; written by admit and end
	waiting   []*entrant // written by join, admit, leave and dismiss
}

// entrant is a run that waits.
type entrant struct {
	prime bool
	done  chan struct{} // closed when the wait is over
	trial *trial        // nil: judge again
	err   error
}

// trial is the trial of one run.
type trial struct {
	slot    *Slot
	expired bool // its time is over
	ended   bool
	alone   bool
	timer   *time.Timer
}

// Enter waits for a trial. It frees the slot while it waits and takes it again afterwards. A nil trial without an error means that
// there is new evidence: judge again.
func (f *Fetch) Enter(ctx context.Context, sl *Slot, prime bool) (*runner.Trial, error) {
	e := &entrant{prime: prime, done: make(chan struct{})}
	err := runner.ErrShutdown
	f.do(func() {
		if err = f.quarantine.join(e, sl); err == nil {
			sl.free()
		}
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		f.do(func() { f.quarantine.leave(e) })
	}
	<-e.done
	switch {
	case e.err != nil:
		return nil, e.err
	case e.trial == nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case e.trial == nil:
		f.do(sl.retake)
		return nil, nil
	}
	return &runner.Trial{Alone: e.trial.alone, End: func(progress bool) {
		f.do(func() { f.quarantine.end(e.trial, progress) })
	}}, nil
}

// Reopen makes all waiting runs be judged again, because there is new evidence.
func (f *Fetch) Reopen() { f.do(func() { f.quarantine.dismiss(nil, false) }) }

// Close rejects all runs that wait in quarantine.
func (f *Fetch) Close() { f.do(func() { f.quarantine.dismiss(runner.ErrShutdown, true) }) }

func (q *quarantine) join(e *entrant, sl *Slot) error {
	switch {
	case q.closed:
		return runner.ErrShutdown
	case len(q.waiting) >= q.limit:
		return ErrQuarantineFull
	}
	at := len(q.waiting)
	if e.prime {
		at = slices.IndexFunc(q.waiting, func(o *entrant) bool { return !o.prime })
		if at < 0 {
			at = len(q.waiting)
		}
	}
	e.trial = &trial{slot: sl}
	q.waiting = slices.Insert(q.waiting, at, e)
	q.admit()
	return nil
}

// admit begins the trials that may begin.
func (q *quarantine) admit() {
	for len(q.waiting) > 0 && !q.exclusive {
		e := q.waiting[0]
		if e.prime && q.busy > 0 || q.busy >= q.room {
			return
		}
		q.waiting = q.waiting[1:]
		q.exclusive = e.prime
		q.busy++
		q.trials++
		e.trial.alone = q.trials == 1
		if !e.trial.alone || e.prime { // announce that a prime suspect is alone, unless the last announcement said so
			q.f.cfg.News(q.trials)
		}
		e.trial.timer = time.AfterFunc(trialTime, func() { q.f.do(func() { q.expire(e.trial) }) })
		close(e.done)
	}
}

// leave ends a wait without a trial, unless it is over already.
func (q *quarantine) leave(e *entrant) {
	if i := slices.Index(q.waiting, e); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		e.trial = nil
		close(e.done)
		q.admit()
	}
}

// end ends a trial. It is idempotent.
func (q *quarantine) end(t *trial, progress bool) {
	if t.ended {
		return
	}
	t.ended = true
	t.timer.Stop()
	q.trials--
	if progress {
		q.room = min(2*q.room, max(q.limit, 1))
	}
	q.passOn(t)
	if q.trials == 0 && len(q.waiting) == 0 {
		q.room = 1
	}
}

// expire admits others although the run has made no progress yet.
func (q *quarantine) expire(t *trial) {
	if !t.ended {
		q.passOn(t)
	}
}

// passOn frees the trial for the next run, once, and gives the run its slot.
func (q *quarantine) passOn(t *trial) {
	if t.expired {
		return
	}
	t.expired = true
	t.slot.retake()
	q.busy--
	q.exclusive = false
	q.admit()
}

// dismiss rejects all that wait.
func (q *quarantine) dismiss(err error, closed bool) {
	q.closed = q.closed || closed
	for _, e := range q.waiting {
		e.trial, e.err = nil, err
		close(e.done)
	}
	q.waiting = nil
}
