package events

import (
	"context"
	"errors"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Endings learns of the ends of all runs, for those in this process that wait for the end of one. Without them it has no subscription. It hears
// an end when it is published, and again when it is stored, should the first be lost or the process not be allowed to hear it.
type Endings struct{ hub *Hub }

// NewEndings returns Endings; they serve once Run does.
func (st *Store) NewEndings() *Endings {
	const ofAll = "events.*.*."
	h := st.newHub(ofAll + messages.EventRunFinished)
	h.tail.Start.HeadersOnly = true
	h.early = []string{ofAll + messages.EventTurnEnd, ofAll + messages.EventRunFinished}
	return &Endings{h}
}

// Run serves until ctx ends. An error says that it cannot follow the events.
func (e *Endings) Run(ctx context.Context) error { return e.hub.Run(ctx) }

// Ending waits for the end of one run. It belongs to one goroutine.
type Ending struct {
	tail *hubTail
	stop <-chan struct{}
}

// Of begins to wait for the end of a run. What is stored once Ready has returned nil is heard. That stop is closed ends the wait.
func (e *Endings) Of(run messages.Ref, stop <-chan struct{}) *Ending {
	return &Ending{e.hub.join(run), stop}
}

// Close must be called when the wait is over.
func (e *Ending) Close() { e.tail.Close() }

// errStopped means that a wait was stopped.
var errStopped = errors.New("the wait was stopped")

// Ready waits until the ending hears what is stored from then on.
func (e *Ending) Ready(ctx context.Context) error {
	select {
	case <-e.tail.follows:
		return nil
	case <-e.tail.ended:
		return e.tail.over(ctx)
	case <-e.stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Next waits until something of the run is heard. Finished is true when run_finished was published, before which all is done that follows from
// the end; that event may be stored a moment later. Before that it is mostly heard that the run has written the last entry of its log.
func (e *Ending) Next(ctx context.Context) (finished bool, err error) {
	select {
	case m := <-e.tail.in:
		return strings.HasSuffix(m.Subject, "."+messages.EventRunFinished), nil
	case <-e.tail.ended:
		return false, e.tail.over(ctx)
	case <-e.stop:
		return false, errStopped
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
