package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/scratchpad"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// conversation is what a run takes over from its session, and leaves to it.
type conversation struct {
	*job

	journal *journal
	limits  *limits.Set
	rules   *policyWork
}

// joinSession asks for the run's turn. With it comes the conversation so far, which becomes a record; without it the
// run parks.
func (x *conversation) joinSession(ctx context.Context) (agent.Action, error) {
	turn, ended, err := x.limits.Session.Join(ctx, x.run, x.journal.state.Task.Session)
	switch {
	case err != nil:
		return nil, err
	case !turn:
		return x.journal.commit(ctx)
	}
	from, left, err := x.conversation(ctx, ended)
	if err != nil {
		return nil, fmt.Errorf("read the conversation of session %s: %w", x.journal.state.Task.Session, err)
	}
	recall := agent.Recall(from, left.Messages, left.Used, x.journal.state.Agent.SessionPolicy())
	recall.Scratchpad = left.Notes
	return x.journal.commit(ctx, recall)
}

// conversationKey is the key of the session's conversation in Config.Conversations, a cache of its own.
func (x *conversation) conversationKey() messages.Ref {
	return messages.Ref{Tenant: x.run.Tenant, Run: x.journal.state.Task.Session}
}

// leaving is what a run leaves to the next one of its session, as it is cached.
type leaving struct {
	Messages []messages.Message `json:"messages"`
	Used     []string           `json:"used,omitempty"` // tools whose results may be in them
	Notes    []scratchpad.Note  `json:"notes,omitempty"`
}

// conversation is what the last run of the session left: from the cache, or folded from that run's log. Runs that are
// gone, or left nothing, are passed over.
func (x *conversation) conversation(ctx context.Context, ended []string) (from string, left leaving, err error) {
	if len(ended) == 0 {
		return "", leaving{}, nil
	}
	if _, by, data, ok := x.cfg.Conversations.Load(ctx, x.conversationKey()); ok && by == ended[len(ended)-1] {
		if err := strict.Decode(data, &left); err == nil && !slices.ContainsFunc(left.Messages, isStrange) {
			return by, left, nil
		}
		x.cfg.Log.WarnContext(ctx, "cached conversation ignored", "tenant", x.run.Tenant, "session", x.journal.state.Task.Session)
	}
	for _, id := range slices.Backward(ended) {
		s, err := x.fold(ctx, messages.Ref{Tenant: x.run.Tenant, Run: id})
		if err != nil && !record.IsGone(err) {
			return "", leaving{}, err
		}
		if s.Task != nil && s.Task.Session == x.journal.state.Task.Session && s.Turn && s.Result != nil {
			return id, leaving{s.Conversation(), s.Had(), s.Notes()}, nil
		}
	}
	return "", leaving{}, nil
}

// fold is the state of another run; that of one that is gone is empty.
func (x *conversation) fold(ctx context.Context, run messages.Ref) (agent.State, error) {
	var s agent.State
	for e, err := range x.log.Read(ctx, run, 0, runlog.Tail) {
		if err != nil {
			return agent.State{}, fmt.Errorf("read log of %s: %w", run.Run, err)
		}
		if err := s.Apply(e); err != nil {
			return agent.State{}, fmt.Errorf("run %s: %w", run.Run, err)
		}
	}
	return s, nil
}

// isStrange reports whether a message is none that a run leaves: a cache may hold anything.
func isStrange(m messages.Message) bool {
	return m.Role != messages.RoleUser && m.Role != messages.RoleAssistant && m.Role != messages.RoleTool
}

// leaveConversation caches what the next run of the session begins with, if this one has ended. A fork may have recalled
// a conversation, and is in no session.
func (x *conversation) leaveConversation() {
	if x.journal.state.Result == nil || !x.journal.state.Turn || x.journal.state.Task.Session == "" || !x.cfg.Conversations.Wants() {
		return
	}
	rules := x.rules.of(x.journal.state.Agent)
	if data, err := json.Marshal(leaving{x.journal.state.Conversation(), x.journal.state.Had(), x.journal.state.Notes()}); err == nil && holds(rules, data) {
		// By the time of its end: the sequences of two runs tell no order where the logs are in several streams. With clocks that differ the
		// cache may keep what an earlier run left, which is then not used.
		ended := uint64(max(0, x.journal.state.Head.Time.UnixNano()))
		x.cfg.Conversations.Save(x.conversationKey(), ended, x.run.Run, data)
	}
}
