package agent

import (
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Entails are the records of what an action decides without any effect outside: the end of the turn before, the beginning
// of the next, the steps of a plan. After those of a CallModel or a Decide it is planned again; those of a Finish come
// before the end itself. There are none when the action is to be performed. Pure.
func (s *State) Entails(a Action) []record.Record {
	switch a := a.(type) {
	case *CallModel:
		if s.Calling || a.Summary {
			return nil
		}
		begin := &record.StepStarted{Step: a.Step, Purpose: a.Purpose}
		if s.StepOpen {
			return []record.Record{&record.StepEnded{Step: s.Step, Status: messages.StepCompleted}, begin}
		}
		return []record.Record{begin}
	case *Decide:
		return a.Records
	case *Finish:
		if s.StepOpen {
			return append(slices.Clip(a.Before), &record.StepEnded{Step: s.Step, Status: stepStatus(a.Status)})
		}
		return a.Before
	default:
		return nil
	}
}

func stepStatus(s messages.Status) messages.StepStatus {
	switch s {
	case messages.StatusCompleted:
		return messages.StepCompleted
	case messages.StatusCancelled:
		return messages.StepSkipped
	case messages.StatusFailed, messages.StatusQueued, messages.StatusRunning, messages.StatusWaiting:
		return messages.StepFailed
	default:
		return messages.StepFailed
	}
}
