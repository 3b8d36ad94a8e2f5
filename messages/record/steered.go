package record

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Steered is a message to a run that works or waits. It does not end a wait.
type Steered struct {
	ID      string `json:"id"` // control id: a record of the same id is the same message
	By      string `json:"by,omitempty"`
	Message string `json:"message"`
}

// Kind implements Record.
func (*Steered) Kind() Kind { return KindSteered }

func (r *Steered) data() any {
	d := messages.SteeredData{ID: named(r.ID), By: strict.Brief(r.By, messages.MaxEventArgs)}
	d.Message, d.Truncated = strict.Fit(r.Message, messages.MaxEventText)
	return d
}
