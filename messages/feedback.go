package messages

import (
	"time"
)

// EventFeedback is about a run and changes none: its subject is NoRun, so it may come after the run's end.
const EventFeedback = "feedback"

// Feedback is an opinion on a run, and the data of the event feedback.
type Feedback struct {
	Run     string            `json:"run"`
	ID      string            `json:"id"` // of the feedback
	At      time.Time         `json:"at"`
	Score   *float64          `json:"score,omitempty"`
	Comment string            `json:"comment,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Step    int               `json:"step,omitempty"`
	By      string            `json:"by,omitempty"`
}

// Says reports whether two feedbacks say the same, whenever they were given.
func (f *Feedback) Says(o *Feedback) bool {
	if (f.Score == nil) != (o.Score == nil) || f.Score != nil && *f.Score != *o.Score || len(f.Labels) != len(o.Labels) {
		return false
	}
	for k, v := range f.Labels {
		if got, ok := o.Labels[k]; !ok || got != v {
			return false
		}
	}
	return f.Run == o.Run && f.ID == o.ID && f.Comment == o.Comment && f.Step == o.Step && f.By == o.By
}
