package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Delegated names the children of a call before any of them exists, with all that they begin with. The park for them is in the
// same entry, unless something else comes before it.
type Delegated struct {
	Number    int         `json:"number"` // of the delegation in its run, from 1
	Step      int         `json:"step"`
	Call      string      `json:"call"`
	Need      int         `json:"need"`          // so many children must complete
	Any       bool        `json:"any,omitempty"` // or end in any way
	OnFailure string      `json:"onFailure,omitempty"`
	At        time.Time   `json:"at"`
	Agents    []Delegatee `json:"agents"` // each once
	Children  []Child     `json:"children"`
	// Used are tools that gave results in this run or above: what they said may be in the tasks.
	Used  []string   `json:"used,omitempty"`
	Rules []RulesFor `json:"rules,omitempty"` // of the agents of this run and above
}

// Delegatee is an agent as its children have it: what is left of it by what their parent may do.
type Delegatee struct {
	Definition messages.Definition `json:"definition"`
	Tools      []messages.ToolSpec `json:"tools,omitempty"` // empty: the first worker that has them says what they are
	Withheld   []string            `json:"withheld,omitempty"`
	Shown      *Shown              `json:"shown,omitempty"`
}

// Child is one of the children of a Delegated.
type Child struct {
	Agent int           `json:"agent"` // in Agents
	Task  messages.Task `json:"task"`
	Share Share         `json:"share,omitzero"`
}

// Share is what a parent sets aside for a child, from what it has left itself.
type Share struct {
	Cost   float64 `json:"cost,omitempty"` // in US dollars
	Tokens int64   `json:"tokens,omitempty"`
	Runs   int     `json:"runs,omitempty"` // below the child
}

// RulesFor is the policy of an agent.
type RulesFor struct {
	Agent  string           `json:"agent"`
	Policy *messages.Policy `json:"policy"`
}

// Parent says in the first record of a child whose child it is.
type Parent struct {
	Run    string          `json:"run"`
	Number int             `json:"number"` // of the delegation
	Index  int             `json:"index"`  // in its children
	Call   string          `json:"call"`
	Used   []string        `json:"used,omitempty"`
	Rules  []RulesFor      `json:"rules,omitempty"`
	Needs  *messages.Needs `json:"needs,omitempty"` // of the worker
}

// ChildEnded tells a parent how a child ended.
type ChildEnded struct {
	Number int             `json:"number"`
	Index  int             `json:"index"`
	Run    string          `json:"run"`
	Status messages.Status `json:"status"`
	Output string          `json:"output,omitempty"`
	Cut    bool            `json:"cut,omitempty"`

	Error  *messages.RunError `json:"error,omitempty"`
	Cost   *float64           `json:"cost,omitempty"` // of it and of the runs below it; nil: unknown
	Tokens int64              `json:"tokens,omitempty"`
	Runs   int                `json:"runs,omitempty"` // below it
	Used   []string           `json:"used,omitempty"` // tools that gave results in it or below
}

// Withdrawn ends a child whose parent no longer waits for it.
type Withdrawn struct {
	Parent string `json:"parent"` // it counts in a log that names this parent
	Reason string `json:"reason"`
}

// MaxChildOutput bounds the output of a child that its parent is told, in bytes.
const MaxChildOutput = 16 << 10

// maxKinName is how much of its parent's id is in that of a child.
const maxKinName = 32

// Kind implements Record.
func (*Delegated) Kind() Kind { return KindDelegated }

// Kind implements Record.
func (*ChildEnded) Kind() Kind { return KindChildEnded }

// Kind implements Record.
func (*Withdrawn) Kind() Kind { return KindWithdrawn }

// ChildRun is the id of a child. It follows from the run and the place of the child in it, so that who makes the child again makes
// the same.
func ChildRun(parent messages.Ref, number, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "child %s %s %d %d", parent.Tenant, parent.Run, number, index))
	return parent.Run[:min(len(parent.Run), maxKinName)] + "-" + hex.EncodeToString(sum[:10])
}

// Started is the first record of a child.
func (d *Delegated) Started(parent messages.Ref, index int) *Started {
	c := &d.Children[index]
	of := &d.Agents[c.Agent]
	return &Started{
		Task: c.Task, Agent: of.Definition, Tools: of.Tools, QueuedAt: d.At, Shown: of.Shown,
		Parent: &Parent{
			Run: parent.Run, Number: d.Number, Index: index, Call: d.Call, Used: d.Used, Rules: d.Rules,
			Needs: &messages.Needs{
				Tools: of.Definition.Tools, Labels: c.Task.Requires, Pinned: len(of.Tools) > 0 || len(of.Definition.Tools) == 0,
			},
		},
	}
}

