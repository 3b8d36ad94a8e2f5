package messages

import (
	"encoding/json"
	"strings"
	"time"
)

// LabelRedriven is the label of a task that was sent again: the run that died, or the last part of the letter's subject.
const LabelRedriven = "redriven-from"

// DeadKind says what a dead letter is about.
type DeadKind string

// Kinds of dead letters.
const (
	DeadRun     DeadKind = "run"     // a task that cannot be worked; its run has ended
	DeadMessage DeadKind = "message" // a message that names no run
	DeadWebhook DeadKind = "webhook" // a webhook that could not be delivered
)

// DeadUnaddressed matches the letters that name no tenant.
const DeadUnaddressed = "dead._._.*"

// DeadOf is what the subject of a dead letter says.
type DeadOf struct {
	Kind   DeadKind
	Tenant string // empty: none
	Agent  string
	Name   string // of the run, or the last part of the subject
}

// ticketLetter comes before the ticket in the subject of a letter that is beside that of its run.
const ticketLetter = "ticket"

// ParseDeadSubject reads the subject of a dead letter.
func ParseDeadSubject(subject string) (of DeadOf, ok bool) {
	t := strings.Split(subject, ".")
	switch {
	case t[0] != "dead":
		return DeadOf{}, false
	case len(t) == 4 && t[1] == NoRun && t[2] == NoRun:
		return DeadOf{Kind: DeadMessage, Name: t[3]}, true
	case len(t) == 4:
		return DeadOf{DeadRun, t[1], t[2], t[3]}, true
	case len(t) == 6 && t[4] == ticketLetter:
		return DeadOf{DeadRun, t[1], t[2], t[3]}, true
	case len(t) == 5 && t[2] == "webhook":
		return DeadOf{Kind: DeadWebhook, Tenant: t[1], Name: t[4]}, true
	default:
		return DeadOf{}, false
	}
}

// DeadLetter is a dead letter as people see it.
type DeadLetter struct {
	Seq      uint64    `json:"seq"` // its number
	Kind     DeadKind  `json:"kind"`
	Tenant   string    `json:"tenant,omitempty"` // absent: it names none
	Agent    string    `json:"agent,omitempty"`  // of a run
	Run      string    `json:"run,omitempty"`
	Batch    string    `json:"batch,omitempty"` // of a webhook
	Host     string    `json:"host,omitempty"`  // of a webhook
	Error    RunError  `json:"error"`
	Subject  string    `json:"subject"` // that the message came on
	Attempts int       `json:"attempts,omitempty"`
	Time     time.Time `json:"time"`
	Size     int       `json:"size"` // of the body, in bytes
	// Task is the body, of a single letter alone: of a webhook its job, with the address. Raw is a body that is not JSON.
	Task json.RawMessage `json:"task,omitempty"`
	Raw  []byte          `json:"raw,omitempty"`
}
