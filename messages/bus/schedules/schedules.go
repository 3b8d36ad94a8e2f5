package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	schedulesPrefix = "$KV." + bus.BucketSchedules + "."
	statePrefix     = schedulesPrefix + "state."
)

var (
	// ErrNoSchedule means that there is no such schedule.
	ErrNoSchedule = control.ErrNoSchedule
	// ErrScheduleMoved means that another client has changed the schedule, or its outcome, in the meantime.
	ErrScheduleMoved = errors.New("the schedule has changed meanwhile")

	errBadSchedule = errors.New("unreadable schedule")
)

func scheduleKey(ref control.ScheduleRef) string { return ref.Tenant + "." + ref.Name }

// Get reads a schedule, with its revision, from the bucket's leader; ErrNoSchedule.
func (sc *Store) Get(ctx context.Context, ref control.ScheduleRef) (*control.Schedule, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	m, ok, err := bus.SchedulesBucket.At(ctx, sc.bus, scheduleKey(ref), 0)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read schedule %s: %w", ref, err)
	case !ok || bus.IsRemoved(m):
		return nil, ErrNoSchedule
	}
	var s control.Schedule
	err = strict.Decode(m.Data, &s)
	if err == nil {
		s.SetDefaults()
		err = s.Validate()
	}
	if err == nil && s.Ref() != ref {
		err = errors.New("it names another")
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %s", errBadSchedule, ref, err.Error()) // not wrapped: it is no field of the request
	}
	s.Revision = m.Seq
	return &s, nil
}

// Put stores a schedule; Arm must follow. With ifRevision it is done only if this is the newest revision, 0 for
// none; else the error is messages.ErrRevision.
func (sc *Store) Put(ctx context.Context, s control.Schedule, by string, ifRevision *uint64) (revision uint64, changed bool, err error) {
	s.SetDefaults()
	s.Revision = 0 // the bucket's to give
	if err := s.Validate(); err != nil {
		return 0, false, err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return 0, false, fmt.Errorf("encode schedule: %w", err)
	}
	c, changed, err := bus.SchedulesBucket.Apply(ctx, sc.bus, bus.Edit{Name: scheduleKey(s.Ref()), Body: body, By: by, IfRevision: ifRevision})
	if err != nil {
		return 0, false, fmt.Errorf("store schedule %s: %w", s.Ref(), err)
	}
	return c.Revision, changed, nil
}

// Delete removes a schedule, its history, and what it would do next.
func (sc *Store) Delete(ctx context.Context, ref control.ScheduleRef) error {
	if err := ref.Check(); err != nil {
		return err
	}
	tasks := sc.tasks().Name(partition)
	for _, p := range []struct{ stream, subject string }{
		{bus.StreamSchedules, schedulesPrefix + scheduleKey(ref)}, // first: without it the others do nothing
		{tasks, ref.NextSubject()},
		{tasks, ref.DueSubject()},
		{bus.StreamSchedules, statePrefix + scheduleKey(ref)},
	} {
		if err := sc.bus.Stream(p.stream).Clear(ctx, p.subject); err != nil {
			return fmt.Errorf("delete schedule %s: %w", ref, err)
		}
	}
	return nil
}