// MaxEarlier bounds the calls of a run that have returned while children of theirs still run. A run that has so many delegates nothing more
// until one of them has none.
const MaxEarlier = 16

// Awaited is which children of a delegation have ended, as the head of the parent holds it.
type Awaited struct {
	Seq       uint64 `json:"seq,omitempty"` // of the entry that names them
	Number    int    `json:"number"`
	Of        int    `json:"of"` // children
	Need      int    `json:"need"`
	Any       bool   `json:"any,omitempty"`
	Ended     uint64 `json:"ended,omitempty"`     // a bit for each child
	Completed uint64 `json:"completed,omitempty"` // of those
}

// Awaits is what is waited for once the children are named.
func (d *Delegated) Awaits() Awaited {
	return Awaited{Number: d.Number, Of: len(d.Children), Need: d.Need, Any: d.Any}
}

// Has reports whether a child has ended; true for one that it does not know.
func (a *Awaited) Has(number, index int) bool {
	return a == nil || a.Number != number || index < 0 || index >= a.Of || a.Ended&(1<<index) != 0
}

// Add is a with the end of a child.
func (a *Awaited) Add(r *ChildEnded) Awaited {
	out := *a
	if a.Has(r.Number, r.Index) {
		return out
	}
	out.Ended |= 1 << r.Index
	if r.Status == messages.StatusCompleted {
		out.Completed |= 1 << r.Index
	}
	return out
}

// Open is how many have not ended.
func (a *Awaited) Open() int { return a.Of - bits.OnesCount64(a.Ended) }

// Left are the runs of a delegation that have not ended, in order; nil: there are none.
func (a *Awaited) Left(parent messages.Ref) (runs []string) {
	for i := range a.count() {
		if !a.Has(a.Number, i) {
			runs = append(runs, ChildRun(parent, a.Number, i))
		}
	}
	return runs
}

func (a *Awaited) count() int {
	if a == nil {
		return 0
	}
	return a.Of
}

// Enough reports whether the parent may continue: as many as it needs have completed, or no longer can.
func (a *Awaited) Enough() bool {
	ended, completed := bits.OnesCount64(a.Ended), bits.OnesCount64(a.Completed)
	if a.Any {
		return ended >= a.Of
	}
	return completed >= a.Need || ended-completed > a.Of-a.Need
}

// Met reports whether as many have completed as are needed.
func (a *Awaited) Met() bool {
	return a.Any && a.Enough() || !a.Any && bits.OnesCount64(a.Completed) >= a.Need
}

// Kin is the place of a child below its parent, as its head holds it.
type Kin struct {
	Run    string `json:"run"`
	Number int    `json:"number"`
	Index  int    `json:"index"`
}

// Delegations are those of which the head holds the ends, the newest last.
func (h *Head) Delegations() []Awaited {
	if h.Children == nil {
		return nil
	}
	return append(slices.Clone(h.Earlier), *h.Children)
}

// ChildTold reports whether a child has ended; true for one that the head does not know.
func (h *Head) ChildTold(number, index int) bool {
	for _, a := range h.Delegations() {
		if a.Number == number {
			return a.Has(number, index)
		}
	}
	return true
}

// childEnded takes an end that was not told before into account.
func (h *Head) childEnded(r *ChildEnded) {
	if r.Number == h.Children.Number {
		h.Children = new(h.Children.Add(r))
		return
	}
	var left []Awaited
	for i := range h.Earlier {
		a := h.Earlier[i].Add(r)
		if a.Open() > 0 {
			left = append(left, a)
		}
	}
	h.Earlier = left
}

func (d *Delegated) data() any {
	out := &messages.DelegatedData{CallID: named(d.Call), Step: d.Step, Need: d.Need, Number: d.Number}
	for i := range d.Children {
		c := &d.Children[i]
		out.Children = append(out.Children, messages.ChildRef{Run: c.Task.ID, Agent: d.Agents[c.Agent].Definition.Name, Cost: c.Share.Cost, Tokens: c.Share.Tokens})
	}
	return out
}

func (r *ChildEnded) data() any {
	d := &messages.ChildEndedData{Run: r.Run, Number: r.Number, Status: r.Status, Cost: r.Cost}
	d.Output, d.Truncated = strict.Fit(r.Output, messages.MaxEventText)
	d.Truncated = d.Truncated || r.Cut
	if r.Error != nil {
		d.Error = &messages.RunError{Code: r.Error.Code, Message: strict.Brief(r.Error.Message, messages.MaxEventArgs)}
	}
	return d
}

func (r *Withdrawn) data() any {
	return &messages.CancelAsked{By: named(r.Parent), Reason: strict.Brief(r.Reason, messages.MaxEventArgs)}
}

// Text says it in a sentence.
func (r *Withdrawn) Text() string { return "withdrawn by run " + r.Parent + ": " + r.Reason }
