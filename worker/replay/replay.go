// Package replay reads the log of a run again. [Steps] tells what each step saw, decided and got; [Check] plans again
// with the code of today, wherever an owner decided, and finds the first place where it would decide otherwise.
//
// It is pure: it takes entries, calls no model and no tool, and changes nothing. A log does not hold the requests to
// the model, which follow from it: what a step saw is what today's planner would send.
package replay

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
)

// Step is one turn of a run.
type Step struct {
	Step    int        `json:"step"` // from 1; 0: the run never began one
	Seq     uint64     `json:"seq"`  // of the entry with which it began
	At      time.Time  `json:"at"`
	Kept    bool       `json:"kept,omitempty"` // it is of the run from which this one was forked; its times are the fork's
	Saw     *Saw       `json:"saw,omitempty"`  // absent when the planner of the run is not known here
	Decided []Decision `json:"decided"`
	Came    []Fact     `json:"came"`
}

// Saw is what was sent to the model.
type Saw struct {
	Messages int                `json:"messages"`
	Bytes    int                `json:"bytes"` // of their content as JSON
	Tools    []string           `json:"tools,omitempty"`
	Format   string             `json:"format,omitempty"` // the name of the schema of the reply, if it has one
	Full     []messages.Message `json:"full,omitempty"`
}

// Decision is what the owner decided.
type Decision struct {
	Seq    uint64             `json:"seq"`
	At     time.Time          `json:"at"`
	Action string             `json:"action"` // call_model, call_tool, park, finish
	Text   string             `json:"text,omitempty"`
	Call   *messages.ToolCall `json:"call,omitempty"`
}

// Fact is what was recorded besides.
type Fact struct {
	Seq    uint64              `json:"seq"`
	At     time.Time           `json:"at"`
	Kind   record.Kind         `json:"kind"`
	Text   string              `json:"text,omitempty"`
	Calls  []messages.ToolCall `json:"calls,omitempty"` // that the model wants
	Usage  *messages.Usage     `json:"usage,omitempty"`
	Cost   *float64            `json:"cost,omitempty"` // in US dollars
	Code   messages.Code       `json:"code,omitempty"`
	Millis int64               `json:"millis,omitempty"`
}

// maxText is how much of a text is shown unless all of it is wanted, in bytes.
const maxText = 200

// Steps yields the steps of a log, oldest first; full has every text whole, and what the model saw. It ends with the
// first error: one of entries, or of a log that does not fold.
func Steps(entries iter.Seq2[record.Entry, error], full bool) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		t := teller{full: full}
		more := true
		err := walk(entries, func(p *point) bool {
			if done := t.tell(p); done != nil {
				more = yield(*done, nil)
			}
			return more
		})
		switch {
		case !more:
		case err != nil:
			yield(Step{}, err)
		case t.step != nil:
			yield(*t.step, nil)
		case len(t.early) > 0:
			yield(Step{Seq: t.early[0].Seq, At: t.early[0].At, Decided: t.decided, Came: t.early}, nil)
		}
	}
}

// point is a record in its place.
type point struct {
	entry  *record.Entry
	record record.Record
	kept   bool         // of the run from which this one was forked
	state  *agent.State // before the record
	after  func() (*agent.State, error)
}

// walk visits every record with the state before it, until visit is false. After advances that state, once.
func walk(entries iter.Seq2[record.Entry, error], visit func(*point) bool) error {
	s := &agent.State{}
	for e, err := range entries {
		if err != nil {
			return err
		}
		if s.Seq != 0 && e.Seq <= s.Seq {
			return fmt.Errorf("fold entry %d: it does not follow %d", e.Seq, s.Seq)
		}
		if s.Seq == 0 {
			s.StartedAt = e.Head.Time
		}
		for r, kept := range flat(e.Records) {
			if s.Result != nil {
				return nil // nothing after the end counts
			}
			advanced := false
			p := &point{entry: &e, record: r, kept: kept, state: s}
			p.after = func() (*agent.State, error) {
				if advanced {
					return s, nil
				}
				advanced = true
				if err := s.Advance(r); err != nil {
					return s, fmt.Errorf("fold entry %d: %w", e.Seq, err)
				}
				return s, nil
			}
			more := visit(p)
			if _, err := p.after(); err != nil || !more {
				return err
			}
		}
		s.Seq, s.Head = e.Seq, e.Head
	}
	return nil
}

// flat yields records, and those that a fork has kept after the one that holds them.
func flat(rs []record.Record) iter.Seq2[record.Record, bool] {
	return func(yield func(record.Record, bool) bool) {
		for _, r := range rs {
			first, ok := r.(*record.Started)
			if !ok || len(first.Prefix) == 0 {
				if !yield(r, false) {
					return
				}
				continue
			}
			bare := *first
			bare.Prefix = nil
			if !yield(&bare, false) {
				return
			}
			for _, kept := range first.Prefix {
				if !yield(kept, true) {
					return
				}
			}
		}
	}
}

