package bus

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
	"github.com/longshore-run/longshore/messages/strict"
)

// BucketSchedules has the schedules, as <tenant>.<name>, and what became of each, as state.<tenant>.<name>.
const (
	BucketSchedules = "SCHEDULES"

	streamSchedules = "KV_" + BucketSchedules
	schedulesPrefix = "$KV." + BucketSchedules + "."
	statePrefix     = schedulesPrefix + "state."
)

var (
	// ErrNoSchedule means that there is no such schedule.
	ErrNoSchedule = errors.New("no such schedule")
	// ErrScheduleMoved means that somebody else has changed the schedule, or what became of it, meanwhile.
	ErrScheduleMoved = errors.New("the schedule has changed meanwhile")

	errBadSchedule = errors.New("unreadable schedule")

	schedulesBucket = bucket{streamSchedules, schedulesPrefix, false} //nolint:gochecknoglobals // a constant
)

// schedules is the bucket.
func schedules(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = streamSchedules, "Schedules of tenants, every revision."
	c.Subjects = []string{schedulesPrefix + ">"}
	c.MaxMsgsPerSubject = agentHistory
	c.DenyDelete, c.AllowRollup, c.Discard = true, true, jetstream.DiscardNew
	return c
}

func scheduleKey(ref messages.ScheduleRef) string { return ref.Tenant + "." + ref.Name }

// Schedule reads a schedule, with its revision, from the bucket's leader; ErrNoSchedule.
func (b *Bus) Schedule(ctx context.Context, ref messages.ScheduleRef) (*messages.Schedule, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	m, ok, err := b.at(ctx, schedulesBucket, scheduleKey(ref), 0)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read schedule %s: %w", ref, err)
	case !ok || isRemoved(m):
		return nil, ErrNoSchedule
	}
	var s messages.Schedule
	err = strict.Decode(m.data, &s)
	if err == nil {
		s.SetDefaults()
		err = s.Validate()
	}
	if err == nil && s.Ref() != ref {
		err = errors.New("it names another")
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %v", errBadSchedule, ref, err) //nolint:errorlint // not a field of who asks
	}
	s.Revision = m.seq
	return &s, nil
}

// PutSchedule stores a schedule; Arm must follow. With ifRevision it is done only if this is the newest revision, 0 for
// none; else the error is messages.ErrRevision.
func (b *Bus) PutSchedule(ctx context.Context, s messages.Schedule, by string, ifRevision *uint64) (revision uint64, changed bool, err error) {
	s.SetDefaults()
	s.Revision = 0 // the bucket's to give
	if err := s.Validate(); err != nil {
		return 0, false, err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return 0, false, fmt.Errorf("encode schedule: %w", err)
	}
	c, changed, err := b.apply(ctx, schedulesBucket, edit{scheduleKey(s.Ref()), body, by, ifRevision})
	if err != nil {
		return 0, false, fmt.Errorf("store schedule %s: %w", s.Ref(), err)
	}
	return c.Revision, changed, nil
}

// DeleteSchedule removes a schedule, its history, and what it would do next.
func (b *Bus) DeleteSchedule(ctx context.Context, ref messages.ScheduleRef) error {
	if err := ref.Check(); err != nil {
		return err
	}
	for _, p := range []struct{ stream, subject string }{
		{streamSchedules, schedulesPrefix + scheduleKey(ref)}, // first: without it the others do nothing
		{StreamTasks, ref.NextSubject()},
		{StreamTasks, ref.DueSubject()},
		{streamSchedules, statePrefix + scheduleKey(ref)},
	} {
		if err := b.purge(ctx, p.stream, p.subject); err != nil {
			return fmt.Errorf("delete schedule %s: %w", ref, err)
		}
	}
	return nil
}

