package record

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Decided is what a person said about a call that waits for an approval. It counts for that call with these arguments in
// this park, and once.
type Decided struct {
	ID     string `json:"id"`   // control id: a record of the same id is the same decision
	Park   uint64 `json:"park"` // sequence of the Parked entry that asks
	Step   int    `json:"step"`
	Call   string `json:"call"`
	Hash   string `json:"hash"`             // of the arguments with which the call is made
	Denied bool   `json:"denied,omitempty"` // else it is approved
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Arguments take the place of those that the park asks about, whose hash Asked then is. Hash is theirs: a worker that does not know
	// these two fields finds a decision about other arguments, and asks again.
	Arguments string `json:"arguments,omitempty"`
	Asked     string `json:"asked,omitempty"`
	// Until is when the park expires: from then on no decision is recorded.
	Until *time.Time `json:"until,omitempty"`
}

// Kind implements Record.
func (*Decided) Kind() Kind { return KindDecided }

// Late reports whether it is too late to record the decision.
func (d *Decided) Late(now time.Time) bool { return d.Until != nil && !now.Before(*d.Until) }

// Matches reports whether the decision is about what a park asks for. Other arguments it may only approve, and only where the park says so.
func (d *Decided) Matches(p *Parked) bool {
	a := p.Approval
	if a == nil || d.Call != p.Call || d.Step != a.Step || d.About() != a.Hash {
		return false
	}
	return !d.Edits() || a.Editable && !d.Denied && d.Hash == messages.HashArguments(d.Arguments)
}

// Edits reports whether the call is to be made with other arguments than the model gave it.
func (d *Decided) Edits() bool { return d.Arguments != "" }

// About is the hash of the arguments that the decision is about.
func (d *Decided) About() string {
	if d.Edits() {
		return d.Asked
	}
	return d.Hash
}

// Outcome is Approved or Denied.
func (d *Decided) Outcome() string {
	if d.Denied {
		return messages.Denied
	}
	return messages.Approved
}

// Text says a refusal in a sentence, for a model.
func (d *Decided) Text() string {
	if d.Reason == "" {
		return messages.TextDenied
	}
	return messages.TextDenied + ": " + d.Reason
}

func (p *Parked) asks() any {
	a := p.Approval
	d := messages.ApprovalRequested{
		StepID: stepIn(a.Step, a.StepID), Agent: named(a.Agent), CallID: named(p.Call), ToolName: named(a.Tool), Hash: named(a.Hash), Until: p.Until,
		Editable: a.Editable,
	}
	d.Arguments, d.Truncated = strict.Fit(a.Arguments, messages.MaxEventText)
	return d
}

func (d *Decided) data() any {
	e := messages.ApprovalDecided{
		CallID: named(d.Call), Decision: d.Outcome(), By: strict.Brief(d.By, messages.MaxEventArgs), Reason: strict.Brief(d.Reason, messages.MaxEventArgs),
	}
	e.Arguments, e.Truncated = strict.Fit(d.Arguments, messages.MaxEventText)
	return e
}
