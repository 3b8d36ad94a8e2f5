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
	Hash   string `json:"hash"`             // of the arguments
	Denied bool   `json:"denied,omitempty"` // else it is approved
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Until is when the park expires: from then on no decision is recorded.
	Until *time.Time `json:"until,omitempty"`
}

// Kind implements Record.
func (*Decided) Kind() Kind { return KindDecided }

// Late reports whether it is too late to record the decision.
func (d *Decided) Late(now time.Time) bool { return d.Until != nil && !now.Before(*d.Until) }

// Matches reports whether the decision is about what a park asks for.
func (d *Decided) Matches(p *Parked) bool {
	a := p.Approval
	return a != nil && d.Call == p.Call && d.Step == a.Step && d.Hash == a.Hash
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
	}
	d.Arguments, d.Truncated = strict.Fit(a.Arguments, messages.MaxEventText)
	return d
}

func (d *Decided) data() any {
	return messages.ApprovalDecided{
		CallID: named(d.Call), Decision: d.Outcome(), By: strict.Brief(d.By, messages.MaxEventArgs), Reason: strict.Brief(d.Reason, messages.MaxEventArgs),
	}
}
