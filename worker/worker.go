// Package worker is a member of the fleet. [Worker.Run] pulls task messages into its slots, hands tickets to the
// runner and errands to the controller, keeps what it holds alive, and hands everything back when it stops.
//
// A worker has no durable state: it may be killed at any moment, and another one continues from the logs.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/fetch"
	"github.com/longshore-run/longshore/worker/memorylimit"
	"github.com/longshore-run/longshore/worker/runner"
)

// Defaults of Config.
const (
	DefaultSlots        = 64
	DefaultDrainTimeout = 30 * time.Second
)

// Config is fixed for the life of a worker.
type Config struct {
	Bus          *bus.Bus
	Logs         *runlogs.Store // which a sweep looks through. Default: those of Bus
	Fleet        *roster.Fleet  // through which the worker speaks. Default: that of Bus
	Controller   *runlog.Controller
	Runner       *runner.Runner
	Slots        int                          // runs worked at once; default 64
	DrainTimeout time.Duration                // how long a stop waits for steps to end before it aborts them; default 30 s
	Look         time.Duration                // between two looks at all lanes, about; hints may be lost. Default 3.5 s
	Log          *slog.Logger                 // default: discard
	Name         string                       // that the worker is listed with. Default: its id
	Version      string                       // of the program, that it is listed with
	Caps         *quotas.Caps                 // those of the Runner's Controller; nil: nothing is capped or paused
	Clock        *bus.Clock                   // that of the Controller; nil: this machine's clock is trusted
	Roster       *roster.Roster               // the other workers, as the Runner knows them; nil: it knows of none
	Tools        func() []string              // names of what the Runner offers now, that it is listed with; nil: none. It returns at once
	Specs        func() []messages.ToolSpec   // the same in full, for those who ask; nil: none
	Models       func() []messages.ModelState // how calls of models go, for those who ask; nil: that is not told
	Labels       messages.Labels
	Memory       *memorylimit.Budget // that of the Runner: no task is taken for which it has no room. nil: there always is
	// Alone: no other worker will ever come, so runs that need what this one lacks fail instead of waiting. Without a Roster
	// it is always so.
	Alone bool
}

// Worker works task messages.
type Worker struct {
	cfg        Config
	queue      *taskqueue.Queue
	semaphores *semaphores.Store
	fetch      *fetch.Fetch
	held       *held
	jobs       sync.WaitGroup // messages being handled

	weather     weather
	sweeping    sync.Mutex
	redelivered atomic.Uint64

	id       string // of this life of the worker, as its claims name it
	since    time.Time
	draining atomic.Bool
	adopting sync.Mutex    // held while a delivery of another worker is taken on, and while draining begins
	wanted   chan struct{} // buffered: there was no slot for a run that fits this worker
	changed  chan struct{} // buffered: there is news of this worker to announce

	// Set by Run before anything is pulled.
	ackWait       time.Duration
	beatEvery     time.Duration
	announceEvery time.Duration
	running       context.Context //nolint:containedctx // ends when the worker is told to stop
	working       context.Context //nolint:containedctx // ends when its runs are aborted
}

