package runlog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// Awaited reports whether the queue holds a message for a run: its task, a wake-up, a timer or a net. It is never stale.
type Awaited func(ctx context.Context, run messages.Ref) (bool, error)

// Stranded returns why a run will not continue without a repair, or that its end was not published; "" means that it needs none. It
// finds what Sweep repairs, from the same log, and changes nothing. A run whose last record is only seconds old may look stranded
// while a message is in flight: check it again.
func (k *Controller) Stranded(ctx context.Context, run messages.Ref, awaited Awaited) (why string, last record.Entry, err error) {
	last, ok, err := k.Log.Last(ctx, run)
	if err != nil || !ok {
		return "", last, err
	}
	switch last.Head.Phase {
	case record.PhaseActive:
		held, err := k.Queue.Holds(ctx, run, last.Head.Ticket)
		if err != nil || held {
			return "", last, err
		}
		return "it was being worked, and its ticket is no longer in the queue", last, nil
	case record.PhaseReady:
		queued, err := awaited(ctx, run)
		if err != nil || queued {
			return "", last, err
		}
		return "it may continue, but no wake-up is in the queue", last, nil
	case record.PhaseParked:
		if why, err := k.strandedChild(ctx, run, last.Head); err != nil || why != "" {
			return why, last, err
		}
		queued, err := awaited(ctx, run)
		if err != nil || queued {
			return "", last, err
		}
		why, err := k.strandedPark(ctx, run, last)
		return why, last, err
	case record.PhaseFinished:
		if k.Now().Sub(last.Head.Time) > endsFor {
			return "", last, nil
		}
		told, err := k.Events.Ended(ctx, run)
		if err != nil || told {
			return "", last, err
		}
		if queued, err := awaited(ctx, run); err != nil || queued {
			return "", last, err // who gets its ticket tells
		}
		return "it has ended, and its end was not told", last, nil
	default:
		return "", last, nil
	}
}

// strandedPark is for a parked run of which the queue knows nothing.
func (k *Controller) strandedPark(ctx context.Context, run messages.Ref, last record.Entry) (string, error) {
	until, err := k.until(ctx, run, last)
	switch {
	case err != nil:
		return "", err
	case until != nil:
		return fmt.Sprintf("it waits (%s) until %s, and no timer is set", last.Head.Waits, until.UTC().Format(time.RFC3339)), nil
	}
	switch last.Head.Waits {
	case queue.ParkSemaphore, queue.ParkPaused:
		return k.strandedInLine(ctx, run, last.Head)
	case queue.ParkSession:
		return k.strandedInSession(ctx, run, last.Head)
	case queue.ParkWorker:
		return k.strandedUnlisted(ctx, run)
	default:
		return "", nil // it waits for a person
	}
}

func (k *Controller) strandedInLine(ctx context.Context, run messages.Ref, h record.Head) (string, error) {
	if k.Semaphores == nil {
		return "", nil
	}
	names := waitsIn(h)
	for _, name := range names {
		at, err := k.Semaphores.Waiting(ctx, name, run)
		if err != nil || at != 0 {
			return "", err
		}
	}
	return "it waits for a permit, and queues at no semaphore: " + strings.Join(names, ", "), nil
}

// strandedUnlisted is for a run that waits for a worker, which finds it in the list alone.
func (k *Controller) strandedUnlisted(ctx context.Context, run messages.Ref) (string, error) {
	if k.Asks == nil {
		return "", nil
	}
	at, err := k.Asks.Waiting(ctx, queue.WorkerList, run)
	if err != nil || at != 0 {
		return "", err
	}
	return "it waits for a worker that fits it, and is not in the list of those", nil
}

func (k *Controller) strandedInSession(ctx context.Context, run messages.Ref, h record.Head) (string, error) {
	if k.Sessions == nil || h.Session == "" {
		return "", nil
	}
	s, _, err := k.Sessions.Session(ctx, run.Tenant, h.Session)
	if err != nil {
		return "", fmt.Errorf("read session %s: %w", h.Session, err)
	}
	for i, id := range s.Runs {
		switch {
		case id == run.Run && i == 0:
			return "it has its turn in session " + h.Session + ", and was not woken", nil
		case id == run.Run:
			return k.strandedBehind(ctx, messages.Ref{Tenant: run.Tenant, Run: s.Runs[0]}, h.Session)
		}
	}
	return "it waits for its turn in session " + h.Session + ", and is not in its order", nil
}

// strandedBehind is for a run that waits for its turn behind another one.
func (k *Controller) strandedBehind(ctx context.Context, first messages.Ref, session string) (string, error) {
	last, ok, err := k.Log.Last(ctx, first)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", first, err)
	}
	if ok && last.Head.Phase != record.PhaseFinished {
		return "", nil
	}
	return fmt.Sprintf("it waits for its turn in session %s behind run %s, which has ended", session, first.Run), nil
}
