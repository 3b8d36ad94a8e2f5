package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Approve says which calls of an agent wait for an approval. By default calls of destructive tools do.
type Approve struct {
	Always  []string `json:"always,omitempty"`  // tools whose calls wait too
	Never   []string `json:"never,omitempty"`   // destructive tools whose calls do not
	Edit    []string `json:"edit,omitempty"`    // tools whose calls may be approved with other arguments; default none
	Expires Duration `json:"expires,omitempty"` // how long the run waits; default 24h
	OnDeny  string   `json:"onDeny,omitempty"`  // "continue" (default): a refusal is the tool's answer; "end": it ends the run
}

// Values of Approve.OnDeny.
const (
	OnDenyContinue = "continue"
	OnDenyEnd      = "end"
)

// DefaultApprovalExpires is how long a call waits for its approval.
const DefaultApprovalExpires = 24 * time.Hour

const (
	minApprovalExpires = Duration(time.Second)
	maxApprovalExpires = Duration(366 * 24 * time.Hour)
)

// AsksFor reports whether a call of a tool waits for an approval. A tool that is not one of the agent's is refused anyway.
func (d *Definition) AsksFor(tools []ToolSpec, name string) bool {
	i := slices.IndexFunc(tools, func(s ToolSpec) bool { return s.Name == name })
	switch {
	case i < 0:
		return false
	case d.Approve == nil:
		return tools[i].Destructive
	case slices.Contains(d.Approve.Always, name):
		return true
	default:
		return tools[i].Destructive && !slices.Contains(d.Approve.Never, name)
	}
}

// ApprovalExpires is how long a call waits for its approval.
func (d *Definition) ApprovalExpires() time.Duration {
	if d.Approve == nil || d.Approve.Expires == 0 {
		return DefaultApprovalExpires
	}
	return time.Duration(d.Approve.Expires)
}

// LetsEdit reports whether the agent lets a call of a tool be approved with other arguments.
func (d *Definition) LetsEdit(name string) bool {
	return d.Approve != nil && slices.Contains(d.Approve.Edit, name)
}

// DenialEnds reports whether a refused approval ends the run.
func (d *Definition) DenialEnds() bool { return d.Approve != nil && d.Approve.OnDeny == OnDenyEnd }

func (d *Definition) checkApprove() error {
	a := d.Approve
	if a == nil {
		return nil
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"approve.always", a.Always}, {"approve.never", a.Never}, {"approve.edit", a.Edit}} {
		for i, name := range list.names {
			field := fmt.Sprintf("%s[%d]", list.field, i)
			switch {
			case !slices.Contains(d.Tools, name):
				return &FieldError{Field: field, Reason: fmt.Sprintf("%q is none of the agent's tools", strict.Shown(name))}
			case slices.Index(list.names, name) != i:
				return &FieldError{Field: field, Reason: "named twice"}
			}
		}
	}
	for i, name := range a.Never {
		if slices.Contains(a.Always, name) {
			return &FieldError{Field: fmt.Sprintf("approve.never[%d]", i), Reason: "is in approve.always too"}
		}
	}
	switch {
	case a.Expires != 0 && (a.Expires < minApprovalExpires || a.Expires > maxApprovalExpires):
		return &FieldError{Field: "approve.expires", Reason: fmt.Sprintf("must be %s to %s", minApprovalExpires, maxApprovalExpires)}
	case a.OnDeny != "" && a.OnDeny != OnDenyContinue && a.OnDeny != OnDenyEnd:
		return &FieldError{Field: "approve.onDeny", Reason: "must be continue or end"}
	}
	return nil
}

// Approval is what a parked call asks people for.
type Approval struct {
	Agent     string `json:"agent"`
	Step      int    `json:"step"`
	StepID    string `json:"stepId,omitempty"` // of the plan's step
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // to be read by people, cut to 8 KiB
	Hash      string `json:"hash"`      // HashArguments of the whole
	// Editable says that the call may be approved with other arguments.
	Editable bool `json:"editable,omitempty"`
}

// NewApproval asks for a call.
func NewApproval(agent string, step int, stepID string, c ToolCall) *Approval {
	return &Approval{
		Agent: agent, Step: step, StepID: stepID, Tool: c.Name, Arguments: strict.Clip(c.Arguments, MaxEventText), Hash: HashArguments(c.Arguments),
	}
}

// HashArguments is the SHA-256 of a call's arguments, in hex. Spacing and the order of keys do not count.
func HashArguments(arguments string) string {
	sum := sha256.Sum256(strict.Canonical(json.RawMessage(arguments)))
	return hex.EncodeToString(sum[:])
}

// Outcomes of an approval, in events.
const (
	Approved = "approved"
	Denied   = "denied"
	Lapsed   = "expired"
)

// What a model is told about a call that was not made.
const (
	TextDenied = "User denied approval"
	TextLapsed = "No approval came in time, and the call was not made."
)

// Data of the events about approvals.
type (
	// ApprovalRequested is the data of approval_requested.
	ApprovalRequested struct {
		StepID    string     `json:"stepId"`
		Agent     string     `json:"agent"`
		CallID    string     `json:"callId"`
		ToolName  string     `json:"toolName"`
		Arguments string     `json:"arguments"`
		Truncated bool       `json:"truncated,omitempty"` // the arguments are
		Hash      string     `json:"hash"`                // of the whole arguments
		Editable  bool       `json:"editable,omitempty"`  // the call may be approved with other arguments
		Until     *time.Time `json:"until,omitempty"`
	}
	// ApprovalDecided is the data of approval_decided.
	ApprovalDecided struct {
		CallID   string `json:"callId"`
		Decision string `json:"decision"` // approved, denied or expired
		By       string `json:"by,omitempty"`
		Reason   string `json:"reason,omitempty"`
		// Arguments take the place of those that were asked about; absent: they stay.
		Arguments string `json:"arguments,omitempty"`
		Truncated bool   `json:"truncated,omitempty"` // the arguments are
	}
)

// MaxEdited bounds the arguments with which a person approves a call in place of those of the model, in bytes.
const MaxEdited = 256 << 10
