package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
)

// callModel makes the call and commits its reply. A control record that changes the plan aborts the call.
func (x *execution) callModel(ctx context.Context, a *agent.CallModel) (agent.Action, error) {
	if x.limits.Quota.Call(ctx) {
		return x.commit(ctx)
	}
	call, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer x.listen(abort)()
	defer x.bound(abort)()
	stop := x.rememberMeanwhile()
	if x.repeats {
		x.repeats = false
		x.r.count(func(s *Stats) { s.RepeatedModelCalls++ })
	}
	began := x.now()
	begin := func() error { // each of its requests leaves only while the run is ours
		err := x.prove(call)
		if err != nil {
			abort(err)
		}
		return err
	}
	if a.Summary {
		live := x.live(a.Step)
		reply, _, err := x.stream(x.ask(ctx, call, begin, a, live), live)
		stop()
		return x.summarised(ctx, x.now().Sub(began).Milliseconds(), reply, err)
	}
	live, failures := x.tell(ctx, x.live(a.Step))
	reply, first, err := x.stream(x.ask(ctx, call, begin, a, live), live)
	stop()
	x.since = time.Now()
	return x.replied(ctx, a.Step, timing{x.now().Sub(began).Milliseconds(), firstToken(began, first)}, reply, err, failures()...)
}

// ask is the call's reply, piece by piece; setbacks are logged under ctx and shown to those who watch the reply.
func (x *execution) ask(ctx, call context.Context, begin func() error, a *agent.CallModel, live LiveReply) iter.Seq2[model.Delta, error] {
	return x.cfg.Model.Stream(call, model.Request{
		Key: x.key(a.Step, "model"), Tenant: x.run.Tenant, Echo: x.state.Agent.Reasoning == messages.ReasoningEcho,
		Model: x.state.Agent.Model, Models: x.state.Agent.Models, MaxPrice: x.state.Agent.MaxPrice, Messages: a.Messages, Recalled: a.Recalled, Tools: a.Tools,
		MaxTokens: x.state.Agent.MaxTokens, Temperature: x.state.Agent.Temperature, Format: (*model.Format)(a.Format), Purpose: a.Purpose,
		Cache: x.state.Agent.Cache, Begin: begin, Setback: x.setback(ctx, live),
		Retries: x.state.Agent.ModelRetries, Patient: x.state.Agent.OnNetworkError == messages.NetworkRetry,
	})
}

// timing is how long a call took, in milliseconds: in all, and to its first token; the latter is 0 when there was none.
type timing struct{ all, first int64 }

// firstToken is at least 1 when there was a token.
func firstToken(began, first time.Time) int64 {
	if first.IsZero() {
		return 0
	}
	return max(1, first.Sub(began).Milliseconds())
}

// stream takes a reply in. First is when the text or reasoning of the reply began; zero when it has none.
func (x *execution) stream(deltas iter.Seq2[model.Delta, error], live LiveReply) (reply *model.Reply, first time.Time, _ error) {
	defer func() { live.Close(reply != nil) }()
	var size replySize
	for d, err := range deltas {
		if first.IsZero() && (d.Text != "" || d.Reasoning != "") {
			first = x.now()
		}
		if err == nil {
			err = size.add(&d)
		}
		switch {
		case err != nil:
			return nil, first, err
		case d.Reply != nil:
			return d.Reply, first, nil
		case d.Reset:
			first = time.Time{}
			live.Reset()
		case d.Text != "":
			live.Add(messages.LiveText, d.Text)
		case d.Reasoning != "" && x.keepsReasoning():
			live.Add(messages.LiveReasoning, d.Reasoning)
		case d.Call != nil:
			live.AddCall(d.Call.ID, d.Call.Name, d.Call.Arguments)
		}
	}
	return nil, first, &model.Error{Class: model.Truncated, Detail: "the stream ended without a reply"}
}

// replied commits what came of a model call, and of the hooks that were told of it.
func (x *execution) replied(
	ctx context.Context, step int, took timing, reply *model.Reply, err error, also ...record.Record,
) (agent.Action, error) {
	var failed *model.Error
	switch {
	case err == nil:
		msg := reply.Message
		msg.Role = messages.RoleAssistant
		msg.Content = x.redact(x.kept(msg.Content))
		uniqueIDs(&msg)
		clear(x.args) // ids may come again
		clear(x.parks)
		x.outages = 0
		x.checkAll(&msg)
		return x.commitPaid(append([]record.Record{x.paidReply(step, took, msg, reply)}, also...)...)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errHeed):
		return x.replan(ctx)
	case errors.As(err, &failed) && x.withheld(failed):
		x.say(ctx, slog.LevelInfo, "provider is paused", slog.String("provider", failed.Paused))
		return x.commit(ctx)
	case errors.As(err, &failed):
		return x.modelFailed(ctx, step, failed)
	default:
		return nil, fmt.Errorf("call model: %w", err)
	}
}

