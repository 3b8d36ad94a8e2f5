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
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/model"
)

// modelWork makes model calls.
type modelWork struct {
	*job

	journal   *journal
	footprint *footprint
	own       *ownership
	voice     *voice
	hooks     *hookWork
	calls     *callBook
	limits    *limits.Set
	rules     *policyWork

	repeats bool // an owner that was lost may have made the call that is to be made next; written by work and callModel
	outages int  // rounds of attempts in a row that did not reach the model; written by replied and outlives
}

// callModel makes the call and commits its reply. A control record that changes the plan aborts the call.
func (x *modelWork) callModel(ctx context.Context, a *agent.CallModel) (agent.Action, error) {
	if x.limits.Quota.Call(ctx) {
		return x.journal.commit(ctx)
	}
	call, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer x.own.listen(abort)()
	defer x.journal.bound(abort)()
	stop := x.journal.rememberMeanwhile()
	if x.repeats {
		x.repeats = false
		x.r.count(func(s *Stats) { s.RepeatedModelCalls++ })
	}
	began := x.now()
	begin := func() error { // each of its requests leaves only while the run is ours
		err := x.own.prove(call)
		if err != nil {
			abort(err)
		}
		return err
	}
	if a.Summary {
		live := x.live(a.Step)
		reply, _, err := x.stream(call, x.ask(ctx, call, begin, a, live), live)
		stop()
		return x.summarised(ctx, x.now().Sub(began).Milliseconds(), reply, err)
	}
	var live LiveReply = unseen{}
	failures := func() []record.Record { return nil }
	if !x.rules.silent(x.journal.state.Agent) {
		live, failures = x.hooks.tell(ctx, x.live(a.Step))
	}
	reply, first, err := x.stream(call, x.ask(ctx, call, begin, a, live), live)
	stop()
	x.journal.heard()
	return x.replied(ctx, a.Step, timing{x.now().Sub(began).Milliseconds(), firstToken(began, first)}, reply, err, failures()...)
}

