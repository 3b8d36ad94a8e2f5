package control

import (
	"time"

	"github.com/longshore-run/longshore/messages"
)

// SubjectWhy asks what a run waits for, or what it does.
const SubjectWhy = "longshore.why" // RunRequest -> Why

// Why is what a run waits for, or what it does.
type Why struct {
	Tenant string          `json:"tenant"`
	ID     string          `json:"id"`
	Status messages.Status `json:"status"`
	Text   string          `json:"text"`            // one sentence, for people
	Since  time.Time       `json:"since,omitzero"`  // when that began
	Waits  string          `json:"waits,omitempty"` // as in RunStatus
	// Until is when the wait ends by itself.
	Until *time.Time      `json:"until,omitempty"`
	Cause *messages.Cause `json:"cause,omitempty"` // what went wrong with the model that it waits for

	Line      string `json:"line,omitempty"`      // the semaphore that has no permit for it
	Places    int    `json:"places,omitempty"`    // permits that the semaphore has
	Taken     int    `json:"taken,omitempty"`     // of them
	Ahead     int    `json:"ahead,omitempty"`     // runs that wait for the semaphore, or for their turn in the session, before it
	AheadMore bool   `json:"aheadMore,omitempty"` // there are more than were counted

	Session string `json:"session,omitempty"` // whose turn it waits for
	Turn    string `json:"turn,omitempty"`    // the run that has it, or the workspace

	Workspace string `json:"workspace,omitempty"` // the named one that it waits for

	Paused *PausedThing `json:"paused,omitempty"` // that keeps it
	Call   string       `json:"call,omitempty"`   // the tool call that waits
	Tool   string       `json:"tool,omitempty"`   // of the call, when it waits for an approval
	// Question is what a person is asked, of a run that waits for an answer or has spent its budget.
	Question string `json:"question,omitempty"`

	Worker  string `json:"worker,omitempty"` // that works it
	Step    int    `json:"step,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // claims since the last progress

	// Children are the runs that it waits for, each with what that one waits for: some of them, when they are many.
	Children []Why `json:"children,omitempty"`
}
