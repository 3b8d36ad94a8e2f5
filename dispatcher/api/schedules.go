package api

import (
	"context"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// scheduleOperations are those about schedules.
func scheduleOperations() []operation {
	one := "/v1/schedules/{name}"
	return []operation{
		{
			method: "POST", path: one + "/run", id: "runSchedule", needs: control.Operate, tag: "schedules", summary: "Submit the task of a schedule now",
			failures: failuresOf(control.SubjectScheduleRun),
			text:     "Also while it is paused. While its last run has not ended, `overlap` decides.",
			reply:    Submitted{}, status: http.StatusAccepted, answer: runSchedule,
		},
	}
}

// schedule is the schedule of the path.
func (q *query) schedule() (ref control.ScheduleRef, err error) {
	if ref.Tenant, err = q.tenant(); err != nil {
		return ref, err
	}
	ref.Name = q.r.PathValue("name")
	return ref, ref.Check()
}

func runSchedule(ctx context.Context, q *query) (any, error) {
	ref, err := q.schedule()
	if err != nil {
		return nil, err
	}
	run, err := q.api.cfg.Client.Schedules().Run(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &replyOf{
		header: http.Header{"Location": {"/v1/tasks/" + run.Run}},
		body:   Submitted{Tenant: run.Tenant, ID: run.Run, Status: messages.StatusQueued},
	}, nil
}
