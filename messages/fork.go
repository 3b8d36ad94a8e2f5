package messages

import "github.com/longshore-run/longshore/messages/strict"

// Origin names the run that another one was forked from.
type Origin struct {
	Run  string `json:"run"`  // of the same tenant
	Seq  uint64 `json:"seq"`  // of the last entry of which something was kept
	Step int    `json:"step"` // the first step that is made anew
}

// Records are records inside a record, in the form of EncodeRecords.
type Records []Record

// MarshalJSON implements json.Marshaler.
func (rs Records) MarshalJSON() ([]byte, error) { return EncodeRecords(rs) }

// UnmarshalJSON implements json.Unmarshaler, strictly.
func (rs *Records) UnmarshalJSON(data []byte) (err error) {
	*rs, err = DecodeRecords(data)
	return err
}

// Forked is a record as a fork keeps it; ok is false for one that stays behind: it says who owned the run, what people
// asked of it, what its budget allowed, what its hooks did not hear, when it had its turn, that a call of the model was
// to be made again, or how it ended. A reply that was kept is not paid for again. What people told it is kept.
func Forked(r Record) (kept Record, ok bool) {
	switch r := r.(type) {
	case *Started, *Claimed, *Released, *Lost, *Parked, *Answered, *Expired, *CancelRequested, *BudgetWarned, *Finished,
		*Decided, *SessionGranted, *HookFailed, *Lined, *Unverified:
		return nil, false
	case *ModelFailed: // the wait before the next call stays behind too
		return r, r.Fallback != FallbackPark && r.Fallback != FallbackRetry
	case *Summarised:
		c := *r
		c.Usage, c.Cost, c.Cached = Usage{}, new(0.0), true
		return &c, true
	case *ModelReplied:
		c := *r
		c.Usage, c.Cost, c.Cached = Usage{}, new(0.0), true
		return &c, true
	default:
		return r, true
	}
}

// ForkRequest asks for a new run that begins with the steps of another one before At.
type ForkRequest struct {
	Tenant   string `json:"tenant,omitempty"` // default "default"
	ID       string `json:"id"`               // of the run to fork
	At       int    `json:"at"`               // the first step that is made anew, from 1; the run must have begun it
	Agent    string `json:"agent,omitempty"`  // whose definition holds from then on; default: that of the run
	Revision uint64 `json:"revision,omitempty"`
	Model    string `json:"model,omitempty"` // in place of the agent's models
	NewID    string `json:"newId,omitempty"` // of the new run; generated when absent
}

// Check returns a *FieldError for the first field that is wrong.
func (r *ForkRequest) Check() error {
	if r.At < 1 || r.At > maxStepsOf {
		return &FieldError{Field: "at", Reason: "must be the number of a step, from 1"}
	}
	for _, f := range []struct{ name, value string }{{"agent", r.Agent}, {"newId", r.NewID}} {
		if f.value == "" {
			continue
		}
		if err := strict.CheckToken(f.name, f.value); err != nil {
			return err
		}
	}
	if r.NewID == NoRun {
		return &FieldError{Field: "newId", Reason: "_ is taken: it stands for no run"}
	}
	if r.Revision != 0 && r.Agent == "" {
		return &FieldError{Field: "revision", Reason: "needs the name of an agent"}
	}
	return strict.CheckText("model", r.Model, maxModel)
}

// ForkReply answers a fork.
type ForkReply struct {
	Tenant    string `json:"tenant"`
	ID        string `json:"id"` // of the new run
	From      Origin `json:"from"`
	Kept      int    `json:"kept"`                // records
	Duplicate bool   `json:"duplicate,omitempty"` // the same fork had been made before
}
