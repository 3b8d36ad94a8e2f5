package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// schedules are the requests about schedules.
func (s *Service) schedules() map[string]answerFunc {
	return map[string]answerFunc{
		control.SubjectSchedulePut:    asked(s.putSchedule),
		control.SubjectScheduleGet:    asked(s.getSchedule),
		control.SubjectScheduleList:   asked(s.listSchedules),
		control.SubjectScheduleDelete: asked(s.deleteSchedule),
		control.SubjectSchedulePause:  asked(s.pauseSchedule),
		control.SubjectScheduleResume: asked(s.resumeSchedule),
		control.SubjectScheduleRun:    asked(s.runSchedule),
	}
}

// scheduleProblem is the public form of an error about schedules; nil if it is another.
func scheduleProblem(err error) *messages.Problem {
	switch {
	case errors.Is(err, schedules.ErrNoSchedule):
		return missing(messages.CodeNotFound, schedules.ErrNoSchedule)
	case errors.Is(err, schedules.ErrScheduleMoved):
		return conflict(err.Error())
	default:
		return nil
	}
}

// maxArms bounds how often the next occurrence of a schedule is found anew because somebody else changed it.
const maxArms = 100

// arm sees to it that the stream has the next occurrence of a schedule after a time, and none of one that is paused,
// over or gone. Whoever changes a schedule does it next; whoever dies in between leaves it to the next look at all of
// them. With idle it leaves alone one whose last occurrence has not been taken: who takes that arms it.
//
// Two that arm at once agree, for neither replaces what it has not seen, and both look again whether the schedule is
// still the one that they have armed.
func (s *Service) arm(ctx context.Context, ref messages.ScheduleRef, after time.Time, idle bool) error {
	for range maxArms {
		sc, err := s.stores.schedules.Get(ctx, ref)
		if err != nil && !errors.Is(err, schedules.ErrNoSchedule) {
			return err
		}
		armed, err := s.stores.schedules.Armed(ctx, ref)
		if err != nil {
			return err
		}
		due, ok := nextDue(sc, s.cfg.Controller.Now(), after)
		switch {
		case !ok && armed.Seq == 0, ok && armed.Seq != 0 && armed.Timing == due.Timing && !armed.At.After(due.At), ok && idle && armed.Seq == 0 && armed.Waiting:
			return nil
		case !ok:
			err = s.stores.schedules.Disarm(ctx, ref)
		default:
			err = s.stores.schedules.Arm(ctx, due, armed.Seq)
		}
		if err != nil && !errors.Is(err, schedules.ErrScheduleMoved) {
			return err
		}
	}
	return fmt.Errorf("arm schedule %s: others change it all the time", ref)
}

// nextDue is the next occurrence of a schedule after now and after a time; false: there is none, or no schedule.
func nextDue(sc *messages.Schedule, now, after time.Time) (d messages.Due, ok bool) {
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
	return messages.Due{ScheduleRef: sc.Ref(), Timing: sc.Timing(), At: at}, ok
}

