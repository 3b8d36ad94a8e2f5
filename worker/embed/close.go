package embed

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/runner"
)

// RunOnce takes a task to its end: Session and Run in one. A run that failed is a result. An error says that the task was
// refused, that ctx ended, or that the platform failed, and the run is gone.
func (s *Service) RunOnce(ctx context.Context, task messages.Task) (messages.AgentResult, error) {
	x, err := s.Session(task)
	if err != nil {
		return messages.AgentResult{}, err
	}
	return x.Run(ctx)
}

// Close stops the service. Sessions no longer begin or continue: Run returns ErrClosed once the model call or tool calls in progress
// have ended and are recorded, or the result if that was the last step. A Run that waits returns at once.
//
// Close returns nil when no Run is left. If ctx ends first, calls in progress are aborted; Close still waits for each Run to return,
// which may take long if a tool ignores its context, and returns ctx's cause. It may be called again.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.gone)
	}
	for x := range s.running {
		x.runner.Drain()
	}
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		s.runs.Wait()
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, abort := range s.running {
		abort(runner.ErrShutdown)
	}
	s.mu.Unlock()
	<-idle
	return fmt.Errorf("close: %w", context.Cause(ctx))
}

// enter counts a Run that begins, whose context ends when Close loses its patience.
func (s *Service) enter(ctx context.Context, x *Session) (_ context.Context, leave func(), _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ctx, nil, ErrClosed
	}
	ctx, abort := context.WithCancelCause(ctx)
	s.running[x] = abort
	s.runs.Add(1)
	return ctx, func() {
		abort(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, x)
		s.runs.Done()
	}, nil
}

func (s *Service) stopped() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}
