// Package planner lets code decide what a run does next, where a model would be asked. [New] makes a model.Provider of a
// [Planner]: its decisions are recorded, bounded, retried and replayed as the replies of a model are, so they are made
// once, and a worker that takes a run over continues after the last of them. The Planner need not be pure: it may ask a
// rules engine, a database, or models.
//
// An agent with the planner "tools" asks it at every step, one with "plan" for a whole plan at the beginning. What it
// decides is checked as what a model wants is: unknown tools, wrong arguments, hooks, approvals, budgets. The planner
// "json" cannot be used.
package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/model"
)

// Family is the provider that replies of planners name; the model is the planner's name. A file of prices may price them.
const Family = "planner"

// Planner decides what a run does next. Safe for concurrent use: it plans for many runs.
type Planner interface {
	// Plan returns the next step. It must return soon after ctx ends. An error fails the call as that of a model does: a
	// *model.Error says how, any other is retried.
	Plan(ctx context.Context, s State) (Step, error)
}

// Func is a Planner.
type Func func(ctx context.Context, s State) (Step, error)

// Plan implements Planner.
func (f Func) Plan(ctx context.Context, s State) (Step, error) { return f(ctx, s) }

// State is what a decision is made of. It must not be changed.
type State struct {
	Tenant string
	// Messages are the conversation: instructions, the task, then each reply with the results of its calls.
	Messages []messages.Message
	Tools    []messages.ToolSpec // that may be called
	// Purpose is what an agent with the planner "plan" wants: a plan, a decision about it, or a summary. Empty: the next step.
	Purpose messages.Purpose
}

// Results are the results of the calls of the last step, in the order of the calls; none at the first.
func (s *State) Results() []messages.ToolResult {
	var out []messages.ToolResult
	for i := len(s.Messages) - 1; i >= 0 && s.Messages[i].Role == messages.RoleTool; i-- {
		var of []messages.ToolResult
		for _, b := range s.Messages[i].Content {
			if b.ToolResult != nil {
				of = append(of, *b.ToolResult)
			}
		}
		out = append(of, out...)
	}
	return out
}

// Step is a decision: Calls, Plan or Text.
type Step struct {
	Calls []messages.ToolCall // to make, in this order; those without an id get one
	Plan  *messages.Plan      // when State.Purpose is messages.PurposePlan
	Text  string              // the final answer; with Calls, the text that comes with them
	Usage messages.Usage      // tokens of models that the planner asked
}

// Config of a planner's provider. Name and Planner are needed.
type Config struct {
	Name    string // of the planner, as replies and events name it
	Planner Planner
	Log     *slog.Logger // of panics; default: discard
}

type provider struct{ cfg Config }

var _ model.Provider = (*provider)(nil)

// New makes a provider that asks the planner. A *messages.FieldError says what is missing.
func New(c Config) (model.Provider, error) {
	switch {
	case c.Name == "":
		return nil, &messages.FieldError{Field: "name", Reason: "is missing"}
	case c.Planner == nil:
		return nil, &messages.FieldError{Field: "planner", Reason: "is missing"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &provider{c}, nil
}

// Stream implements model.Provider.
func (p *provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		if r.Format != nil && r.Format.Schema == nil {
			yield(model.Delta{}, p.failure(model.InvalidRequest, "it works agents with the planner tools or plan, not json"))
			return
		}
		if err := r.Begins(); err != nil {
			yield(model.Delta{}, err)
			return
		}
		step, err := p.guarded(ctx, State{Tenant: r.Tenant, Messages: r.Messages, Tools: r.Tools, Purpose: r.Purpose})
		if ctx.Err() != nil {
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		var reply *model.Reply
		if err == nil {
			reply, err = p.reply(&step, r)
		}
		if err != nil {
			yield(model.Delta{}, p.modelError(err))
			return
		}
		if step.Text != "" && !yield(model.Delta{Text: step.Text}, nil) { // for those who watch
			return
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

// guarded is the one place where a panic of a planner ends.
func (p *provider) guarded(ctx context.Context, s State) (step Step, err error) {
	defer func() {
		if v := recover(); v != nil { // its value may hold anything, so it is not told
			p.cfg.Log.LogAttrs(ctx, slog.LevelError, "planner panicked", slog.String("planner", p.cfg.Name),
				slog.String("panic", fmt.Sprintf("%T", v)), slog.String("stack", string(debug.Stack())))
			err = p.failure(model.Unknown, "it panicked: a defect of the planner; the worker's log has the stack")
		}
	}()
	return p.cfg.Planner.Plan(ctx, s)
}

func (p *provider) modelError(err error) error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e
	}
	return p.failure(model.Unknown, err.Error())
}

func (p *provider) failure(class model.Class, text string) *model.Error {
	return &model.Error{Class: class, Detail: "planner " + p.cfg.Name + ": " + strict.Clip(text, maxDetail)}
}

// maxDetail bounds the text of a planner's error, in bytes.
const maxDetail = 1 << 10

// reply is a step in the form of a model's reply.
func (p *provider) reply(s *Step, r model.Request) (*model.Reply, error) {
	text := s.Text
	switch {
	case s.Plan != nil && r.Purpose != messages.PurposePlan:
		return nil, p.failure(model.ModelOutput, "it returned a plan, and none was asked for: the agent's planner must be plan")
	case s.Plan != nil && (len(s.Calls) > 0 || text != ""):
		return nil, p.failure(model.ModelOutput, "it returned a plan and something else")
	case s.Plan != nil:
		plan, err := json.Marshal(s.Plan)
		if err != nil {
			return nil, p.failure(model.ModelOutput, "its plan cannot be encoded: "+err.Error())
		}
		text = string(plan)
	case len(s.Calls) > 0 && r.Purpose != "":
		return nil, p.failure(model.ModelOutput, "it returned calls, and a "+string(r.Purpose)+" was asked for")
	case len(s.Calls) == 0 && text == "":
		return nil, p.failure(model.ModelOutput, "it returned nothing: a step needs calls, a plan or a text")
	}
	m := messages.Message{Role: messages.RoleAssistant}
	if text != "" {
		m.Content = messages.TextContent(text)
	}
	stop, turn := messages.StopEnd, 1
	for i := range r.Messages {
		if r.Messages[i].Role == messages.RoleAssistant {
			turn++
		}
	}
	for i, c := range s.Calls {
		stop = messages.StopToolCalls
		if c.ID == "" {
			c.ID = "call-" + strconv.Itoa(turn) + "-" + strconv.Itoa(i+1)
		}
		m.Content = append(m.Content, messages.Block{ToolCall: &c})
	}
	return &model.Reply{Message: m, Stop: stop, Usage: s.Usage, Provider: Family, Model: p.cfg.Name}, nil
}