// keepSchedules takes what is due until ctx ends, and looks at all schedules at the start and from time to time: one
// whose next occurrence was lost goes on.
func (s *Service) keepSchedules(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.stores.schedules.Dues(ctx, s.due) })
	group.Go(func() error {
		ticker := time.NewTicker(s.cfg.Sweep)
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

func (s *Service) armAll(ctx context.Context) error {
	refs, err := s.stores.schedules.Names(ctx, "")
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
func (s *Service) goesOn(ctx context.Context, run messages.Ref) (bool, error) {
	last, queued, err := s.find(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	default:
		return queued != nil || last.Head.Phase != record.PhaseFinished, nil
	}
}

func (s *Service) putSchedule(ctx context.Context, req control.SchedulePut) (any, error) {
	sc := &req.Schedule
	if req.Tenant != "" {
		if sc.Tenant != "" && sc.Tenant != req.Tenant {
			return nil, control.Forbidden("schedule.tenant is not the tenant of the request")
		}
		sc.Tenant = req.Tenant
	}
	if who := callerOf(ctx).Who; who != "" {
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
	revision, changed, err := s.stores.schedules.Put(ctx, *sc, req.By, req.IfRevision)
	if err != nil {
		return nil, err
	}
	if err := s.arm(ctx, sc.Ref(), time.Time{}, false); err != nil {
		return nil, err
	}
	return control.ScheduleApplied{Name: sc.Name, Revision: revision, Changed: changed, Next: s.nextOf(sc)}, nil
}

// roomFor refuses a new schedule of a tenant that has too many.
func (s *Service) roomFor(ctx context.Context, ref messages.ScheduleRef) error {
	_, err := s.stores.schedules.Get(ctx, ref)
	if !errors.Is(err, schedules.ErrNoSchedule) {
		return err
	}
	names, err := s.stores.schedules.Names(ctx, ref.Tenant)
	if err == nil && len(names) >= messages.MaxSchedules {
		err = conflict(fmt.Sprintf("the tenant has %d schedules already, which is the most", len(names)))
	}
	return err
}

func (s *Service) nextOf(sc *messages.Schedule) []time.Time {
	c, err := newCalendar(sc)
	if err != nil || sc.Paused {
		return []time.Time{}
	}
	return c.some(s.cfg.Controller.Now())
}

func (s *Service) scheduleStatus(ctx context.Context, sc *messages.Schedule) (*control.ScheduleStatus, error) {
	ledger, _, err := s.stores.schedules.Ledger(ctx, sc.Ref())
	return &control.ScheduleStatus{Schedule: *sc, Next: s.nextOf(sc), Last: ledger.State, Skipped: ledger.Skipped}, err
}

func (s *Service) getSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	if err := req.Check(true); err != nil {
		return nil, err
	}
	sc, err := s.stores.schedules.Get(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	// In this order: what is taken in between is seen as waiting or as the newest that was taken.
	armed, err := s.stores.schedules.Armed(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	ledger, _, err := s.stores.schedules.Ledger(ctx, req.ScheduleRef)
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

func (s *Service) listSchedules(ctx context.Context, req control.ScheduleRequest) (any, error) {
	if err := req.Check(false); err != nil {
		return nil, err
	}
	refs, err := s.stores.schedules.Names(ctx, req.Tenant)
	if err != nil {
		return nil, err
	}
	list := control.ScheduleList{Schedules: []control.ScheduleSummary{}}
	for _, ref := range refs {
		sc, err := s.stores.schedules.Get(ctx, ref)
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

func (s *Service) deleteSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	was, err := s.getSchedule(ctx, req)
	if err == nil {
		err = s.stores.schedules.Delete(ctx, was.(*control.ScheduleStatus).Schedule.Ref()) //nolint:forcetypeassert // it is one
	}
	return was, err
}

func (s *Service) pauseSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	return s.holdSchedule(ctx, req, true)
}

func (s *Service) resumeSchedule(ctx context.Context, req control.ScheduleRequest) (any, error) {
	return s.holdSchedule(ctx, req, false)
}

func (s *Service) holdSchedule(ctx context.Context, req control.ScheduleRequest, hold bool) (any, error) {
	if err := req.Check(true); err != nil {
		return nil, err
	}
	sc, err := s.stores.schedules.Get(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	revision := sc.Revision
	sc.Paused = hold
	if sc.Revision, _, err = s.stores.schedules.Put(ctx, *sc, req.By, &revision); err != nil {
		return nil, err
	}
	if err := s.arm(ctx, req.ScheduleRef, time.Time{}, false); err != nil {
		return nil, err
	}
	return s.scheduleStatus(ctx, sc)
}

func (s *Service) runSchedule(ctx context.Context, req control.ScheduleRun) (any, error) {
	if err := (&control.ScheduleRequest{ScheduleRef: req.ScheduleRef}).Check(true); err != nil {
		return nil, err
	}
	sc, err := s.stores.schedules.Get(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Controller.Now()
	task := sc.TaskAt(now)
	delete(task.Labels, messages.LabelScheduledFor) // nobody planned it
	if task.ID = req.ID; task.ID == "" {
		task.ID = s.cfg.Controller.NewID()
	}
	ledger, revision, err := s.stores.schedules.Ledger(ctx, req.ScheduleRef)
	if err != nil {
		return nil, err
	}
	st, err := s.begin(ctx, sc, occurrence{task: task, at: now}, ledger, revision)
	switch {
	case err != nil:
		return nil, err
	case st.Outcome != control.OutcomeSubmitted:
		return nil, conflict(st.Reason)
	default:
		return control.SubmitReply{ID: task.ID}, nil
	}
}
