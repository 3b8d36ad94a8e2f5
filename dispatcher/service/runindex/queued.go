package runindex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of one request for queued tasks.
const (
	maxQueuedLooked = 2000     // messages, whatever fits
	maxQueuedRead   = 16 << 20 // bytes of them
	maxQueuedInput  = 512      // bytes of an input that are shown
)

// listQueued is the queued tasks that fit.
func (x *RunIndex) listQueued(ctx context.Context, req control.QueuedRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	var since time.Time
	if req.Since != nil {
		since = *req.Since
	}
	isChild, err := x.childrenOf(ctx, messages.Ref{Tenant: req.Tenant, Run: req.Parent})
	if err != nil {
		return nil, err
	}
	room := x.cfg.Room.Page()
	list := control.QueuedList{Runs: []control.RunSummary{}}
	looked, read, next := 0, 0, uint64(0)
	for q, err := range x.cfg.Queue.QueuedTasks(ctx, req.Tenant, req.Delayed, req.After, since) {
		if err != nil {
			return nil, err
		}
		if looked == maxQueuedLooked || read > maxQueuedRead || len(list.Runs) == req.Limit || room <= 0 {
			list.Next = next
			break
		}
		looked, read = looked+1, read+len(q.Body)
		p, ref, ok := messages.ParseTaskSubject(q.Subject)
		late := req.Until != nil && !q.At.Before(*req.Until)
		if !ok || p.Wakes() || late || ref.Tenant != req.Tenant || !isChild(ref.Run) {
			next = q.Position()
			continue
		}
		task, err := messages.DecodeTaskFor(ref, p, q.Body)
		if err != nil {
			task = &messages.Task{} // it will end in the dead letters
		}
		if req.Fits(task) {
			run := queuedSummary(ref, p, task, q.At)
			run.Parent = req.Parent
			if req.Delayed {
				run.NotBefore = &q.Later
			}
			data, err := json.Marshal(run)
			if err != nil {
				return nil, fmt.Errorf("encode %s: %w", ref, err)
			}
			if room -= len(data) + len(","); room <= 0 && len(list.Runs) > 0 {
				list.Next = next
				break
			}
			list.Runs = append(list.Runs, run)
		}
		next = q.Position()
	}
	x.stillQueued(ctx, req.Tenant, &list)
	return list, nil
}

// childrenOf is how to tell the queued children of a run, whose tasks do not name it: their ids follow from it. Without a run every
// task is meant.
func (x *RunIndex) childrenOf(ctx context.Context, parent messages.Ref) (func(id string) bool, error) {
	if parent.Run == "" {
		return func(string) bool { return true }, nil
	}
	last, _, err := x.cfg.Runs.Find(ctx, parent)
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		return nil, err
	}
	var left []string
	for _, of := range last.Head.Delegations() {
		left = append(left, of.Left(parent)...)
	}
	return func(id string) bool { return slices.Contains(left, id) }, nil
}

func queuedSummary(ref messages.Ref, p messages.Priority, t *messages.Task, at time.Time) control.RunSummary {
	return control.RunSummary{
		Tenant: ref.Tenant, ID: ref.Run, Agent: t.Agent, Status: messages.StatusQueued, Priority: p, Session: t.Session,
		Labels: t.Labels, Queued: &at, Input: strict.Clip(t.Input.Shown(), maxQueuedInput),
	}
}
