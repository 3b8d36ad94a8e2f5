package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Delegation is a call that handed sub-tasks to other agents, and what came of them so far.
type Delegation struct {
	Await     record.Awaited `json:"await"`
	Step      int            `json:"step"`
	Call      string         `json:"call"`
	OnFailure string         `json:"onFailure,omitempty"`
	Children  []ChildState   `json:"children"`
	Done      bool           `json:"done,omitempty"` // the call has returned
}

// ChildState is one of the children of a Delegation.
type ChildState struct {
	messages.ChildResult
	Share record.Share `json:"share,omitzero"` // set aside until it has ended
}

// CollectChildren ends the children that are no longer waited for, and makes the result of the call that delegated to them. The
// performer puts it in the place of a planner's action.
type CollectChildren struct{ Call string }

func (*CollectChildren) action() {}

func (d *Delegation) clone() *Delegation {
	if d == nil {
		return nil
	}
	c := *d
	c.Children = slices.Clone(d.Children)
	return &c
}

// Delegated is the delegation of an open call; nil: it has not delegated yet.
func (s *State) Delegated(call string) *Delegation {
	if d := s.Delegation; d != nil && !d.Done && d.Step == s.Step && d.Call == call {
		return d
	}
	return nil
}

func (s *State) delegated(r *record.Delegated) {
	d := &Delegation{Await: r.Awaits(), Step: r.Step, Call: r.Call, OnFailure: r.OnFailure}
	for i := range r.Children {
		c := &r.Children[i]
		d.Children = append(d.Children, ChildState{
			messages.ChildResult{Agent: r.Agents[c.Agent].Definition.Name, Run: c.Task.ID, Status: messages.StatusRunning}, c.Share,
		})
		s.Held.Cost = messages.AddCost(s.Held.Cost, c.Share.Cost)
		s.Held.Tokens += c.Share.Tokens
		s.Held.Runs += c.Share.Runs
	}
	s.Below.Runs += len(r.Children)
	if before := s.Delegation; before != nil && before.Await.Open() > 0 {
		for i := range before.Children { // the model was told
			before.Children[i].Output = ""
		}
		s.Earlier = append(s.Earlier, before)
	}
	s.Delegation = d
	s.Delegations++
}

// Ending is how many calls have returned while children of theirs still run.
func (s *State) Ending() int {
	if d := s.Delegation; d != nil && d.Done && d.Await.Open() > 0 {
		return len(s.Earlier) + 1
	}
	return len(s.Earlier)
}

// delegation is the one with a number; nil: all of its children have ended, or there is none.
func (s *State) delegation(number int) *Delegation {
	if d := s.Delegation; d != nil && d.Await.Number == number {
		return d
	}
	for _, d := range s.Earlier {
		if d.Await.Number == number {
			return d
		}
	}
	return nil
}

func (s *State) childEnded(r *record.ChildEnded) {
	d := s.delegation(r.Number)
	if d == nil || d.Await.Has(r.Number, r.Index) || r.Index >= len(d.Children) {
		return
	}
	d.Await = d.Await.Add(r)
	c := &d.Children[r.Index]
	c.Status, c.Output, c.Cut, c.Error, c.Cost = r.Status, r.Output, r.Cut, r.Error, r.Cost
	s.Below.Tokens += r.Tokens
	s.Below.Runs += r.Runs
	s.Held.Tokens -= c.Share.Tokens
	s.Held.Runs -= c.Share.Runs
	if r.Cost != nil { // else what was set aside stays so
		s.Below.Cost = messages.AddCost(s.Below.Cost, *r.Cost)
		s.Held.Cost = messages.AddCost(s.Held.Cost, -c.Share.Cost)
	}
	s.inherit(r.Used)
	s.Earlier = slices.DeleteFunc(slices.Clone(s.Earlier), func(d *Delegation) bool { return d.Await.Open() == 0 })
}

// inherit adds tools whose results may be in what the run has been told.
func (s *State) inherit(used []string) {
	for _, name := range used {
		if at, had := slices.BinarySearch(s.Inherited, name); !had {
			s.Inherited = slices.Insert(slices.Clip(s.Inherited), at, name)
		}
	}
}

// Had are the tools whose results may be in what the run has been told: its own, and those of runs above and below and of earlier ones of
// its session.
func (s *State) Had() []string {
	all := slices.Concat(s.Used, s.Inherited)
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *State) costSpent() float64 {
	return messages.AddCost(s.Cost, messages.AddCost(s.Below.Cost, s.Held.Cost))
}

func (s *State) tokensSpent() float64 {
	return float64(s.Usage.Total + s.Below.Tokens + s.Held.Tokens)
}

// Counts are how many children have ended, and how many of them have completed.
func (d *Delegation) Counts() (ended, completed int) {
	return bits.OnesCount64(d.Await.Ended), bits.OnesCount64(d.Await.Completed)
}

// Answer is what a delegation that has waited enough tells the model: a list of ChildResult as JSON.
func (d *Delegation) Answer() (text string, isError bool) {
	out := make([]messages.ChildResult, len(d.Children))
	for i := range d.Children {
		if out[i] = d.Children[i].ChildResult; !out[i].Status.Ended() {
			out[i].Status = messages.StatusCancelled
			out[i].Error = &messages.RunError{Code: messages.CodeCancelled, Message: "it was no longer waited for"}
		}
	}
	b, err := json.Marshal(out)
	if err != nil { // our own types always encode
		return fmt.Sprintf("The results cannot be shown: %v.", err), true
	}
	return string(b), d.OnFailure == messages.OnChildFail && !d.Await.Met()
}

// Share divides what the run has left among n children. It sets limits only where the run has some. Failure is for the model; empty: there
// is enough.
func (s *State) Share(n int) (each record.Share, limits *messages.Limits, failure string) {
	left := s.Agent.Delegate.Runs() - s.Below.Runs - s.Held.Runs
	if left < n {
		return each, nil, fmt.Sprintf("There may be %d runs below this one, of which %d are left: hand out fewer sub-tasks.", s.Agent.Delegate.Runs(), max(0, left))
	}
	if s.Agent.Delegate.Levels() > 1 { // else they cannot delegate
		each.Runs = (left - n) / n
	}
	caps := s.Agent.Caps(s.Task.Limits)
	limits = &messages.Limits{MaxSteps: max(1, s.Agent.Steps(s.Task.Limits)-s.Step)}
	if allowed := s.granted(messages.CapTokens, float64(caps.Tokens)); allowed >= 0 {
		each.Tokens = int64((allowed - s.tokensSpent()) / float64(n))
		if each.Tokens < 1 {
			return each, nil, "The budget of tokens leaves nothing for sub-tasks."
		}
		limits.Tokens = each.Tokens
	}
	if allowed := s.grantedCost(caps.Cost); allowed >= 0 {
		const unit = 1e9 // as RoundCost, and never more than there is
		each.Cost = math.Floor((allowed-s.costSpent())/float64(n)*unit) / unit
		if each.Cost <= 0 && allowed > 0 {
			return each, nil, "The budget leaves no money for sub-tasks."
		}
		each.Cost = max(0, each.Cost)
		limits.Cost = new(each.Cost)
	}
	return each, limits, ""
}
