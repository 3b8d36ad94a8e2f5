package audit

import "github.com/longshore-run/longshore/messages"

// Outcome says what came out of a comparison.
type Outcome string

// Outcomes.
const (
	OutcomeComplete   Outcome = "complete"   // the events of the run are those that its log gives
	OutcomeDiffers    Outcome = "differs"    // they are not
	OutcomeGone       Outcome = "gone"       // the run has no log
	OutcomeUnreadable Outcome = "unreadable" // the log cannot be read
)

// Comparison is what a run's events are next to its log.
type Comparison struct {
	Outcome Outcome `json:"outcome"`
	Entries int     `json:"entries"` // of the log
	Events  int     `json:"events"`  // that the log gives
	// Numbers of events, 100 at most of each. Missing: the log gives them, and they are not in EVENTS. Altered: what is in
	// EVENTS is something else. Extra: the log does not give them.
	Missing []uint64 `json:"missing,omitempty"`
	Altered []uint64 `json:"altered,omitempty"`
	Extra   []uint64 `json:"extra,omitempty"`
	More    bool     `json:"more,omitempty"` // there are others
	Reason  string   `json:"reason,omitempty"`

	run messages.Ref
}
