package taskqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Names that stand for runs in the subjects of what is for all runs.
//
//nolint:gochecknoglobals // constants
var (
	sweepRun = messages.Ref{Tenant: "_", Run: "sweep"}
	lanesRun = messages.Ref{Tenant: "_", Run: "lanes"}
)

// Sweeps asks the workers for what is done for all runs at once. Safe for concurrent use.
type Sweeps struct{ bus *bus.Bus }

// NewSweeps returns the sweeps of a bus.
func NewSweeps(b *bus.Bus) *Sweeps { return &Sweeps{bus: b} }

// tasks are the streams of the queue. Those names have their partitions as runs have.
func (s *Sweeps) tasks() bus.Partitions { return s.bus.Partitions(bus.StreamTasks) }

// ScheduleSweep asks for a sweep now and for one every so often from now on, at least a second. There is one such
// schedule, the one set last.
func (s *Sweeps) ScheduleSweep(ctx context.Context, every time.Duration) error {
	body, err := s.scheduleEvery(ctx, messages.ErrandSweep, sweepRun, every)
	if err != nil {
		return err
	}
	_, err = s.bus.Store(ctx, &nats.Msg{Subject: s.tasks().Subject(sweepRun, sweepRun.WakeSubject()), Data: body, Header: nats.Header{}})
	return err
}

// ScheduleLanes asks for a look for tasks without a lane every so often from now on, at least a second. There is one
// such schedule, the one set last.
func (s *Sweeps) ScheduleLanes(ctx context.Context, every time.Duration) error {
	_, err := s.scheduleEvery(ctx, messages.ErrandLanes, lanesRun, every)
	return err
}

func (s *Sweeps) scheduleEvery(ctx context.Context, errand messages.Errand, run messages.Ref, every time.Duration) (body []byte, err error) {
	if body, err = json.Marshal(messages.Wake{Errand: errand}); err != nil {
		return nil, fmt.Errorf("encode errand: %w", err)
	}
	_, err = s.bus.Store(ctx, &nats.Msg{Subject: s.tasks().Subject(run, "sched."+string(errand)), Data: body, Header: nats.Header{
		bus.HeaderSchedule:   {"@every " + every.String()},
		bus.HeaderScheduleTo: {s.tasks().Subject(run, run.WakeSubject())},
	}})
	return body, err
}

// AskSweep asks the workers for a sweep now, in addition to those that are scheduled.
func (s *Sweeps) AskSweep(ctx context.Context) error {
	body, err := json.Marshal(messages.Wake{Errand: messages.ErrandSweep})
	if err != nil {
		return fmt.Errorf("encode errand: %w", err)
	}
	_, err = s.bus.Store(ctx, &nats.Msg{Subject: s.tasks().Subject(sweepRun, sweepRun.WakeSubject()), Data: body, Header: nats.Header{}})
	return err
}