// Names are the schedules of a tenant, or of all without one, by name.
func (sc *Store) Names(ctx context.Context, tenant string) ([]control.ScheduleRef, error) {
	filter := tenant
	if filter == "" {
		filter = "*"
	} else if !strict.ValidToken(tenant) {
		return nil, &messages.FieldError{Field: "tenant", Reason: "must be 1 to 64 of A-Z a-z 0-9 _ -"}
	}
	var refs []control.ScheduleRef
	for subject, err := range sc.bus.Stream(bus.StreamSchedules).Subjects(ctx, schedulesPrefix+filter+".*") {
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		tenant, name, _ := strings.Cut(strings.TrimPrefix(subject, schedulesPrefix), ".")
		if ref := (control.ScheduleRef{Tenant: tenant, Name: name}); ref.Check() == nil {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// Armed is the next occurrence of a schedule as the stream has it.
type Armed struct {
	control.Due
	Seq     uint64 // 0: there is none
	Waiting bool   // an occurrence that was due has not been taken
}

// Armed reads what a schedule does next. The stream's leader answers.
func (sc *Store) Armed(ctx context.Context, ref control.ScheduleRef) (a Armed, err error) {
	// In this order: what fires in between is seen as due.
	m, ok, err := sc.tasks().At(partition).Get(ctx, bus.Lookup{Last: ref.NextSubject()})
	if err != nil {
		return a, fmt.Errorf("read what schedule %s does next: %w", ref, err)
	}
	if ok {
		a.Seq = m.Seq
		if strict.Decode(m.Data, &a.Due) != nil || m.Header.Get(bus.HeaderScheduleTo) != sc.tasks().SubjectIn(partition, ref.DueSubject()) {
			a.Due = control.Due{} // nothing that would ever be due: without a timing it is replaced
		}
	}
	if _, a.Waiting, err = sc.tasks().At(partition).Get(ctx, bus.Lookup{Last: ref.DueSubject()}); err != nil {
		return a, fmt.Errorf("read what schedule %s has to do: %w", ref, err)
	}
	return a, nil
}

// Arm has the stream publish an occurrence when it is due, in place of the one with a sequence, 0 for none;
// ErrScheduleMoved. An older occurrence that has not been taken by then is removed.
func (sc *Store) Arm(ctx context.Context, d control.Due, seq uint64) error {
	if err := d.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode occurrence: %w", err)
	}
	m := &nats.Msg{Subject: sc.tasks().SubjectIn(partition, d.NextSubject()), Data: body, Header: nats.Header{
		bus.HeaderSchedule:             {"@at " + d.At.UTC().Format(time.RFC3339Nano)},
		bus.HeaderScheduleTo:           {sc.tasks().SubjectIn(partition, d.DueSubject())},
		jetstream.ScheduleRollupHeader: {jetstream.MsgRollupSubject},
	}}
	bus.Expect(m, seq)
	_, err = sc.bus.Store(ctx, m)
	switch {
	case bus.Refused(err, bus.CodeWrongLast):
		return ErrScheduleMoved
	case err != nil:
		return fmt.Errorf("arm schedule %s: %w", d.ScheduleRef, err)
	}
	return nil
}

// Disarm takes away what a schedule does next.
func (sc *Store) Disarm(ctx context.Context, ref control.ScheduleRef) error {
	return sc.tasks().At(partition).Clear(ctx, ref.NextSubject())
}

const (
	consumerSchedules = "schedules"
	duesAtOnce        = 8
	// How long an occurrence waits that a killed dispatcher had; the one that has it says so more often.
	duesAckWait  = 5 * time.Second
	duesPause    = time.Second
	maxDuesPause = 30 * time.Second
	takeTimeout  = 20 * time.Second
)

// Dues hands each occurrence that is due to take, until ctx ends. One consumer is shared by all dispatchers; one whose
// take failed comes again, unless the next occurrence of its schedule has come meanwhile.
func (sc *Store) Dues(ctx context.Context, take func(context.Context, control.Due) error) error {
	p := bus.Puller{
		Bus: sc.bus, Stream: sc.tasks().Name(partition), Most: duesAtOnce,
		Config: jetstream.ConsumerConfig{
			Durable: consumerSchedules, FilterSubject: "sched.due.>",
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: duesAckWait, MaxDeliver: -1,
		},
		Take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
			var taking errgroup.Group
			taking.SetLimit(duesAtOnce)
			for m := range msgs {
				taking.Go(func() error {
					sc.takeDue(ctx, m, take)
					return nil
				})
			}
			_ = taking.Wait()
			return true
		},
	}
	return p.Run(ctx)
}

func (sc *Store) takeDue(ctx context.Context, m jetstream.Msg, take func(context.Context, control.Due) error) {
	var d control.Due
	err := strict.Decode(m.Data(), &d)
	if err != nil || d.Check() != nil || m.Subject() != d.DueSubject() || m.Headers().Get(jetstream.SchedulerHeader) != d.NextSubject() {
		sc.bus.Foreign()
		_ = m.Ack() // it was not published by a schedule
		return
	}
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	done := sc.keepDue(ctx, m)
	err = take(ctx, d)
	done()
	switch {
	case err == nil || errors.Is(err, errBadSchedule):
		if err != nil {
			sc.bus.Log().WarnContext(ctx, "schedule skipped", "err", err)
		}
		err = m.Ack()
	default:
		if !errors.Is(err, context.Canceled) {
			sc.bus.Log().WarnContext(ctx, "run a schedule", "tenant", d.Tenant, "schedule", d.Name, "err", err)
		}
		wait := duesPause
		if meta, err := m.Metadata(); err == nil {
			wait = min(duesPause*time.Duration(meta.NumDelivered), maxDuesPause)
		}
		err = m.NakWithDelay(wait) // without it the occurrence comes again after the ack wait
	}
	if err != nil {
		sc.bus.Log().DebugContext(ctx, "ack an occurrence", "err", err)
	}
}

// keepDue keeps an occurrence for this dispatcher until done, which waits, is called.
func (sc *Store) keepDue(ctx context.Context, m jetstream.Msg) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for bus.Pause(ctx, duesAckWait/3) == nil {
			if err := m.InProgress(); err != nil {
				sc.bus.Log().DebugContext(ctx, "keep an occurrence", "err", err)
			}
		}
	})
	return func() { cancel(); keeping.Wait() }
}
