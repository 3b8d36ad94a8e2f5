package dispatcher

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

var (
	// ErrNoSchedule means that there is no such schedule.
	ErrNoSchedule = control.ErrNoSchedule
	// ErrNotRun means that a schedule was not run now, as its policy says.
	ErrNotRun = control.ErrNotRun
)

// Put stores a schedule and tells when it comes next. What is so already makes no new revision. With ifRevision
// it is done only if this is the newest revision, 0 for none; else the error is ErrRevision.
func (of Schedules) Put(ctx context.Context, s control.Schedule, by string, ifRevision *uint64) (control.ScheduleApplied, error) {
	var out control.ScheduleApplied
	err := of.client.request(ctx, control.SubjectSchedulePut, control.SchedulePut{Schedule: s, IfRevision: ifRevision, By: by}, &out)
	if ifRevision != nil {
		err = conflictAs(err, ErrRevision)
	}
	return out, err
}

// List returns the schedules of a tenant by name, a thousand at most, without their tasks.
func (of Schedules) List(ctx context.Context, tenant string) ([]control.ScheduleSummary, error) {
	var list control.ScheduleList
	err := of.client.request(ctx, control.SubjectScheduleList, control.ScheduleRequest{ScheduleRef: control.ScheduleRef{Tenant: tenant}}, &list)
	return list.Schedules, err
}

// Get returns a schedule, when it comes next, and the outcome of its last occurrence; ErrNoSchedule.
func (of Schedules) Get(ctx context.Context, ref control.ScheduleRef) (*control.ScheduleStatus, error) {
	return of.client.schedule(ctx, control.SubjectScheduleGet, ref, "")
}

// Delete removes a schedule and its history, and returns what it was. Its runs continue.
func (of Schedules) Delete(ctx context.Context, ref control.ScheduleRef) (*control.ScheduleStatus, error) {
	return of.client.schedule(ctx, control.SubjectScheduleDelete, ref, "")
}

// Pause keeps a schedule from submitting anything until it is resumed; its runs continue.
func (of Schedules) Pause(ctx context.Context, ref control.ScheduleRef, by string) (*control.ScheduleStatus, error) {
	return of.client.schedule(ctx, control.SubjectSchedulePause, ref, by)
}

// Resume lets a schedule continue with its next occurrence. What came while it was paused is not made up for.
func (of Schedules) Resume(ctx context.Context, ref control.ScheduleRef, by string) (*control.ScheduleStatus, error) {
	return of.client.schedule(ctx, control.SubjectScheduleResume, ref, by)
}

// Run submits the task of a schedule now, also while it is paused. ErrNotRun: its last run is still running, and its
// policy is to skip then; or the task was refused.
func (of Schedules) Run(ctx context.Context, ref control.ScheduleRef) (messages.Ref, error) {
	req := control.ScheduleRun{ScheduleRef: ref, ID: messages.NewID(time.Now())} // so that a lost answer leaves one run
	var reply control.SubmitReply
	err := of.client.request(ctx, control.SubjectScheduleRun, req, &reply)
	return messages.Ref{Tenant: ref.Tenant, Run: reply.ID}, err
}

func (c *Client) schedule(ctx context.Context, subject string, ref control.ScheduleRef, by string) (*control.ScheduleStatus, error) {
	return ask[control.ScheduleStatus](ctx, c, subject, control.ScheduleRequest{ScheduleRef: ref, By: by})
}
