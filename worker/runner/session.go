package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
)

// joinSession asks for the run's turn. With it comes the conversation so far, which becomes a record; without it the
// run parks.
func (x *execution) joinSession(ctx context.Context) (agent.Action, error) {
	turn, ended, err := x.limits.Session.Join(ctx, x.run, x.state.Task.Session)
	switch {
	case err != nil:
		return nil, err
	case !turn:
		return x.commit(ctx)
	}
	from, conversation, err := x.conversation(ctx, ended)
	if err != nil {
		return nil, fmt.Errorf("read the conversation of session %s: %w", x.state.Task.Session, err)
	}
	return x.commit(ctx, agent.Recall(from, conversation, x.state.Agent.SessionPolicy()))
}

// talk is the key of the session's conversation in Config.Talks, a cache of its own.
func (x *execution) talk() messages.Ref {
	return messages.Ref{Tenant: x.run.Tenant, Run: x.state.Task.Session}
}

// conversation is what the last run of the session left: from the cache, or folded from that run's log. Runs that are
// gone, or left nothing, are passed over.
func (x *execution) conversation(ctx context.Context, ended []string) (from string, said []messages.Message, err error) {
	if len(ended) == 0 {
		return "", nil, nil
	}
	if _, by, data, ok := x.cfg.Talks.Load(ctx, x.talk()); ok && by == ended[len(ended)-1] {
		if err := strict.Decode(data, &said); err == nil && !slices.ContainsFunc(said, isStrange) {
			return by, said, nil
		}
		x.cfg.Log.WarnContext(ctx, "cached conversation ignored", "tenant", x.run.Tenant, "session", x.state.Task.Session)
	}
	for _, id := range slices.Backward(ended) {
		run := messages.Ref{Tenant: x.run.Tenant, Run: id}
		var s agent.State
		for e, err := range x.log.Read(ctx, run, 0, runlog.Tail) {
			if err != nil {
				return "", nil, fmt.Errorf("read log of %s: %w", id, err)
			}
			if err := s.Apply(e); err != nil {
				return "", nil, fmt.Errorf("run %s: %w", id, err)
			}
		}
		if s.Task != nil && s.Task.Session == x.state.Task.Session && s.Turn && s.Result != nil {
			return id, s.Conversation(), nil
		}
	}
	return "", nil, nil
}

// isStrange reports whether a message is none that a run leaves: a cache may hold anything.
func isStrange(m messages.Message) bool {
	return m.Role != messages.RoleUser && m.Role != messages.RoleAssistant && m.Role != messages.RoleTool
}

// leaveConversation caches what the next run of the session begins with, if this one has ended. A fork may have recalled
// a conversation, and is in no session.
func (x *execution) leaveConversation() {
	if x.state.Result == nil || !x.state.Turn || x.state.Task.Session == "" || !x.cfg.Talks.Wants() {
		return
	}
	if data, err := json.Marshal(x.state.Conversation()); err == nil {
		x.cfg.Talks.Save(x.talk(), x.state.Seq, x.run.Run, data)
	}
}

// summarised commits what came of the call that sums up the older part of the conversation.
func (x *execution) summarised(ctx context.Context, millis int64, reply *model.Reply, err error) (agent.Action, error) {
	var failed *model.Error
	switch {
	case err == nil:
		r := &record.Summarised{
			Text: x.cfg.Redact(reply.Message.Text()), Usage: reply.Usage, Provider: reply.Provider, Model: reply.Model, Millis: millis,
			Cached: reply.Cached, Cost: x.cost(reply),
		}
		if r.Text == "" {
			r.Error = &messages.RunError{Code: messages.CodeModelInvalidOutput, Message: "the model answered with nothing"}
		}
		return x.commitPaid(r)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errHeed):
		return x.replan(ctx)
	case errors.As(err, &failed) && x.withheld(failed):
		return x.commit(ctx)
	case errors.As(err, &failed):
		if x.outlives(ctx, 0, failed) {
			return x.commit(ctx)
		}
		return x.commit(ctx, &record.Summarised{
			Error: &messages.RunError{Code: failed.Code(), Message: x.cfg.Redact(failed.Error())}, Millis: millis,
		})
	default:
		return nil, fmt.Errorf("call model: %w", err)
	}
}
