package control

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// ForkRequest asks for a new run that begins with the steps of another one before At.
type ForkRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	ID     string `json:"id"`               // of the run to fork
	At     int    `json:"at"`               // the first step that is made anew, from 1; the run must have begun it
	// Call is one of that step that waited for a person. The step is then kept until it waited: the fork asks again, and may get another
	// answer or decision.
	Call     string `json:"call,omitempty"`
	Agent    string `json:"agent,omitempty"` // whose definition holds from then on; default: that of the run
	Revision uint64 `json:"revision,omitempty"`
	Model    string `json:"model,omitempty"` // in place of the agent's models
	NewID    string `json:"newId,omitempty"` // of the new run; generated when absent
}

// Check returns a *FieldError for the first field that is wrong.
func (r *ForkRequest) Check() error {
	if r.At < 1 || r.At > messages.MaxStepsOf {
		return &messages.FieldError{Field: "at", Reason: "must be the number of a step, from 1"}
	}
	if err := strict.CheckText("call", r.Call, maxCallID); err != nil {
		return err
	}
	for _, f := range []struct{ name, value string }{{"agent", r.Agent}, {"newId", r.NewID}} {
		if f.value == "" {
			continue
		}
		if err := strict.CheckToken(f.name, f.value); err != nil {
			return err
		}
	}
	if r.NewID == messages.NoRun {
		return &messages.FieldError{Field: "newId", Reason: "_ is reserved: choose another id"}
	}
	if r.Revision != 0 && r.Agent == "" {
		return &messages.FieldError{Field: "revision", Reason: "needs the name of an agent"}
	}
	return strict.CheckText("model", r.Model, messages.MaxModel)
}

// ForkReply answers a fork.
type ForkReply struct {
	Tenant    string          `json:"tenant"`
	ID        string          `json:"id"` // of the new run
	From      messages.Origin `json:"from"`
	Kept      int             `json:"kept"`                // records
	Duplicate bool            `json:"duplicate,omitempty"` // the same fork had been made before
}
