package control

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of feedback, in bytes.
const (
	maxComment        = 8 << 10
	maxFeedbackLabels = 4 << 10
)

// Subjects of what people think of runs.
const (
	SubjectFeedback     = "longshore.feedback"      // FeedbackRequest -> Feedback; conflict when the id is that of another
	SubjectFeedbackList = "longshore.feedback_list" // RunRequest -> FeedbackList
)

// MaxFeedback bounds one list: the newest ones.
const MaxFeedback = 100

// FeedbackRequest says what a person or a program thinks of a run, in any state.
type FeedbackRequest struct {
	Tenant  string            `json:"tenant,omitempty"` // default "default"
	ID      string            `json:"id"`               // of the run
	Score   *float64          `json:"score,omitempty"`  // -1 (bad) to 1 (good)
	Comment string            `json:"comment,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Step    int               `json:"step,omitempty"`   // that it is about, from 1; absent: the whole run
	StepID  string            `json:"stepId,omitempty"` // instead of Step: that of the plan's step
	By      string            `json:"by,omitempty"`
	// Control makes it safe to ask again: the same feedback under the same id is stored once and succeeds.
	Control string `json:"control,omitempty"`
}

// Validate returns a *FieldError for the first field that is wrong; run and tenant are checked by Ref.
func (r *FeedbackRequest) Validate() error {
	if r.Score == nil && r.Comment == "" && len(r.Labels) == 0 {
		return &messages.FieldError{Field: "score", Reason: "is missing, and so are comment and labels"}
	}
	if r.Score != nil && !(*r.Score >= -1 && *r.Score <= 1) {
		return &messages.FieldError{Field: "score", Reason: "must be -1 to 1"}
	}
	if r.Step < 0 || r.Step > messages.MaxStepsOf {
		return &messages.FieldError{Field: "step", Reason: "must be the number of a step, from 1"}
	}
	if r.StepID != "" {
		if r.Step != 0 {
			return &messages.FieldError{Field: "stepId", Reason: "step is set too: give one of them"}
		}
		if err := strict.CheckToken("stepId", r.StepID); err != nil {
			return err
		}
	}
	if err := strict.CheckText("comment", r.Comment, maxComment); err != nil {
		return err
	}
	if err := messages.CheckLabels(r.Labels); err != nil {
		return err
	}
	if strict.Larger(r.Labels, maxFeedbackLabels) {
		return &messages.FieldError{Field: "labels", Reason: "larger than 4096 bytes as JSON"}
	}
	return checkSaid(r.By, "", r.Control)
}

// FeedbackList is what is kept of the feedback on a run.
type FeedbackList struct {
	Feedback []Feedback `json:"feedback"`       // newest first
	More     bool       `json:"more,omitempty"` // there is older one
}

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
	StepID  string            `json:"stepId,omitempty"` // of the plan's step
	By      string            `json:"by,omitempty"`
	// Memory is what becomes of the run's example in long-term memory, once the run has ended: its agent learns.
	Memory *messages.MemoryChange `json:"memory,omitempty"`
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
	return f.Run == o.Run && f.ID == o.ID && f.Comment == o.Comment && f.Step == o.Step && f.StepID == o.StepID && f.By == o.By
}
