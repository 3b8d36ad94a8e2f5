package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// about is what an erasure knows of a run.
type about struct {
	meant, ended bool
	session      string
}

// about reports whether a run is one of a scope. What no longer has a log is known by its events, or by its dead letter.
func (e *Erasure) about(ctx context.Context, s *erasure.Scope, run messages.Ref) (about, error) {
	last, queued, err := e.cfg.Runs.Find(ctx, run)
	gone := errors.Is(err, runlog.ErrNotFound)
	switch {
	case err != nil && !gone && (bus.Transient(err) || ctx.Err() != nil):
		return about{}, err
	case err != nil && !gone: // a log that cannot be read is not known to have ended
		return about{meant: s.Whole()}, nil
	}
	a := about{ended: gone || queued == nil && last.Head.Phase == record.PhaseFinished, session: last.Head.Session}
	if s.Whole() {
		a.meant = true
		return a, nil
	}
	if s.Session != "" && !gone && queued == nil {
		a.meant = last.Head.Session == s.Session
		return a, nil
	}
	session, labels, err := e.asked(ctx, run, gone)
	if err != nil {
		return about{}, err
	}
	a.session = session
	a.meant = s.Session != "" && session == s.Session || s.Subject != "" && labels[erasure.LabelSubject] == s.Subject
	return a, nil
}

// asked is the session and the labels of a run's task, as far as anything tells them.
func (e *Erasure) asked(ctx context.Context, run messages.Ref, gone bool) (session string, labels map[string]string, err error) {
	if !gone {
		task, err := e.cfg.Runs.Task(ctx, run, true)
		switch {
		case err == nil:
			return task.Session, task.Labels, nil
		case bus.Transient(err) || ctx.Err() != nil:
			return "", nil, err
		}
	}
	for ev, err := range e.cfg.Events.Events(ctx, run.EventSubject(messages.EventRunQueued), time.Time{}) {
		if err != nil {
			return "", nil, err
		}
		var d messages.RunQueued
		if json.Unmarshal(ev.Data, &d) == nil {
			return d.Session, d.Labels, nil
		}
	}
	letter, ok, err := e.cfg.Letters.OfRun(ctx, run)
	if err != nil || !ok {
		return "", nil, err
	}
	var task messages.Task // of one that could not be worked, as far as it can be read
	_ = json.Unmarshal(letter.Task, &task)
	return task.Session, task.Labels, nil
}