// plan is what today's planner would do where something was decided; nil: there is nothing to plan on, or the planner is
// unknown. Whether a run takes turns in its session, its log shows.
func plan(s *agent.State, decided record.Record) agent.Action {
	if s.Task == nil || s.Agent == nil || len(s.Transcript) == 0 || s.Result != nil {
		return nil
	}
	p := agent.Planners()[s.Agent.Planner]
	if p == nil {
		return nil
	}
	park, waits := decided.(*record.Parked)
	return s.Next(p, s.Turn || waits && park.Reason == queue.ParkSession)
}

// teller gathers steps.
type teller struct {
	full    bool
	early   []Fact // before the first step
	decided []Decision
	step    *Step
}

// tell takes a record; it returns the step before when another one begins.
func (t *teller) tell(p *point) (done *Step) {
	seq, at := p.entry.Seq, p.entry.Head.Time
	decide := func(d Decision) {
		d.Seq, d.At = seq, at
		if t.step == nil {
			t.decided = append(t.decided, d)
			return
		}
		t.step.Decided = append(t.step.Decided, d)
	}
	switch r := p.record.(type) {
	case *record.StepStarted:
		done = t.step
		t.step = &Step{Step: r.Step, Seq: seq, At: at, Kept: p.kept, Decided: t.decided, Came: t.early}
		t.decided, t.early = nil, nil
		if s, err := p.after(); err == nil {
			t.step.Saw = t.saw(s)
		}
		decide(Decision{Action: "call_model"})
	case *record.ToolStarted:
		decide(Decision{Action: "call_tool", Text: r.Call.Name, Call: t.call(r.Call)})
	case *record.Parked:
		decide(Decision{Action: "park", Text: r.Reason})
	case *record.Finished:
		decide(Decision{Action: "finish", Text: t.cut(ending(&r.Result))})
	case *record.StepEnded:
	default:
		f := t.fact(p.record)
		f.Seq, f.At, f.Kind = seq, at, p.record.Kind()
		if t.step == nil {
			t.early = append(t.early, f)
		} else {
			t.step.Came = append(t.step.Came, f)
		}
	}
	if t.step != nil && t.step.Came == nil {
		t.step.Came = []Fact{}
	}
	return done
}

func (t *teller) saw(s *agent.State) *Saw {
	a, ok := plan(s, nil).(*agent.CallModel)
	if !ok {
		return nil
	}
	saw := &Saw{Messages: len(a.Messages)}
	for i := range a.Messages {
		if b, err := json.Marshal(a.Messages[i].Content); err == nil {
			saw.Bytes += len(b)
		}
	}
	for _, tool := range a.Tools {
		saw.Tools = append(saw.Tools, tool.Name)
	}
	if a.Format != nil {
		saw.Format = a.Format.Name
	}
	if t.full {
		saw.Full = append(saw.Full, a.Messages...)
	}
	return saw
}

func (t *teller) fact(r record.Record) Fact {
	switch r := r.(type) {
	case *record.Started:
		text := fmt.Sprintf("agent %s, revision %d: %s", r.Agent.Name, r.Agent.Revision, r.Task.Input.Shown())
		if o := r.ForkedFrom; o != nil {
			text = fmt.Sprintf("forked from run %s at step %d; %s", o.Run, o.Step, text)
		}
		return Fact{Text: t.cut(text)}
	case *record.Claimed:
		return Fact{Text: "by " + r.Worker}
	case *record.ModelReplied:
		f := Fact{Text: t.cut(r.Message.Text()), Usage: &r.Usage, Cost: r.Cost, Millis: r.Millis}
		for _, c := range r.Message.Calls() {
			f.Calls = append(f.Calls, *t.call(c))
		}
		return f
	case *record.ModelFailed:
		return Fact{Text: t.cut(r.Error.Message), Code: r.Error.Code}
	case *record.ToolReturned:
		return Fact{Text: t.cut(r.Name + ": " + r.Result.Shown()), Code: r.Code, Millis: r.Millis}
	default: // whatever records there will be
		b, err := json.Marshal(r)
		if err != nil {
			return Fact{}
		}
		return Fact{Text: t.cut(string(b))}
	}
}

func (t *teller) call(c messages.ToolCall) *messages.ToolCall {
	c.Arguments = t.cut(c.Arguments)
	return &c
}

func (t *teller) cut(s string) string {
	if t.full {
		return s
	}
	return strict.Clip(s, maxText)
}

// ending is how a run ended, in words.
func ending(r *messages.AgentResult) string {
	text := string(r.Status)
	if r.Error != nil {
		return fmt.Sprintf("%s (%s): %s", text, r.Error.Code, r.Error.Message)
	}
	if answer, ok := r.Result.(string); ok {
		text += ": " + answer
	}
	return text
}
