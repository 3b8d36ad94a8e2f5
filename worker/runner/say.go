package runner

import (
	"context"
	"log/slog"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
)

// voice logs what an operator wants to know of the run.
type voice struct {
	*job

	state func() *agent.State
}

// maxSaid bounds texts of models and tools in the log, in bytes; events and records have them whole.
const maxSaid = 1 << 10

// say logs something about the run. What every run does is logged at the level debug alone: at info an ordinary run
// says nothing.
func (x *voice) say(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	x.sayOf(ctx, x.state().Step, level, message, attrs...)
}

// sayOf is say about a step that may be over by now; 0: about none.
func (x *voice) sayOf(ctx context.Context, step int, level slog.Level, message string, attrs ...slog.Attr) {
	if !x.says(ctx, level) {
		return
	}
	all := make([]slog.Attr, 0, 4+len(attrs))
	all = append(all, slog.String("tenant", x.run.Tenant), slog.String("task_id", x.run.Run))
	if step > 0 {
		all = append(all, slog.Int("step", step))
	}
	if x.state().Claims > 0 {
		all = append(all, slog.Int("attempt", x.state().Claims))
	}
	x.cfg.Log.LogAttrs(ctx, level, message, append(all, attrs...)...) //nolint:sloglint // a constant of the caller
}

// recount logs what became true with an entry of this owner.
func (x *voice) recount(ctx context.Context, records []record.Record) {
	for _, r := range records {
		x.recountOne(ctx, r)
	}
}

func (x *voice) recountOne(ctx context.Context, r record.Record) {
	switch r := r.(type) {
	case *record.ModelFailed:
		x.sayOf(ctx, r.Step, slog.LevelWarn, "model call failed", slog.String("code", string(r.Error.Code)), x.said("err", r.Error.Message))
	case *record.HookFailed:
		x.sayOf(ctx, r.Step, slog.LevelWarn, "hook failed", slog.String("hook", r.Hook), slog.String("on", string(r.On)), x.said("err", r.Reason),
			slog.Bool("fatal", r.Fatal))
	case *record.MemoryRecalled:
		if r.Error != "" {
			x.say(ctx, slog.LevelWarn, "long-term memory could not be searched", x.said("err", r.Error), slog.Bool("fatal", r.Fatal))
			return
		}
		x.debug(ctx, x.state().Step, "long-term memory searched", func() []slog.Attr {
			return []slog.Attr{slog.Int("found", len(r.Memories)), slog.Int64("millis", r.Millis)}
		})
	case *record.PolicyApplied:
		x.sayOf(ctx, r.Step, slog.LevelWarn, "policy applied", slog.String("action", r.Action), slog.String("point", string(r.Point)),
			slog.String("rule", r.Rule), slog.String("source", r.Source), x.said("tool", r.Tool))
	case *record.BudgetWarned:
		x.say(ctx, slog.LevelWarn, "budget is nearly used up", slog.String("limit", r.Limit), slog.Float64("spent", r.Spent),
			slog.Float64("allowed", r.Allowed))
	case *record.Parked:
		x.recountPark(ctx, r)
	case *record.ToolReturned:
		if r.Result.IsError {
			x.sayOf(ctx, r.Step, slog.LevelWarn, "tool failed", slog.String("tool", r.Name), slog.String("call_id", r.Result.CallID),
				slog.String("code", string(r.Code)), x.said("output", r.Result.Shown()))
			return
		}
		x.debug(ctx, r.Step, "tool returned", func() []slog.Attr {
			return []slog.Attr{slog.String("tool", r.Name), slog.String("call_id", r.Result.CallID), slog.Int64("millis", r.Millis)}
		})
	case *record.Finished:
		x.recountEnd(ctx, &r.Result)
	case *record.Claimed:
		x.debug(ctx, x.state().Step, "run claimed", func() []slog.Attr { return []slog.Attr{slog.Int("delivery", r.Delivery)} })
	case *record.ModelReplied:
		x.debug(ctx, r.Step, "model replied", func() []slog.Attr {
			return []slog.Attr{
				slog.String("model", r.Model), slog.String("stop", string(r.Stop)), slog.Int64("millis", r.Millis),
				slog.Int64("tokens", r.Usage.Total),
			}
		})
	case *record.ToolStarted:
		x.debug(ctx, r.Step, "tool started", func() []slog.Attr {
			return []slog.Attr{slog.String("tool", r.Call.Name), slog.String("call_id", r.Call.ID)}
		})
	default: // others are in the events, and need no line in the log
	}
}

// debug is sayOf for what happens in every run: its attributes are only made when they are logged.
func (x *voice) debug(ctx context.Context, step int, message string, attrs func() []slog.Attr) {
	if x.says(ctx, slog.LevelDebug) {
		x.sayOf(ctx, step, slog.LevelDebug, message, attrs()...)
	}
}

func (x *voice) recountPark(ctx context.Context, p *record.Parked) {
	attrs := []slog.Attr{slog.String("reason", p.Reason)}
	for _, a := range []slog.Attr{slog.String("call_id", p.Call), slog.String("limit", p.Limit), slog.String("line", p.Semaphore)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if p.Until != nil {
		attrs = append(attrs, slog.Time("until", p.Until.UTC()))
	}
	x.say(ctx, slog.LevelInfo, "run waits", attrs...)
}

func (x *voice) recountEnd(ctx context.Context, r *messages.AgentResult) {
	switch {
	case r.Status == messages.StatusCompleted:
		x.debug(ctx, x.state().Step, "run completed", func() []slog.Attr { return []slog.Attr{slog.Int("steps", r.Steps)} })
	case r.Error != nil:
		level := slog.LevelWarn
		if r.Status == messages.StatusCancelled {
			level = slog.LevelInfo
		}
		x.say(ctx, level, "run "+string(r.Status), slog.String("code", string(r.Error.Code)), x.said("err", r.Error.Message))
	default:
		x.say(ctx, slog.LevelInfo, "run "+string(r.Status))
	}
}

// setback logs and shows a model call that failed and is followed by another one for the same request.
func (x *voice) setback(ctx context.Context, live LiveReply) func(model.Retried) {
	return func(r model.Retried) {
		live.Retry(x.retryText(r))
		why := []slog.Attr{slog.String("model", r.Model), slog.String("code", string(r.Err.Code())), x.said("err", r.Err.Error())}
		if r.Wait == 0 {
			x.say(ctx, slog.LevelWarn, "model failed and another is asked", why...)
			return
		}
		again := []slog.Attr{slog.Int("try", r.Attempt), slog.Int64("wait_millis", r.Wait.Milliseconds())}
		x.say(ctx, slog.LevelWarn, "model call failed and is made again", append(why, again...)...)
	}
}