// ask is the call's reply, piece by piece; setbacks are logged under ctx and shown to those who watch the reply.
func (x *modelWork) ask(ctx, call context.Context, begin func() error, a *agent.CallModel, live LiveReply) iter.Seq2[model.Delta, error] {
	return x.cfg.Model.Stream(call, model.Request{
		Key: x.key(a.Step, "model"), Tenant: x.run.Tenant, Echo: x.journal.state.Agent.Reasoning == messages.ReasoningEcho,
		Model: x.journal.state.Agent.Model, Models: x.journal.state.Agent.Models, MaxPrice: x.journal.state.Agent.MaxPrice, Messages: a.Messages, Recalled: a.Recalled, Tools: a.Tools,
		MaxTokens: x.journal.state.Agent.MaxTokens, Temperature: x.journal.state.Agent.Temperature, Format: (*model.Format)(a.Format), Purpose: a.Purpose,
		Cache: x.journal.state.Agent.Cache, Keep: keeps(x.rules.of(x.journal.state.Agent)), Begin: begin, Setback: x.voice.setback(ctx, live),
		Retries: x.journal.state.Agent.ModelRetries, Patient: x.journal.state.Agent.OnNetworkError == messages.NetworkRetry,
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
func (x *modelWork) stream(ctx context.Context, deltas iter.Seq2[model.Delta, error], live LiveReply) (reply *model.Reply, first time.Time, _ error) {
	defer func() { live.Close(reply != nil) }()
	var size replySize
	for d, err := range deltas {
		if first.IsZero() && (d.Text != "" || d.Reasoning != "") {
			first = x.now()
		}
		if err == nil {
			err = size.add(&d)
		}
		if err == nil {
			err = x.footprint.reply(ctx, size)
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

// replied commits the outcome of a model call, and of the hooks that were notified.
func (x *modelWork) replied(
	ctx context.Context, step int, took timing, reply *model.Reply, err error, also ...record.Record,
) (agent.Action, error) {
	var failed *model.Error
	switch {
	case err == nil:
		msg := reply.Message
		msg.Role = messages.RoleAssistant
		msg.Content = x.redact(x.kept(msg.Content))
		uniqueIDs(&msg)
		also = append(x.rules.reply(x.journal.state, &msg), also...)
		x.calls.renew()
		x.outages = 0
		x.calls.checkAll(&msg, x.journal.state.Tools)
		return x.journal.commitPaid(append([]record.Record{x.paidReply(step, took, msg, reply)}, also...)...)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errControl):
		return x.journal.replan(ctx)
	case errors.As(err, &failed) && x.withheld(failed):
		x.voice.say(ctx, slog.LevelInfo, "provider is paused", slog.String("provider", failed.Paused))
		return x.journal.commit(ctx)
	case errors.As(err, &failed):
		return x.modelFailed(ctx, step, failed)
	default:
		return nil, fmt.Errorf("call model: %w", err)
	}
}

func (x *modelWork) paidReply(step int, took timing, msg messages.Message, reply *model.Reply) *record.ModelReplied {
	return &record.ModelReplied{
		Step: step, Message: msg, Stop: reply.Stop, Usage: reply.Usage,
		Provider: reply.Provider, Model: reply.Model, Millis: took.all, Cached: reply.Cached,
		Cost: x.cost(reply), FirstTokenMillis: took.first,
	}
}

// kept is what the agent keeps of a reply.
func (x *modelWork) kept(in []messages.Block) []messages.Block {
	if x.keepsReasoning() {
		return in
	}
	return slices.DeleteFunc(slices.Clone(in), func(b messages.Block) bool { return b.Reasoning != nil })
}

func (x *modelWork) keepsReasoning() bool {
	r := x.journal.state.Agent.Reasoning
	return r == messages.ReasoningKeep || r == messages.ReasoningEcho
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
func (x *modelWork) withheld(e *model.Error) bool {
	return e.Paused != "" && x.cfg.Controller.Semaphores != nil && x.limits.Semaphore.Withhold(x.journal.state.Task, e.Paused)
}

// modelFailed commits what follows from a model call that failed. What the agent wants goes first; the wait that a
// provider or an open circuit asks for comes after it.
func (x *modelWork) modelFailed(ctx context.Context, step int, e *model.Error) (agent.Action, error) {
	network := e.Class == model.Network
	fallback := agent.Fallback(x.journal.state, e.Code(), network)
	if fallback == "" || fallback == record.FallbackPark {
		if x.outlives(ctx, step, e) {
			return x.journal.commit(ctx)
		}
	}
	return x.journal.commit(ctx, &record.ModelFailed{
		Step: step, Error: messages.RunError{Code: e.Code(), Message: x.cfg.Redact(e.Error())}, Fallback: fallback, Provider: e.Provider,
	})
}

// outlives reports whether the same call is made again, at once or after a park, without a record of its failure.
func (x *modelWork) outlives(ctx context.Context, step int, e *model.Error) bool {
	why := []slog.Attr{slog.String("code", string(e.Code())), x.said("err", e.Error())}
	on := x.journal.state.Agent.OnNetworkError
	if e.Class == model.Network && (on == messages.NetworkAbort || on == messages.NetworkRetry) {
		if on == messages.NetworkAbort || x.journal.state.Purpose != "" || x.outages >= agent.MaxNetworkRetries { // a planner counts its own
			return false
		}
		x.outages++
		x.voice.say(ctx, slog.LevelWarn, "model cannot be reached and is called again", append(why, slog.Int("try", x.outages))...)
		return true
	}
	later := x.limits.Provider.Postpone(x.journal.state, step, e)
	if later {
		x.voice.say(ctx, slog.LevelWarn, "model asks to be called later", why...)
	}
	return later
}

// summarised commits what came of the call that sums up the older part of the conversation.
func (x *modelWork) summarised(ctx context.Context, millis int64, reply *model.Reply, err error) (agent.Action, error) {
	var failed *model.Error
	switch {
	case err == nil:
		r := &record.Summarised{
			Text: x.cfg.Redact(reply.Message.Text()), Usage: reply.Usage, Provider: reply.Provider, Model: reply.Model, Millis: millis,
			Cached: reply.Cached, Cost: x.cost(reply),
		}
		text, found, blocked := x.rules.of(x.journal.state.Agent).Text(messages.PolicyReply, "", r.Text)
		switch {
		case blocked: // which ends the run
			r.Error = &messages.RunError{Code: messages.CodePolicy, Message: found[len(found)-1].Reason}
		case r.Text == "":
			r.Error = &messages.RunError{Code: messages.CodeModelInvalidOutput, Message: "the model answered with nothing"}
		}
		r.Text = text
		return x.journal.commitPaid(append([]record.Record{r}, x.rules.applied(x.journal.state, messages.ToolCall{}, found)...)...)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errControl):
		return x.journal.replan(ctx)
	case errors.As(err, &failed) && x.withheld(failed):
		return x.journal.commit(ctx)
	case errors.As(err, &failed):
		if x.outlives(ctx, 0, failed) {
			return x.journal.commit(ctx)
		}
		return x.journal.commit(ctx, &record.Summarised{
			Error: &messages.RunError{Code: failed.Code(), Message: x.cfg.Redact(failed.Error())}, Millis: millis,
		})
	default:
		return nil, fmt.Errorf("call model: %w", err)
	}
}
