package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
)

// longWait is how old the first task of a lane may be before that is worth a look.
const longWait = 5 * time.Minute

// lanes looks at what waits in the queue.
func (s *store) lanes(ctx context.Context) []Finding {
	const check = "queue"
	var list *control.LaneList
	err := s.withQueue(ctx, func(ctx context.Context, b *bus.Bus) (err error) {
		list, err = taskqueue.New(b).LaneList(ctx, control.LanesRequest{})
		return err
	})
	switch {
	case errors.Is(err, errDenied):
		return []Finding{skip(check, asDispatcher, "%v", err)}
	case errors.Is(err, bus.ErrMissing):
		return nil // the streams told it
	case err != nil:
		return []Finding{fail(check, "look at the server's log", "%v", err)}
	}
	inFlight, wakes := 0, 0
	var oldest *control.LaneStatus
	for i := range list.Lanes {
		l := &list.Lanes[i]
		if l.Tenant == "" {
			wakes += l.Queued
		} else {
			s.queued += l.Queued
		}
		inFlight += l.InFlight
		if l.Oldest != nil && (oldest == nil || l.Oldest.Before(*oldest.Oldest)) {
			oldest = l
		}
	}
	text := fmt.Sprintf("waiting: %s and %s; workers have %d", render.Count(int64(s.queued), "task"), render.Count(int64(wakes), "wake-up"), inFlight)
	if oldest != nil {
		if age := time.Since(*oldest.Oldest); age > longWait {
			whose := "wake-ups"
			if oldest.Tenant != "" {
				whose = fmt.Sprintf("tenant %s at priority %s", oldest.Tenant, oldest.Priority)
			}
			return []Finding{warn(check, "see `longshore lanes`: start more workers, or is the tenant paused?", "%s; the oldest, of %s, has waited for %s", text, whose, age.Round(time.Second))}
		}
	}
	return []Finding{ok(check, "%s", text)}
}

// queueStreams are those of the queue that could be looked at: one, or its partitions.
func (s *store) queueStreams() []*bus.StreamState {
	var found []*bus.StreamState
	for _, name := range s.inspect.Streams() {
		if state := s.streams[name]; state != nil && (name == bus.StreamTasks || strings.HasPrefix(name, bus.StreamTasks+"_")) {
			found = append(found, state)
		}
	}
	return found
}

// withQueue does one check with the bus, if the queue is there.
func (s *store) withQueue(ctx context.Context, do func(context.Context, *bus.Bus) error) error {
	if len(s.queueStreams()) == 0 {
		return bus.ErrMissing
	}
	return s.ask(ctx, func(ctx context.Context) error {
		b, err := bus.Open(ctx, s.nc, bus.Config{Streams: []string{bus.StreamTasks}, Budget: s.timeout})
		if err != nil {
			return err
		}
		return do(ctx, b)
	})
}

// deadLetters are there when something could not be worked.
func (s *store) deadLetters(context.Context) []Finding {
	state := s.streams[bus.StreamDead]
	switch {
	case state == nil:
		return nil
	case state.State.Msgs > 0:
		return []Finding{warn("dead letters", "see `longshore dead list`, with --tenant those of another tenant and with --unaddressed "+
			"those without one, and send them again or remove them", "%d", state.State.Msgs)}
	default:
		return []Finding{ok("dead letters", "none")}
	}
}

// workers asks a dispatcher for those that answer, and so both.
func (s *store) workers(ctx context.Context) []Finding {
	if len(s.queueStreams()) == 0 {
		return []Finding{skip("dispatcher", "", "there is no queue")}
	}
	var list []messages.WorkerStatus
	err := s.ask(ctx, func(ctx context.Context) error {
		client, err := dispatcher.New(ctx, s.nc)
		if err != nil {
			return err
		}
		list, err = client.Fleet().Workers(ctx)
		return err
	})
	switch {
	case errors.Is(err, errDenied):
		return []Finding{skip("dispatcher", asDispatcher, "%v", err)}
	case errors.Is(err, dispatcher.ErrUnavailable):
		return []Finding{fail("dispatcher", "start one with `longshore dispatcher`", "none answers")}
	case err != nil:
		return []Finding{fail("dispatcher", "look at its log", "%v", err)}
	}
	return []Finding{ok("dispatcher", "answers"), s.members(list)}
}

// members judges the workers that answered.
func (s *store) members(list []messages.WorkerStatus) Finding {
	const check = "workers"
	versions := map[string]int{}
	busy, slots, draining := 0, 0, 0
	for i := range list {
		w := &list[i]
		versions[w.Version]++
		busy, slots = busy+w.Busy, slots+w.Slots
		if w.Draining {
			draining++
		}
	}
	text := fmt.Sprintf("%d, %d of %d slots in use", len(list), busy, slots)
	if draining > 0 {
		text += fmt.Sprintf(", %d drain", draining)
	}
	names := slices.Sorted(maps.Keys(versions))
	switch {
	case len(list) == 0 && s.queued > 0:
		return fail(check, "start one with `longshore worker`", "none answers, and tasks wait: %d", s.queued)
	case len(list) == 0:
		return warn(check, "start one with `longshore worker`", "none answers")
	case len(list) == draining:
		return warn(check, "start one with `longshore worker`", "%s", text)
	case len(names) > 1:
		return warn(check, "bring all to the same version", "%s, of versions %s", text, strings.Join(names, ", "))
	case names[0] != s.version:
		return warn(check, "bring this program and the fleet to the same version", "%s, of version %s; this program is %s", text, names[0], s.version)
	default:
		return ok(check, "%s, version %s", text, names[0])
	}
}
