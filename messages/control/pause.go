package control

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about pauses, of the dispatcher's micro service.
const (
	SubjectPauses = "longshore.pauses" // {} -> PauseList
	SubjectPause  = "longshore.pause"  // PauseRequest -> PausedThing; what is paused already stays as it is
	SubjectResume = "longshore.resume" // PauseRequest -> PausedThing as it was; not_found when it is not paused
)

// PauseRequest names what is to be paused or resumed.
type PauseRequest struct {
	queue.QuotaRef
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check says which field is wrong.
func (r *PauseRequest) Check() error {
	if err := r.QuotaRef.Check(); err != nil {
		return err
	}
	if len(r.By)+len(r.Reason) > queue.MaxPauseText {
		return &messages.FieldError{Field: "reason", Reason: "is too long"}
	}
	if err := strict.CheckText("by", r.By, queue.MaxPauseText); err != nil {
		return err
	}
	return strict.CheckText("reason", r.Reason, queue.MaxPauseText)
}

// PausedThing is a tenant, an agent or a provider that is paused.
type PausedThing struct {
	queue.QuotaRef
	queue.Pause
}

// PauseList is all that is paused, by kind and name.
type PauseList struct {
	Pauses []PausedThing `json:"pauses"`
}