func (x *execution) paidReply(step int, took timing, msg messages.Message, reply *model.Reply) *record.ModelReplied {
	return &record.ModelReplied{
		Step: step, Message: msg, Stop: reply.Stop, Usage: reply.Usage,
		Provider: reply.Provider, Model: reply.Model, Millis: took.all, Cached: reply.Cached,
		Cost: x.cost(reply), FirstTokenMillis: took.first,
	}
}

// kept is what the agent keeps of a reply.
func (x *execution) kept(in []messages.Block) []messages.Block {
	if x.keepsReasoning() {
		return in
	}
	return slices.DeleteFunc(slices.Clone(in), func(b messages.Block) bool { return b.Reasoning != nil })
}

func (x *execution) keepsReasoning() bool {
	r := x.state.Agent.Reasoning
	return r == messages.ReasoningKeep || r == messages.ReasoningEcho
}

// redact takes secrets out of what a model or a tool said, before it becomes a record, an event or a file.
func (x *execution) redact(in []messages.Block) []messages.Block {
	out := make([]messages.Block, len(in))
	for i, b := range in {
		b.Text = x.cfg.Redact(b.Text)
		if b.Reasoning != nil {
			r := *b.Reasoning
			if r.Text = x.cfg.Redact(r.Text); r.Text != b.Reasoning.Text {
				r.Signature = "" // of another text
			}
			b.Reasoning = &r
		}
		if b.ToolCall != nil {
			c := *b.ToolCall
			c.ID, c.Name, c.Arguments = x.cfg.Redact(c.ID), x.cfg.Redact(c.Name), x.cfg.Redact(c.Arguments)
			b.ToolCall = &c
		}
		out[i] = b
	}
	return out
}

// uniqueIDs gives every call of a reply an id of its own: results are told apart by it.
func uniqueIDs(m *messages.Message) {
	seen := map[string]bool{}
	for i := range m.Content {
		c := m.Content[i].ToolCall
		if c == nil {
			continue
		}
		if c.ID == "" || seen[c.ID] {
			c.ID += "#" + strconv.Itoa(i)
		}
		seen[c.ID] = true
	}
}

// withheld reports whether a call was not begun because a provider is paused; the run then waits for the end of that.
func (x *execution) withheld(e *model.Error) bool {
	return e.Paused != "" && x.cfg.Keeper.Lines != nil && x.limits.Semaphore.Withhold(x.state.Task, e.Paused)
}

// modelFailed commits what follows from a model call that failed. What the agent wants goes first; the wait that a
// provider or an open circuit asks for comes after it.
func (x *execution) modelFailed(ctx context.Context, step int, e *model.Error) (agent.Action, error) {
	network := e.Class == model.Network
	fallback := agent.Fallback(x.state, e.Code(), network)
	if fallback == "" || fallback == record.FallbackPark {
		if x.outlives(ctx, step, e) {
			return x.commit(ctx)
		}
	}
	return x.commit(ctx, &record.ModelFailed{
		Step: step, Error: messages.RunError{Code: e.Code(), Message: x.cfg.Redact(e.Error())}, Fallback: fallback, Provider: e.Provider,
	})
}

// outlives reports whether the same call is made again, at once or after a park, without a record of its failure.
func (x *execution) outlives(ctx context.Context, step int, e *model.Error) bool {
	why := []slog.Attr{slog.String("code", string(e.Code())), x.said("err", e.Error())}
	on := x.state.Agent.OnNetworkError
	if e.Class == model.Network && (on == messages.NetworkAbort || on == messages.NetworkRetry) {
		if on == messages.NetworkAbort || x.state.Purpose != "" || x.outages >= agent.MaxNetworkRetries { // a planner counts its own
			return false
		}
		x.outages++
		x.say(ctx, slog.LevelWarn, "model cannot be reached and is called again", append(why, slog.Int("try", x.outages))...)
		return true
	}
	later := x.limits.Provider.Postpone(x.state, step, e)
	if later {
		x.say(ctx, slog.LevelWarn, "model asks to be called later", why...)
	}
	return later
}
