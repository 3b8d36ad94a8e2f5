package control

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about the workers of the fleet.
const (
	SubjectWorkers     = "longshore.workers"       // {} -> WorkerList
	SubjectWorkerDrain = "longshore.workers.drain" // WorkerDrain -> WorkerStatus; not_found, or conflict when several have the name
	SubjectTools       = "longshore.tools"         // {} -> ToolList
)

// WorkerList is the workers that answered, by name.
type WorkerList struct {
	Workers []messages.WorkerStatus `json:"workers"`
}

// ToolList is the tools that workers offer, by name.
type ToolList struct {
	Tools []OfferedTool `json:"tools"`
}

// OfferedTool is a tool as workers tell it.
type OfferedTool struct {
	messages.ToolSpec
	Workers int  `json:"workers"`           // that offer it
	Differs bool `json:"differs,omitempty"` // not all of them tell it alike: this is how one does
}

// WorkerDrain asks one worker to take nothing new, hand its runs back and end.
type WorkerDrain struct {
	Worker string `json:"worker"` // its id, or its name when no other has it
}

// Check returns a *FieldError when the worker cannot be one.
func (r WorkerDrain) Check() error {
	if r.Worker == "" {
		return &messages.FieldError{Field: "worker", Reason: "is missing"}
	}
	return strict.CheckText("worker", r.Worker, maxSaid)
}
