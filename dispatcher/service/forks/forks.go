// Package forks makes runs that begin with what others have done.
package forks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/dispatcher/service/definitions"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Forks works with.
type Config struct {
	Controller  *runlog.Controller
	Definitions *definitions.Definitions
	Runs        *runs.Runs
	Files       *files.Store
}

// Forks makes runs that begin with what others have done.
type Forks struct{ cfg Config }

// New returns Forks.
func New(cfg Config) *Forks { return &Forks{cfg} }

// Handlers are the requests for forks.
func (fs *Forks) Handlers() request.Handlers {
	return request.Handlers{control.SubjectFork: request.Read(fs.fork)}
}

// maxPrefix bounds what a fork keeps of another run, in bytes as records.
const maxPrefix = 16 << 20

// fork makes a run that begins with what another one has done.
func (fs *Forks) fork(ctx context.Context, req control.ForkRequest) (any, error) {
	from, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	started, err := fs.upTo(ctx, from, req.At, req.Call)
	if err != nil {
		return nil, err
	}
	if err := fs.choose(ctx, started, &req); err != nil {
		return nil, err
	}
	run := messages.Ref{Tenant: from.Tenant, Run: req.NewID}
	if run.Run == "" {
		run.Run = fs.cfg.Controller.NewID()
	}
	fs.renew(started, run)
	started.Shown = started.Shown.Forked(&started.Agent)
	started.Task.By = request.CallerOf(ctx).Who
	if err := fs.free(ctx, run); err != nil {
		return nil, err
	}
	if err := fs.share(ctx, from, run, started); err != nil {
		return nil, err
	}
	duplicate, err := fs.cfg.Controller.Fork(ctx, run, started)
	switch {
	case errors.Is(err, runlog.ErrConflict):
		return nil, request.Conflict("newId: " + run.Run + " is taken by another run")
	case err != nil:
		return nil, err
	}
	return control.ForkReply{
		Tenant: run.Tenant, ID: run.Run, From: *started.ForkedFrom, Kept: len(started.Prefix), Duplicate: duplicate,
	}, nil
}

