package control

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// SubjectSteer is where a run is told something. SteerRequest -> RunStatus; conflict when it has ended or not begun.
const SubjectSteer = "longshore.steer"

// MaxSteer bounds one message to a run, in bytes.
const MaxSteer = 64 << 10

// SteerRequest tells a run something while it works: the model reads it before its next call.
type SteerRequest struct {
	Tenant  string `json:"tenant,omitempty"` // default "default"
	ID      string `json:"id"`
	Message string `json:"message"`
	By      string `json:"by,omitempty"`
	// Control makes it safe to ask again: the same message under the same id counts once and succeeds.
	Control string `json:"control,omitempty"`
}

// Validate returns a *FieldError for the first field that is wrong; run and tenant are checked by Ref.
func (r *SteerRequest) Validate() error {
	if r.Message == "" {
		return &messages.FieldError{Field: "message", Reason: "is empty"}
	}
	if err := strict.CheckText("message", r.Message, MaxSteer); err != nil {
		return err
	}
	return checkSaid(r.By, "", r.Control)
}