// New returns a worker.
func New(cfg Config) *Worker {
	if cfg.Slots == 0 {
		cfg.Slots = DefaultSlots
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = DefaultDrainTimeout
	}
	if cfg.Logs == nil {
		cfg.Logs = runlogs.New(cfg.Bus, runlogs.Config{})
	}
	if cfg.Fleet == nil {
		cfg.Fleet = roster.New(cfg.Bus)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	w := &Worker{
		cfg: cfg, queue: taskqueue.New(cfg.Bus), semaphores: semaphores.New(cfg.Bus), held: newHeld(), id: cfg.Runner.Life(), since: time.Now().UTC(),
		changed: make(chan struct{}, 1), wanted: make(chan struct{}, 1),
	}
	w.cfg.Name = cmp.Or(cfg.Name, w.id)
	w.fetch = fetch.New(fetch.Config{
		Queue: w.queue, Slots: cfg.Slots, Look: cfg.Look, Caps: cfg.Caps, Log: cfg.Log, Held: w.held.lanes, Discard: w.discard, News: w.tried, Memory: cfg.Memory,
	})
	return w
}

// Stats are what no event shows.
type Stats struct {
	Slots    int // in all
	Busy     int // slots in use
	Held     int // task messages in hand
	Suspects int // runs that are in quarantine, or wait for it
	Lanes    int // lanes that this worker believes to have work

	Redelivered uint64 // task messages that were delivered before, to any worker
	LanesFull   uint64 // how often a lane could not be made because the stream has no room for more
	Runner      runner.Stats
}

// Stats returns the counts of this moment.
func (w *Worker) Stats() Stats {
	working, full := w.fetch.Lanes()
	return Stats{
		Slots: w.cfg.Slots, Busy: w.fetch.Busy(), Held: w.held.len(), Suspects: w.fetch.Suspects(), Lanes: working, LanesFull: full,
		Redelivered: w.redelivered.Load(), Runner: w.cfg.Runner.Stats(),
	}
}

// abortGrace is how long an aborted run has to hand itself back.
const abortGrace = 10 * time.Second

// Run works until ctx ends or the worker is asked to drain. Then it drains: it takes no new messages, and each run hands itself back
// after its current step, or is aborted after the drain timeout. It returns when everything it started has ended.
func (w *Worker) Run(ctx context.Context) error {
	if status := w.status(); w.cfg.Roster != nil {
		if err := status.Check(); err != nil {
			return fmt.Errorf("other workers would not know of this one: %w", err)
		}
	}
	defer w.fetch.Own()()
	tasks, err := w.queue.Tasks(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // it stops before it began
	case err != nil:
		return fmt.Errorf("open task queue: %w", err)
	}
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	if w.cfg.Caps != nil { // before the first run
		if _, err := w.cfg.Caps.Load(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	w.compareClock(ctx)
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	beat, stopBeat := context.WithCancel(work)
	w.working = work
	var background sync.WaitGroup
	defer background.Wait()
	defer stopBeat()
	w.ackWait, w.beatEvery, w.running = tasks.AckWait, tasks.AckWait/3, ctx
	background.Go(func() { w.heartbeat(beat, w.beatEvery) })
	w.announceEvery = min(w.beatEvery, maxAnnounceEvery)
	w.listen(beat, &background)
	background.Go(func() { w.announce(beat) })
	background.Go(func() { w.register(beat, drain) })
	if w.cfg.Clock != nil {
		background.Go(func() { w.cfg.Clock.Keep(beat, w.beatEvery, w.applyClock) })
	}
	background.Go(func() {
		if err := w.queue.ServeOwner(beat, w.id, w.ackWait, owner{w}); err != nil && beat.Err() == nil {
			w.cfg.Log.WarnContext(beat, "other workers cannot ask for runs: they take over those that were delivered again", "err", err)
		}
	})
	background.Go(func() {
		if err := w.queue.Nudges(beat, w.cfg.Runner.Nudge); err != nil && beat.Err() == nil {
			w.cfg.Log.WarnContext(beat, "no nudges: controls are seen at the next heartbeat", "err", err)
		}
	})
	if w.cfg.Caps != nil {
		background.Go(func() { w.keepCaps(beat) })
	}
	if w.cfg.Roster != nil {
		background.Go(func() { w.recruit(ctx) })
	}
	w.fetch.Run(ctx, tasks, func(d *taskqueue.Delivery, slot *fetch.Slot) {
		w.jobs.Go(func() { w.handle(work, d, slot) })
	})
	w.drain(work, abort)
	return nil
}

// drain waits for what is in hand, then aborts it.
func (w *Worker) drain(ctx context.Context, abort context.CancelCauseFunc) {
	w.adopting.Lock()
	w.draining.Store(true)
	w.adopting.Unlock()
	signal(w.changed)
	w.cfg.Runner.Drain() // before it is logged: a step that ends after the line is the last
	if held := w.held.len(); held == 0 {
		w.cfg.Log.InfoContext(ctx, "draining: there are no runs to wait for")
	} else {
		w.cfg.Log.InfoContext(ctx, "draining: waiting for the runs in hand to end their current step", "held", held, "timeout", w.cfg.DrainTimeout.String())
	}
	w.fetch.Close()
	done := make(chan struct{})
	go func() {
		w.jobs.Wait()
		close(done)
	}()
	timer := time.NewTimer(w.cfg.DrainTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	w.cfg.Log.WarnContext(ctx, "drain timeout is over: runs are aborted and handed back", "held", w.held.len())
	abort(runner.ErrShutdown)
	timer.Reset(abortGrace)
	select {
	case <-done:
	case <-timer.C:
		w.cfg.Log.ErrorContext(ctx, "runs did not end after they were aborted", "held", w.held.len())
		<-done
	}
}

// handle works one message to its end. It is called with a slot, which it gives back.
func (w *Worker) handle(ctx context.Context, d *taskqueue.Delivery, slot *fetch.Slot) {
	defer slot.Free()
	w.work(ctx, d, slot)
}

// work works one message in its slot.
func (w *Worker) work(ctx context.Context, d *taskqueue.Delivery, slot *fetch.Slot) {
	if t := w.read(ctx, d, slot); t != nil {
		w.ticket(ctx, d, t)
	}
}

// read makes the ticket of a message; nil: it is none, and has been handled.
func (w *Worker) read(ctx context.Context, d *taskqueue.Delivery, slot *fetch.Slot) *runner.Ticket {
	priority, run, ok := messages.ParseTaskSubject(d.Subject)
	if ok && d.Scheduler != "" && !messages.MaySchedule(d.Scheduler, priority, run) {
		w.refuse(ctx, d, &messages.FieldError{Field: "subject", Reason: "tasks are published, not scheduled on another's subject"})
		return nil
	}
	if !ok {
		w.refuse(ctx, d, badSubject())
		return nil
	}
	if !d.Belongs(run) {
		w.refuse(ctx, d, &messages.FieldError{Field: "subject", Reason: "belongs in another partition of the queue"})
		return nil
	}
	t := &runner.Ticket{
		Run: run, Seq: d.Seq, Priority: priority, Queued: d.Queued, Delivered: d.Delivered, Body: d.Data, Trace: d.Trace,
		Quarantine: func(ctx context.Context, prime bool) (*runner.Trial, error) {
			return w.fetch.Enter(ctx, slot, prime)
		},
	}
	if priority.Wakes() {
		var wake messages.Wake
		err := strict.Decode(d.Data, &wake)
		if err == nil && wake.Errand == "" && wake.After == 0 {
			err = &messages.FieldError{Field: "after", Reason: "is missing"}
		}
		switch {
		case err != nil:
			w.refuse(ctx, d, err)
			return nil
		case wake.Errand != "":
			w.errand(ctx, d, run, wake)
			return nil
		}
		t.After, t.Body = wake.After, nil
	}
	return t
}

// ticket hands a ticket to the runner.
func (w *Worker) ticket(ctx context.Context, d *taskqueue.Delivery, t *runner.Ticket) {
	if t.Delivered > 1 {
		w.redelivered.Add(1)
	}
	h, mine := w.held.add(t, d)
	if !mine {
		return // worked here already: its owner continues with the newer delivery
	}
	whole := *t
	whole.Lease = func() time.Duration { return w.held.lease(h) }
	whole.Keeps = func(ctx context.Context, claim string) (bool, error) {
		return w.keeps(ctx, w.held.newest(h), t.Run, claim)
	}
	if w.cfg.Roster != nil && !w.cfg.Alone {
		whole.Elsewhere = &elsewhere{w, h, t.Run}
	}
	t.Body, d.Data = nil, nil // the runner lets go of the task when its run has begun
	outcome, err := w.cfg.Runner.Run(ctx, whole)
	w.settle(ctx, w.held.remove(h), t, outcome, err)
}

// settle does to the message of a ticket what the outcome says.
func (w *Worker) settle(ctx context.Context, d *taskqueue.Delivery, t *runner.Ticket, outcome runner.Outcome, err error) {
	log := func() *slog.Logger {
		return w.cfg.Log.With("tenant", t.Run.Tenant, "task_id", t.Run.Run, "delivery", t.Delivered)
	}
	if err != nil && !errors.Is(err, runner.ErrShutdown) {
		log().WarnContext(ctx, "work a ticket", "err", err, "outcome", outcome.String())
	}
	switch outcome {
	case runner.Done:
		w.ack(ctx, d)
	case runner.Lost:
		log().InfoContext(ctx, "another worker owns the run")
	case runner.Kept:
		log().InfoContext(ctx, "run left to another worker")
	case runner.Return:
		w.giveBack(ctx, d, t, nakDelay(err, t.Delivered))
	}
}

// nakTimeout bounds the wait until the queue knows that a message was given back. The ack wait does the same.
const nakTimeout = 2 * time.Second

// giveBack hands a message back, and notifies workers with a free slot.
func (w *Worker) giveBack(ctx context.Context, d *taskqueue.Delivery, t *runner.Ticket, delay time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nakTimeout)
	defer cancel()
	if err := d.Nak(ctx, delay); err != nil {
		w.cfg.Log.WarnContext(ctx, "give a task back", "tenant", t.Run.Tenant, "task_id", t.Run.Run, "err", err)
		return
	}
	lane, _ := queue.LaneOf(t.Priority, t.Run.Tenant)
	lane = lane.In(d.Partition())
	if w.running.Err() == nil {
		w.fetch.Given(lane, delay)
	} else if delay == 0 {
		if err := w.queue.Spill([]queue.Lane{lane}); err != nil {
			w.cfg.Log.DebugContext(ctx, "tell others of lanes", "err", err)
		}
	}
}

// Delays before a message that was given back comes again.
const (
	busyDelay    = time.Second
	failDelay    = time.Second // times the deliveries so far
	maxFailDelay = 30 * time.Second
)

func nakDelay(err error, delivered int) time.Duration {
	switch {
	case errors.Is(err, runner.ErrShutdown):
		return 0
	case errors.Is(err, runner.ErrBusy), errors.Is(err, fetch.ErrQuarantineFull), errors.Is(err, errGrace):
		return busyDelay
	default:
		return min(failDelay*time.Duration(delivered), maxFailDelay)
	}
}

// ackTimeout bounds an ack. A lost ack costs a delivery that finds nothing to do.
const ackTimeout = 10 * time.Second

func (w *Worker) ack(ctx context.Context, d *taskqueue.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
	defer cancel()
	if err := d.Ack(ctx); err != nil {
		w.cfg.Log.WarnContext(ctx, "ack a task", "subject", d.Subject, "err", err)
	}
}

// refuse makes a dead letter of a message that names no run.
func (w *Worker) refuse(ctx context.Context, d *taskqueue.Delivery, why error) {
	if w.deadLetter(ctx, d.Subject, d.Seq, d.Data, d.Queued, why) {
		w.ack(ctx, d)
	}
}

// discard makes a dead letter of a message that is in no lane.
func (w *Worker) discard(ctx context.Context, q taskqueue.Queued) {
	if !w.deadLetter(ctx, q.Subject, q.Seq, q.Body, q.At, badSubject()) {
		return
	}
	if err := w.queue.Discard(ctx, q); err != nil {
		w.cfg.Log.WarnContext(ctx, "remove a dead-lettered task", "err", err) // it is found again
	}
}

func badSubject() error {
	return &messages.FieldError{Field: "subject", Reason: "must be tasks.<high|normal|low>.<tenant>.<run>, each of A-Z a-z 0-9 _ -, and no _ alone"}
}

// deadLetter makes a dead letter of a message. When it is false the message comes again.
func (w *Worker) deadLetter(ctx context.Context, stored string, seq uint64, body []byte, at time.Time, why error) bool {
	subject := messages.AsPublished(stored)
	letter := messages.Dead{
		Error:   messages.RunError{Code: messages.CodeInvalidInput, Message: why.Error()},
		Subject: subject, Task: body, Time: at, Ticket: seq,
	}
	if err := deadletters.New(w.cfg.Bus).PutRaw(ctx, subject, letter); err != nil {
		w.cfg.Log.WarnContext(ctx, "dead-letter a task", "err", err)
		return false
	}
	w.cfg.Log.WarnContext(ctx, "task refused", "subject", strict.Clip(subject, 200), "err", why)
	return true
}

// errand runs an errand; it comes again if that fails.
func (w *Worker) errand(ctx context.Context, d *taskqueue.Delivery, run messages.Ref, wake messages.Wake) {
	var err error
	switch wake.Errand {
	case messages.ErrandSweep:
		err = w.sweep(ctx, d)
	case messages.ErrandLanes:
		w.fetch.Repair(ctx, w.ackWait)
	case messages.ErrandTimer, messages.ErrandNet:
		err = w.cfg.Controller.Errand(ctx, run, wake)
	case messages.ErrandLearn:
		if !w.learn(ctx, d, run, wake.Rating) {
			return
		}
	default:
		w.refuse(ctx, d, &messages.FieldError{Field: "errand", Reason: "is unknown"})
		return
	}
	if err != nil {
		w.cfg.Log.WarnContext(ctx, "run an errand", "errand", string(wake.Errand), "tenant", run.Tenant, "task_id", run.Run, "err", err)
		return
	}
	w.ack(ctx, d)
}
