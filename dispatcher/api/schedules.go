package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// scheduleOperations are those about schedules.
func scheduleOperations() []operation {
	by := []parameter{{name: headerBy, text: "Who makes the change; it is kept with it."}}
	one := "/v1/schedules/{name}"
	return []operation{
		{
			method: "GET", path: "/v1/schedules", id: "listSchedules", needs: auth.Read, tag: "schedules", summary: "List the schedules, by name",
			reply: messages.ScheduleList{}, answer: listSchedules,
		},
		{
			method: "GET", path: one, id: "getSchedule", needs: auth.Read, tag: "schedules", summary: "A schedule, its next occurrences and the last one",
			reply: messages.ScheduleStatus{}, answer: aSchedule((*dispatcher.Client).Schedule),
		},
		{
			method: "PUT", path: one, id: "putSchedule", needs: auth.Operate, tag: "schedules", summary: "Store a schedule",
			text:    "The task is submitted at each occurrence, as a run whose id is the name of the schedule and the time.",
			headers: by, query: []parameter{{name: "ifRevision", text: "Only if this is the newest; 0: only if there is none.", kind: "integer"}},
			body: messages.Schedule{}, reply: messages.ScheduleApplied{}, answer: putSchedule,
		},
		{
			method: "DELETE", path: one, id: "deleteSchedule", needs: auth.Operate, tag: "schedules", summary: "Remove a schedule",
			text: "Its runs go on.", reply: messages.ScheduleStatus{}, answer: aSchedule((*dispatcher.Client).DeleteSchedule),
		},
		{
			method: "POST", path: one + "/pause", id: "pauseSchedule", needs: auth.Operate, tag: "schedules", summary: "Submit nothing until it is resumed",
			headers: by, reply: messages.ScheduleStatus{}, answer: heldSchedule((*dispatcher.Client).PauseSchedule),
		},
		{
			method: "POST", path: one + "/resume", id: "resumeSchedule", needs: auth.Operate, tag: "schedules", summary: "Go on with the next occurrence",
			headers: by, reply: messages.ScheduleStatus{}, answer: heldSchedule((*dispatcher.Client).ResumeSchedule),
		},
		{
			method: "POST", path: one + "/run", id: "runSchedule", needs: auth.Operate, tag: "schedules", summary: "Submit the task of a schedule now",
			text:  "Also while it is paused; while its last run goes on, what overlap says.",
			reply: Submitted{}, status: http.StatusAccepted, answer: runSchedule,
		},
	}
}

// schedule is the schedule of the path.
func (q *query) schedule() (ref messages.ScheduleRef, err error) {
	if ref.Tenant, err = q.tenant(); err != nil {
		return ref, err
	}
	ref.Name = q.r.PathValue("name")
	return ref, ref.Check()
}

// scheduleError makes a schedule that is asked for and unknown something that is not found.
func scheduleError(err error) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoSchedule):
		return problemf(http.StatusNotFound, messages.CodeNotFound, err.Error())
	case errors.Is(err, dispatcher.ErrNotRun):
		return problemf(http.StatusConflict, messages.CodeConflict, err.Error())
	default:
		return err
	}
}

func listSchedules(ctx context.Context, q *query) (any, error) {
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	list, err := q.api.cfg.Client.Schedules(ctx, tenant)
	return messages.ScheduleList{Schedules: list}, err
}

func aSchedule(ask func(*dispatcher.Client, context.Context, messages.ScheduleRef) (*messages.ScheduleStatus, error)) func(context.Context, *query) (any, error) {
	return func(ctx context.Context, q *query) (any, error) {
		ref, err := q.schedule()
		if err != nil {
			return nil, err
		}
		st, err := ask(q.api.cfg.Client, ctx, ref)
		return st, scheduleError(err)
	}
}

func heldSchedule(ask func(*dispatcher.Client, context.Context, messages.ScheduleRef, string) (*messages.ScheduleStatus, error)) func(context.Context, *query) (any, error) {
	return func(ctx context.Context, q *query) (any, error) {
		ref, err := q.schedule()
		if err != nil {
			return nil, err
		}
		st, err := ask(q.api.cfg.Client, ctx, ref, q.by(q.r.Header.Get(headerBy)))
		return st, scheduleError(err)
	}
}

func putSchedule(ctx context.Context, q *query) (any, error) {
	ref, err := q.schedule()
	if err != nil {
		return nil, err
	}
	revision, err := q.revision("ifRevision")
	if err != nil {
		return nil, err
	}
	var s messages.Schedule
	if err := q.read(&s); err != nil {
		return nil, err
	}
	if err := errors.Join(named("name", ref.Name, &s.Name), named("tenant", ref.Tenant, &s.Tenant)); err != nil {
		return nil, err
	}
	applied, err := q.api.cfg.Client.PutSchedule(ctx, s, q.by(q.r.Header.Get(headerBy)), revision)
	if field, ok := errors.AsType[*messages.FieldError](err); ok { // the schedule is the whole body here
		return nil, &messages.FieldError{Field: strings.TrimPrefix(field.Field, "schedule."), Reason: field.Reason}
	}
	return applied, err
}

func runSchedule(ctx context.Context, q *query) (any, error) {
	ref, err := q.schedule()
	if err != nil {
		return nil, err
	}
	run, err := q.api.cfg.Client.RunSchedule(ctx, ref)
	if err != nil {
		return nil, scheduleError(err)
	}
	return &replyOf{
		header: http.Header{"Location": {"/v1/tasks/" + run.Run}},
		body:   Submitted{Tenant: run.Tenant, ID: run.Run, Status: messages.StatusQueued},
	}, nil
}
