// Package schedules answers the requests about schedules, and takes their occurrences when they are due.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Schedules works with.
type Config struct {
	Store     *schedules.Store
	Catalog   *catalog.Catalog
	Runs      *runs.Runs
	Admission *admission.Admission
	Now       func() time.Time
	NewID     func() string // of a run that a person asks for
	Log       *slog.Logger

	Every time.Duration // between two looks at all schedules
}

// Schedules answers the requests about schedules, and takes their occurrences.
type Schedules struct{ cfg Config }

// New returns Schedules.
func New(cfg Config) *Schedules { return &Schedules{cfg} }

// Handlers are the requests about schedules.
func (s *Schedules) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectSchedulePut:    request.Read(s.putSchedule),
		control.SubjectScheduleGet:    request.Read(s.getSchedule),
		control.SubjectScheduleList:   request.Read(s.listSchedules),
		control.SubjectScheduleDelete: request.Read(s.deleteSchedule),
		control.SubjectSchedulePause:  request.Read(s.pauseSchedule),
		control.SubjectScheduleResume: request.Read(s.resumeSchedule),
		control.SubjectScheduleRun:    request.Read(s.runSchedule),
	}
}

// maxArms bounds how often the next occurrence of a schedule is computed again because another dispatcher changed it.
const maxArms = 100

// arm makes sure that the stream has the next occurrence of a schedule after a time, and none of one that is paused,
// over or gone. A request that changes a schedule arms it next; a dispatcher that dies in between leaves it to the next look at
// all of them. With idle it leaves alone one whose last occurrence has not been taken: the dispatcher that takes that arms it.
//
// Two that arm at once agree, for neither replaces what it has not seen, and both look again whether the schedule is
// still the one that they have armed.
func (s *Schedules) arm(ctx context.Context, ref control.ScheduleRef, after time.Time, idle bool) error {
	for range maxArms {
		sc, err := s.cfg.Store.Get(ctx, ref)
		if err != nil && !errors.Is(err, schedules.ErrNoSchedule) {
			return err
		}
		armed, err := s.cfg.Store.Armed(ctx, ref)
		if err != nil {
			return err
		}
		due, ok := nextDue(sc, s.cfg.Now(), after)
		switch {
		case !ok && armed.Seq == 0, ok && armed.Seq != 0 && armed.Timing == due.Timing && !armed.At.After(due.At), ok && idle && armed.Seq == 0 && armed.Waiting:
			return nil
		case !ok:
			err = s.cfg.Store.Disarm(ctx, ref)
		default:
			err = s.cfg.Store.Arm(ctx, due, armed.Seq)
		}
		if err != nil && !errors.Is(err, schedules.ErrScheduleMoved) {
			return err
		}
	}
	return fmt.Errorf("arm schedule %s: other clients keep changing it; try again", ref)
}

// nextDue is the next occurrence of a schedule after now and after a time; false: there is none, or no schedule.
func nextDue(sc *control.Schedule, now, after time.Time) (d control.Due, ok bool) {
	if sc == nil || sc.Paused {
		return d, false
	}
	c, err := newCalendar(sc)
	if err != nil { // it was checked when it was stored
		return d, false
	}
	if after.Before(now) {
		after = now
	}
	at, ok := c.next(after)
	return control.Due{ScheduleRef: sc.Ref(), Timing: sc.Timing(), At: at}, ok
}

