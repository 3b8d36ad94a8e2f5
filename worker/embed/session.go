package embed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/runner"
)

// Errors of a Session that callers branch on.
var (
	ErrRunning    = errors.New("the session is running")
	ErrEnded      = runlog.ErrEnded
	ErrNotWaiting = runlog.ErrNotWaiting
	ErrClosed     = errors.New("the service is closed")
)

// Session is a handle on one run. Safe for concurrent use.
type Session struct {
	service    *Service
	run        messages.Ref
	task       messages.Task
	now        func() time.Time
	log        runlog.Memory
	queue      *queue
	feed       *feed
	controller *runlog.Controller
	runner     *runner.Runner

	mu      sync.Mutex
	running bool
	ticket  runner.Ticket // the next to be worked
}

// Ref is the run of the session.
func (s *Session) Ref() messages.Ref { return s.run }

// On calls f with each later event, in order, until off is called. The loop calls it and waits for it. Off may be
// called within f; an event may still be on its way when another goroutine calls it.
func (s *Session) On(f func(messages.Event)) (off func()) { return s.feed.on(f) }

// Run takes the run to its end and returns its result, whatever its status: a run that failed is a result, not an
// error. While the run waits, Run waits.
//
// An error is ctx's cause, or says that the platform failed; Run may then be called again and continues where the log
// ends. ErrClosed: the service was closed, and the run does not continue. After the end it returns the same result.
func (s *Session) Run(ctx context.Context) (messages.AgentResult, error) {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return messages.AgentResult{}, ErrRunning
	}
	s.running = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running = false
		s.mu.Unlock()
	}()
	defer s.queue.disarm()
	if res, ok := s.Result(); ok {
		return res, s.settle(ctx)
	}
	working, leave, err := s.service.enter(ctx, s)
	if err != nil {
		return messages.AgentResult{}, err
	}
	defer leave()
	for {
		if res, ok := s.Result(); ok {
			return res, s.settle(ctx)
		}
		if err := s.wait(working); err != nil {
			return messages.AgentResult{}, err
		}
		s.ticket.Delivered++
		outcome, err := s.runner.Run(working, s.ticket)
		switch {
		case outcome == runner.Done:
		case ctx.Err() != nil:
			return messages.AgentResult{}, context.Cause(ctx)
		case s.service.stopped():
			return messages.AgentResult{}, ErrClosed
		default:
			return messages.AgentResult{}, fmt.Errorf("run %s: %w", s.run, err)
		}
	}
}

// settle hands out the last event, if that was not done.
func (s *Session) settle(ctx context.Context) error {
	if ended, err := s.feed.Ended(ctx, s.run); ended || err != nil {
		return err
	}
	return s.controller.Settle(ctx, s.run)
}

// Result is how the run ended; false: it has not.
func (s *Session) Result() (messages.AgentResult, bool) {
	for _, e := range s.log.Entries(s.run) {
		if e.Head.Phase != record.PhaseFinished {
			continue
		}
		for _, r := range e.Records {
			if f, ok := r.(*record.Finished); ok {
				return f.Result, true
			}
		}
	}
	return messages.AgentResult{}, false
}

// Log is the log of the run so far.
func (s *Session) Log() []record.Entry { return s.log.Entries(s.run) }

// Abort asks the run to stop. What is in progress is aborted, and Run returns the result, which is cancelled. Before the
// first Run the run ends at once. ErrEnded: the run has ended.
func (s *Session) Abort(ctx context.Context, reason string) error {
	for {
		ask := &record.CancelRequested{ID: s.controller.NewID(), Reason: reason}
		_, err := s.controller.Control(ctx, s.run, ask)
		switch {
		case errors.Is(err, runlog.ErrNotFound):
			err = s.cancelUnbegun(ctx, ask)
			if errors.Is(err, runlog.ErrConflict) {
				continue // it has just begun
			}
			return err
		case err != nil:
			return err
		}
		s.runner.Nudge(s.run)
		return nil
	}
}

func (s *Session) cancelUnbegun(ctx context.Context, ask *record.CancelRequested) error {
	now := s.now()
	why := &messages.RunError{Code: messages.CodeCancelled, Message: ask.Text()}
	started := &record.Started{Task: s.task, Agent: messages.Definition{Name: s.task.Agent}, QueuedAt: now, Shown: record.ShownByDefault()}
	res := messages.EndedResult(s.run, &s.task, messages.StatusCancelled, why, now, now)
	_, err := s.controller.Begin(ctx, s.run, started, ask, &record.Finished{Result: res})
	return err
}

// Answer answers what the run waits for, and Run continues. ErrNotWaiting: it waits for nothing, or has an answer, or asks
// for an approval, which no answer is.
func (s *Session) Answer(ctx context.Context, text string, isError bool) error {
	seq, park, err := s.parked(ctx)
	if err != nil {
		return err
	}
	if park.Approval != nil {
		return fmt.Errorf("the run asks for an approval: %w", ErrNotWaiting)
	}
	_, err = s.controller.Control(ctx, s.run, &record.Answered{
		ID: s.controller.NewID(), Park: seq, Content: messages.TextContent(text), IsError: isError,
	})
	return err
}

// wait waits until the run may be worked: at once, unless it is parked.
func (s *Session) wait(ctx context.Context) error {
	for {
		if s.service.stopped() {
			return ErrClosed
		}
		last, ok, err := s.log.Last(ctx, s.run)
		if err != nil || !ok || last.Head.Phase == record.PhaseActive {
			return err
		}
		if last.Head.Phase == record.PhaseReady {
			s.ticket = runner.Ticket{Run: s.run, Seq: s.ticket.Seq + 1, After: last.Seq, Priority: s.ticket.Priority, Queued: s.now()}
			return nil
		}
		if err := s.controller.Settle(ctx, s.run); err != nil { // its timer
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.service.gone:
			return ErrClosed
		case <-s.queue.wakes:
		case park := <-s.queue.timers:
			if err := s.controller.Errand(ctx, s.run, messages.Wake{After: park, Errand: messages.ErrandTimer}); err != nil {
				return err
			}
		}
	}
}