// share keeps the files that the fork begins with, and those of the steps before, for as long as the fork is kept.
func (fs *Forks) share(ctx context.Context, from, run messages.Ref, started *record.Started) error {
	for _, r := range started.Prefix {
		saved, ok := r.(*record.FilesSaved)
		if !ok || saved.Manifest == "" {
			continue
		}
		err := fs.cfg.Files.Share(ctx, from, run, saved.Manifest)
		if errors.Is(err, manifest.ErrMissing) {
			return &messages.FieldError{Field: "at", Reason: "the files of the run are no longer kept: its retention is over"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// upTo is the beginning of a run that has done what another one did before a step, or in it before a call waited for a person.
func (fs *Forks) upTo(ctx context.Context, from messages.Ref, step int, call string) (*record.Started, error) {
	if err := fs.cfg.Runs.HasLog(ctx, from); err != nil {
		return nil, err
	}
	c := cut{run: from.Run, step: step, call: call}
	for e, err := range fs.cfg.Controller.Log.Read(ctx, from, 0, runlog.Tail) {
		if err != nil {
			return nil, err
		}
		if c.entry(e) {
			break
		}
	}
	return c.result()
}

// cut takes the beginning of a log.
type cut struct {
	run     string
	step    int
	call    string // of the step: it is kept until the call waits for a person
	started *record.Started
	last    int  // the last step that was begun
	done    bool // the step was found, and the wait in it
	waits   bool // the call did
	seq     uint64
}

// entry takes an entry; true: no more is wanted.
func (c *cut) entry(e record.Entry) bool {
	for _, r := range e.Records {
		if first, ok := r.(*record.Started); ok {
			c.start(first)
			continue
		}
		if c.record(r) {
			return true
		}
		c.seq = e.Seq
	}
	return false
}

// start takes the first record. What that run had kept of yet another one is kept as well.
func (c *cut) start(first *record.Started) {
	own := *first
	own.Prefix = nil
	c.started = &own
	_ = slices.ContainsFunc(first.Prefix, c.record) // until the step is found
}

func (c *cut) record(r record.Record) bool {
	switch r := r.(type) {
	case *record.StepStarted:
		c.last = max(c.last, r.Step)
		c.done = c.done || r.Step == c.step && c.call == "" || r.Step > c.step && c.call != ""
	case *record.Parked:
		if c.call != "" && c.last == c.step && r.Call == c.call && (r.Reason == queue.ParkApproval || r.Reason == queue.ParkAnswer) {
			c.done, c.waits = true, true
			c.started.Prefix = slices.DeleteFunc(c.started.Prefix, func(kept record.Record) bool { return c.begins(kept) })
		}
	}
	if c.done || c.started == nil {
		return c.done
	}
	if _, given := r.(*record.Planned); given && c.last == 0 { // another agent may bring another plan
		return false
	}
	if kept, ok := record.Forked(r); ok {
		c.started.Prefix = append(c.started.Prefix, kept)
	}
	return false
}

// begins reports whether a record is the beginning of the call that waits, which the fork makes anew.
func (c *cut) begins(r record.Record) bool {
	b, ok := r.(*record.ToolStarted)
	return ok && b.Step == c.step && b.Call.ID == c.call
}

func (c *cut) result() (*record.Started, error) {
	switch {
	case c.call != "" && !c.waits && c.last >= c.step:
		return nil, &messages.FieldError{Field: "call", Reason: fmt.Sprintf("no call %s of step %d has waited for a person", strict.Shown(c.call), c.step)}
	case !c.done && c.last == 0:
		return nil, &messages.FieldError{Field: "at", Reason: "the run has not started a step"}
	case !c.done:
		return nil, &messages.FieldError{Field: "at", Reason: fmt.Sprintf("the run has not begun step %d; the last one is %d", c.step, c.last)}
	}
	if call := unreturned(c.started.Prefix); call != "" {
		return nil, &messages.FieldError{Field: "at", Reason: fmt.Sprintf("the call %s was still running when step %d began", strict.Clip(call, 64), c.step)}
	}
	data, err := record.EncodeRecords(c.started.Prefix)
	if err != nil {
		return nil, err
	}
	if len(data) > maxPrefix {
		return nil, &messages.FieldError{Field: "at", Reason: fmt.Sprintf("the steps before it are more than %d bytes", maxPrefix)}
	}
	c.started.ForkedFrom = &messages.Origin{Run: c.run, Seq: c.seq, Step: c.step}
	return c.started, nil
}

// unreturned is a call that was begun and has no result, empty if there is none.
func unreturned(rs []record.Record) string {
	open := map[string]bool{}
	for _, r := range rs {
		switch r := r.(type) {
		case *record.ToolStarted:
			open[r.Call.ID] = true
		case *record.ToolReturned:
			delete(open, r.Result.CallID)
		}
	}
	for id := range open {
		return id
	}
	return ""
}

// choose replaces the agent or the model of the run. The kept steps must mean the same to it.
func (fs *Forks) choose(ctx context.Context, started *record.Started, req *control.ForkRequest) error {
	if req.Agent != "" {
		def, err := fs.cfg.Definitions.At(ctx, req.Agent, req.Revision)
		if err != nil {
			return err
		}
		if started.Task.Plan != nil {
			def.Planner = messages.PlannerPlan // as when a run begins
		}
		if err := fits(started, &def); err != nil {
			return err
		}
		if err := fs.cfg.Definitions.Instruct(ctx, &def, &started.Task); err != nil {
			return err
		}
		specs := make([]messages.ToolSpec, len(def.Tools))
		for i, name := range def.Tools {
			specs[i] = started.Tools[slices.IndexFunc(started.Tools, func(t messages.ToolSpec) bool { return t.Name == name })]
		}
		started.Agent, started.Tools, started.Task.Agent = def, specs, def.Name
	}
	if req.Model != "" {
		started.Agent.Model, started.Agent.Models = req.Model, nil
	}
	return started.Agent.Validate()
}

// fits reports why an agent cannot continue with what was begun.
func fits(started *record.Started, def *messages.Definition) error {
	bad := func(format string, args ...any) error {
		return &messages.FieldError{Field: "agent", Reason: fmt.Sprintf(format, args...)}
	}
	was := &started.Agent
	begun := slices.ContainsFunc(started.Prefix, func(r record.Record) bool { return r.Kind() == record.KindStepStarted })
	switch {
	case begun && was.Planner != def.Planner:
		return bad("its planner is %s; that of the steps that are kept is %s: fork at step 1", def.Planner, was.Planner)
	case begun && was.OnTruncated != def.OnTruncated:
		return bad("its onTruncated is not that of the steps that are kept: fork at step 1")
	case len(def.OutputSchema) > 0 && len(started.Task.OutputSchema) > 0:
		return bad("it has an output schema, and the task has one too")
	case len(started.Task.OutputSchema) > 0 && def.Planner == messages.PlannerPlan:
		return bad("the task has an output schema, and the planner %s does not check answers", def.Planner)
	}
	for _, name := range def.Tools {
		if !slices.ContainsFunc(started.Tools, func(t messages.ToolSpec) bool { return t.Name == name }) {
			return bad("the run that is forked does not know its tool %s, and a fork has no others", name)
		}
	}
	return nil
}

// renew makes the task that of a new run. It takes no part in the conversation of the old one, has no webhook, and
// does not begin after its own deadline.
func (fs *Forks) renew(started *record.Started, run messages.Ref) {
	now := fs.cfg.Controller.Now()
	started.QueuedAt = now
	t := &started.Task
	t.ID, t.Session, t.Traceparent, t.Webhook = run.Run, "", "", nil
	t.Workspace = "" // it begins with the files of its steps, which are not those of the workspace now, and must not replace them there
	if t.Deadline != nil && !t.Deadline.After(now) {
		t.Deadline = nil
	}
}

// free returns a conflict when the id is that of a task in the queue, or of a run whose log is gone and whose events
// are not. Whether it has a log, the append will tell.
func (fs *Forks) free(ctx context.Context, run messages.Ref) error {
	last, q, err := fs.cfg.Runs.Find(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		gone, err := fs.cfg.Controller.Events.Ended(ctx, run)
		if gone {
			return request.Conflict("newId: " + run.Run + " belonged to a run that was removed; choose another")
		}
		return err
	case err != nil:
		return err
	case q != nil && last.Seq == 0:
		return request.Conflict("newId: " + run.Run + " is taken by a task in the queue")
	default:
		return nil
	}
}