// Run takes what is due until ctx ends, and looks at all schedules at the start and from time to time: one
// whose next occurrence was lost continues.
func (s *Schedules) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.cfg.Store.Dues(ctx, s.due) })
	group.Go(func() error {
		ticker := time.NewTicker(s.cfg.Every)
		defer ticker.Stop()
		for {
			if err := s.armAll(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "look at the schedules", "err", err)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

func (s *Schedules) armAll(ctx context.Context) error {
	refs, err := s.cfg.Store.Names(ctx, "")
	if err != nil {
		return err
	}
	var failed error
	for _, ref := range refs {
		if err := s.arm(ctx, ref, time.Time{}, true); err != nil {
			failed = err // one that cannot be read does not keep the others from it
		}
	}
	return failed
}

// goesOn reports whether a run is queued, or has begun and not ended.
func (s *Schedules) goesOn(ctx context.Context, run messages.Ref) (bool, error) {
	last, queued, err := s.cfg.Runs.Find(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	default:
		return queued != nil || last.Head.Phase != record.PhaseFinished, nil
	}
}

func (s *Schedules) putSchedule(ctx context.Context, req control.SchedulePut) (any, error) {
	sc := &req.Schedule
	if req.Tenant != "" {
		if sc.Tenant != "" && sc.Tenant != req.Tenant {
			return nil, control.Forbidden("schedule.tenant is not the tenant of the request")
		}
		sc.Tenant = req.Tenant
	}
	if who := request.CallerOf(ctx).Who; who != "" {
		sc.Task.By = who // whatever it says itself
	}
	sc.SetDefaults()
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	if _, err := newCalendar(sc); err != nil {
		return nil, err
	}
	if err := (&control.ScheduleRequest{ScheduleRef: sc.Ref(), By: req.By}).Check(true); err != nil {
		return nil, err
	}
	if _, err := s.cfg.Catalog.Agent(ctx, sc.Task.Agent); err != nil {
		return nil, err
	}
	if err := s.roomFor(ctx, sc.Ref()); err != nil {
		return nil, err
	}
	if err := s.cfg.Admission.Stored(ctx, sc.TaskAt(s.cfg.Now())); err != nil { // from now on the collector keeps it for the schedule
		return nil, strict.Under("schedule.task", err)
	}
	revision, changed, err := s.cfg.Store.Put(ctx, *sc, req.By, req.IfRevision)
	if err != nil {
		return nil, err
	}
	if err := s.arm(ctx, sc.Ref(), time.Time{}, false); err != nil {
		return nil, err
	}
	return control.ScheduleApplied{Name: sc.Name, Revision: revision, Changed: changed, Next: s.nextOf(sc)}, nil
}

// roomFor refuses a new schedule of a tenant that has too many.
func (s *Schedules) roomFor(ctx context.Context, ref control.ScheduleRef) error {
	_, err := s.cfg.Store.Get(ctx, ref)
	if !errors.Is(err, schedules.ErrNoSchedule) {
		return err
	}
	names, err := s.cfg.Store.Names(ctx, ref.Tenant)
	if err == nil && len(names) >= control.MaxSchedules {
		err = request.Conflict(fmt.Sprintf("the tenant has %d schedules already, which is the most", len(names)))
	}
	return err
}

func (s *Schedules) nextOf(sc *control.Schedule) []time.Time {
	c, err := newCalendar(sc)
	if err != nil || sc.Paused {
		return []time.Time{}
	}
	return c.some(s.cfg.Now())
}

func (s *Schedules) scheduleStatus(ctx context.Context, sc *control.Schedule) (*control.ScheduleStatus, error) {
	ledger, _, err := s.cfg.Store.Ledger(ctx, sc.Ref())
	return &control.ScheduleStatus{Schedule: *sc, Next: s.nextOf(sc), Last: ledger.State, Skipped: ledger.Skipped}, err
}

func (s *Schedules) getSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	if err := req.Check(true); err != nil {
		return nil, err
	}
	sc, err := s.cfg.Store.Get(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	// In this order: what is taken in between is seen as waiting or as the newest that was taken.
	armed, err := s.cfg.Store.Armed(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	ledger, _, err := s.cfg.Store.Ledger(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	st := &control.ScheduleStatus{Schedule: *sc, Next: s.nextOf(sc), Last: ledger.State}
	if armed.Seq != 0 && !armed.Waiting && armed.Timing == sc.Timing() { // what lies before the next one does not come
		if err := s.passOver(ctx, sc, armed.At, &ledger); err != nil {
			return nil, err
		}
	}
	st.Skipped = ledger.Skipped[max(0, len(ledger.Skipped)-control.MaxSkipped):]
	return st, nil
}

func (s *Schedules) listSchedules(ctx context.Context, req control.ScheduleRequest) (any, error) {
	if err := req.Check(false); err != nil {
		return nil, err
	}
	refs, err := s.cfg.Store.Names(ctx, req.Tenant)
	if err != nil {
		return nil, err
	}
	list := control.ScheduleList{Schedules: []control.ScheduleSummary{}}
	for _, ref := range refs {
		sc, err := s.cfg.Store.Get(ctx, ref)
		if errors.Is(err, schedules.ErrNoSchedule) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st, err := s.scheduleStatus(ctx, sc)
		if err != nil {
			return nil, err
		}
		sum := control.ScheduleSummary{
			Name: sc.Name, Cron: sc.Cron, TimeZone: sc.TimeZone, Every: sc.Every, Agent: sc.Task.Agent, Paused: sc.Paused, Last: st.Last,
		}
		if len(st.Next) > 0 {
			sum.Next = &st.Next[0]
		}
		list.Schedules = append(list.Schedules, sum)
	}
	return list, nil
}

func (s *Schedules) deleteSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	was, err := s.getSchedule(ctx, req)
	if err == nil {
		err = s.cfg.Store.Delete(ctx, was.(*control.ScheduleStatus).Schedule.Ref()) //nolint:forcetypeassert // it is one
	}
	return was, err
}

func (s *Schedules) pauseSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	return s.holdSchedule(ctx, req, true)
}

func (s *Schedules) resumeSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	return s.holdSchedule(ctx, req, false)
}

func (s *Schedules) holdSchedule(ctx context.Context, req control.ScheduleRequest, hold bool) (any, error) {
	if err := req.Check(true); err != nil {
		return nil, err
	}
	sc, err := s.cfg.Store.Get(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	revision := sc.Revision
	sc.Paused = hold
	if sc.Revision, _, err = s.cfg.Store.Put(ctx, *sc, req.By, &revision); err != nil {
		return nil, err
	}
	if err := s.arm(ctx, req.ScheduleRef, time.Time{}, false); err != nil {
		return nil, err
	}
	return s.scheduleStatus(ctx, sc)
}

func (s *Schedules) runSchedule(ctx context.Context, req control.ScheduleRun) (any, error) {
	if err := (&control.ScheduleRequest{ScheduleRef: req.ScheduleRef}).Check(true); err != nil {
		return nil, err
	}
	sc, err := s.cfg.Store.Get(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	task := sc.TaskAt(now)
	delete(task.Labels, control.LabelScheduledFor) // it was not planned
	if task.ID = req.ID; task.ID == "" {
		task.ID = s.cfg.NewID()
	}
	ledger, revision, err := s.cfg.Store.Ledger(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	st, err := s.begin(ctx, sc, occurrence{task: task, at: now}, ledger, revision)
	switch {
	case err != nil:
		return nil, err
	case st.Outcome != control.OutcomeSubmitted:
		return nil, request.Conflict(st.Reason)
	default:
		return control.SubmitReply{ID: task.ID}, nil
	}
}