// ScheduleNames are the schedules of a tenant, or of all without one, by name.
func (b *Bus) ScheduleNames(ctx context.Context, tenant string) ([]messages.ScheduleRef, error) {
	filter := tenant
	if filter == "" {
		filter = "*"
	} else if !strict.ValidToken(tenant) {
		return nil, &messages.FieldError{Field: "tenant", Reason: "must be 1 to 64 of A-Z a-z 0-9 _ -"}
	}
	var refs []messages.ScheduleRef
	for subject, err := range b.subjects(ctx, streamSchedules, schedulesPrefix+filter+".*") {
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		tenant, name, _ := strings.Cut(strings.TrimPrefix(subject, schedulesPrefix), ".")
		if ref := (messages.ScheduleRef{Tenant: tenant, Name: name}); ref.Check() == nil {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// Armed is the next occurrence of a schedule as the stream has it.
type Armed struct {
	messages.Due
	Seq     uint64 // 0: there is none
	Waiting bool   // an occurrence that was due has not been taken
}

// Armed reads what a schedule does next. The stream's leader answers.
func (b *Bus) Armed(ctx context.Context, ref messages.ScheduleRef) (a Armed, err error) {
	// In this order: what fires in between is seen as due.
	m, ok, err := b.get(ctx, StreamTasks, lookup{Last: ref.NextSubject()})
	if err != nil {
		return a, fmt.Errorf("read what schedule %s does next: %w", ref, err)
	}
	if ok {
		a.Seq = m.seq
		if strict.Decode(m.data, &a.Due) != nil || m.header.Get(headerScheduleTo) != ref.DueSubject() {
			a.Due = messages.Due{} // nothing that would ever be due: without a timing it is replaced
		}
	}
	if _, a.Waiting, err = b.get(ctx, StreamTasks, lookup{Last: ref.DueSubject()}); err != nil {
		return a, fmt.Errorf("read what schedule %s has to do: %w", ref, err)
	}
	return a, nil
}

// Arm has the stream publish an occurrence when it is due, in place of the one with a sequence, 0 for none;
// ErrScheduleMoved. An older occurrence that nobody has taken by then is removed.
func (b *Bus) Arm(ctx context.Context, d messages.Due, seq uint64) error {
	if err := d.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode occurrence: %w", err)
	}
	m := &nats.Msg{Subject: d.NextSubject(), Data: body, Header: nats.Header{
		headerSchedule:                 {"@at " + d.At.UTC().Format(time.RFC3339Nano)},
		headerScheduleTo:               {d.DueSubject()},
		jetstream.ScheduleRollupHeader: {jetstream.MsgRollupSubject},
	}}
	expect(m, seq)
	_, err = b.store(ctx, m)
	switch {
	case refused(err, codeWrongLast):
		return ErrScheduleMoved
	case err != nil:
		return fmt.Errorf("arm schedule %s: %w", d.ScheduleRef, err)
	}
	return nil
}

// Disarm takes away what a schedule does next.
func (b *Bus) Disarm(ctx context.Context, ref messages.ScheduleRef) error {
	return b.purge(ctx, StreamTasks, ref.NextSubject())
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
func (b *Bus) Dues(ctx context.Context, take func(context.Context, messages.Due) error) error {
	p := puller{
		bus: b, stream: StreamTasks, most: duesAtOnce,
		config: jetstream.ConsumerConfig{
			Durable: consumerSchedules, FilterSubject: "sched.due.>",
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: duesAckWait, MaxDeliver: -1,
		},
		take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
			var taking errgroup.Group
			taking.SetLimit(duesAtOnce)
			for m := range msgs {
				taking.Go(func() error {
					b.takeDue(ctx, m, take)
					return nil
				})
			}
			_ = taking.Wait()
			return true
		},
	}
	return p.run(ctx)
}

func (b *Bus) takeDue(ctx context.Context, m jetstream.Msg, take func(context.Context, messages.Due) error) {
	var d messages.Due
	err := strict.Decode(m.Data(), &d)
	if err != nil || d.Check() != nil || m.Subject() != d.DueSubject() || m.Headers().Get(jetstream.SchedulerHeader) != d.NextSubject() {
		b.skipped.Add(1)
		_ = m.Ack() // whoever published it is none of us
		return
	}
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	done := b.keepDue(ctx, m)
	err = take(ctx, d)
	done()
	switch {
	case err == nil || errors.Is(err, errBadSchedule):
		if err != nil {
			b.log.WarnContext(ctx, "schedule skipped", "err", err)
		}
		err = m.Ack()
	default:
		if !errors.Is(err, context.Canceled) {
			b.log.WarnContext(ctx, "run a schedule", "tenant", d.Tenant, "schedule", d.Name, "err", err)
		}
		wait := duesPause
		if meta, err := m.Metadata(); err == nil {
			wait = min(duesPause*time.Duration(meta.NumDelivered), maxDuesPause)
		}
		err = m.NakWithDelay(wait) // without it the occurrence comes again after the ack wait
	}
	if err != nil {
		b.log.DebugContext(ctx, "ack an occurrence", "err", err)
	}
}

// keepDue keeps an occurrence for this dispatcher until done, which waits, is called.
func (b *Bus) keepDue(ctx context.Context, m jetstream.Msg) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for pause(ctx, duesAckWait/3) == nil {
			if err := m.InProgress(); err != nil {
				b.log.DebugContext(ctx, "keep an occurrence", "err", err)
			}
		}
	})
	return func() { cancel(); keeping.Wait() }
}
