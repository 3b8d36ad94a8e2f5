package evaluation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// cancelTimeout bounds the cancel of a run that took too long.
const cancelTimeout = 5 * time.Second

// Options of a Run.
type Options struct {
	Tenant   string
	Agent    string           // works every case, if set
	Repeat   int              // in place of that of every case, if not 0
	Parallel int              // in place of the suite's, if not 0
	Progress func(p Progress) // called after each run, one call at a time; may be nil
	NewID    func() string    // of a run; default messages.NewID
	Now      func() time.Time // default time.Now
}

// Progress is how far a suite is.
type Progress struct{ Done, Passed, All int }

// Run runs a suite and judges every run. A run that cannot be followed, or takes too long, has failed; one that takes
// too long is cancelled. The error is one of the suite, a *BadCase, or that ctx ended; what was submitted then continues.
func Run(ctx context.Context, client *dispatcher.Client, s *Suite, o Options) (*Report, error) {
	if o.NewID == nil {
		o.NewID = func() string { return messages.NewID(time.Now()) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	type job struct{ index, of int }
	var jobs []job
	for i := range s.Cases {
		n := s.Cases[i].Repeat
		if o.Repeat != 0 {
			n = o.Repeat
		}
		for range n {
			jobs = append(jobs, job{len(jobs), i})
		}
	}
	if len(jobs) > maxRuns {
		return nil, &messages.FieldError{Field: "repeat", Reason: fmt.Sprintf("makes %d runs, more than %d", len(jobs), maxRuns)}
	}
	parallel := s.Parallel
	if o.Parallel != 0 {
		parallel = o.Parallel
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	outcomes := make([]Outcome, len(jobs))
	queue := make(chan job)
	var wg sync.WaitGroup
	var mu sync.Mutex
	progress := Progress{All: len(jobs)}
	began := o.Now()
	for range min(parallel, len(jobs)) {
		wg.Go(func() {
			for j := range queue {
				out, err := runCase(ctx, client, s, &s.Cases[j.of], &o)
				if err != nil {
					stop(err)
					return
				}
				outcomes[j.index] = *out
				mu.Lock()
				progress.Done++
				if out.Passed {
					progress.Passed++
				}
				if o.Progress != nil {
					o.Progress(progress)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		select {
		case queue <- j:
		case <-ctx.Done():
		}
	}
	close(queue)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return report(s, outcomes, o.Now().Sub(began)), nil
}

// BadCase says that the fleet refuses the task of a case.
type BadCase struct { //nolint:errname // it is about a case
	Case string
	Err  error
}

func (e *BadCase) Error() string { return "case " + e.Case + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *BadCase) Unwrap() error { return e.Err }

func runCase(ctx context.Context, client *dispatcher.Client, s *Suite, c *Case, o *Options) (*Outcome, error) {
	t := c.task(s)
	t.ID = o.NewID()
	if o.Agent != "" {
		t.Agent = o.Agent
	}
	if o.Tenant != "" {
		t.Tenant = o.Tenant
	}
	out := &Outcome{Case: c.Name, ID: t.ID}
	limited, cancel := context.WithTimeout(ctx, time.Duration(s.Timeout))
	defer cancel()
	began := o.Now()
	result, err := follow(limited, client, t)
	out.Millis = o.Now().Sub(began).Milliseconds()
	var field *messages.FieldError
	switch {
	case err == nil:
		out.take(result)
		out.Why = c.Expect.Judge(result)
		out.Passed = len(out.Why) == 0
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &field), errors.Is(err, dispatcher.ErrUnknownAgent):
		return nil, &BadCase{c.Name, err}
	case limited.Err() != nil:
		out.Why = []string{fmt.Sprintf("it took more than %s and was cancelled", time.Duration(s.Timeout))}
		giveUp(ctx, client, t.Ref())
	default:
		out.Why = []string{strict.Clip(err.Error(), maxReason)}
	}
	return out, nil
}

func follow(ctx context.Context, client *dispatcher.Client, t *messages.Task) (*messages.AgentResult, error) {
	if _, err := client.Submit(ctx, *t); err != nil {
		return nil, err
	}
	return client.Wait(ctx, t.Ref())
}

// giveUp cancels a run. That it fails changes nothing: the run has failed its case.
func giveUp(ctx context.Context, client *dispatcher.Client, run messages.Ref) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	_, _ = client.Cancel(ctx, run, "the evaluation waits no longer")
}
