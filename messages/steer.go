package messages

import "github.com/longshore-run/longshore/messages/strict"

// SubjectSteer is where a run is told something. SteerRequest -> RunStatus; conflict when it has ended or not begun.
const SubjectSteer = "longshore.steer"

// Limits of what a run is told.
const (
	MaxSteer  = 64 << 10 // bytes of one message
	MaxSteers = 100      // messages of one run
)

// EventSteered is the name of the event that a message to a run has.
const EventSteered = "steered"

// SteerRequest tells a run something while it goes on: the model reads it before its next call.
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
		return &FieldError{Field: "message", Reason: "is empty"}
	}
	if err := strict.CheckText("message", r.Message, MaxSteer); err != nil {
		return err
	}
	return checkSaid(r.By, "", r.Control)
}

// SteeredData is the data of steered.
type SteeredData struct {
	ID        string `json:"id"` // of the message
	By        string `json:"by,omitempty"`
	Message   string `json:"message"`
	Truncated bool   `json:"truncated,omitempty"` // the message is
}
