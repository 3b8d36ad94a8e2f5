package control

import (
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Subjects of the requests about what runs wait for.
const (
	SubjectApprovals = "longshore.approvals" // ApprovalsRequest -> ApprovalList
	SubjectApprove   = "longshore.approve"   // DecisionRequest -> RunStatus; conflict when it was decided already
	SubjectDeny      = "longshore.deny"      // DecisionRequest -> RunStatus; conflict when it was decided already
	SubjectAnswer    = "longshore.answer"    // AnswerRequest -> RunStatus; conflict when it was decided already
)

// Limits of what a person says, in bytes.
const (
	maxSaid   = 1 << 10
	maxAnswer = 32 << 10
	maxCallID = 1 << 10
)

// DecisionRequest approves or denies what a run waits for.
type DecisionRequest struct {
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
	Call   string `json:"call,omitempty"` // that waits; absent: the run asks whether it may go beyond its budget
	Hash   string `json:"hash,omitempty"` // of the arguments that were seen; others are a conflict. Absent: whatever they are
	// Arguments, an object, take the place of those that the call waits with, where that is allowed. Absent: they stay.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	By        string          `json:"by,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	// Control makes it safe to ask again: the same decision under the same id counts once and succeeds.
	Control string `json:"control,omitempty"`
}

// Validate returns a *FieldError for the first field that is wrong; run and tenant are checked by Ref.
func (r *DecisionRequest) Validate() error {
	if err := strict.CheckText("call", r.Call, maxCallID); err != nil {
		return err
	}
	if len(r.Hash) != 0 && !isHash(r.Hash) {
		return &messages.FieldError{Field: "hash", Reason: "must be a SHA-256 in lower-case hex"}
	}
	if err := messages.CheckObject("arguments", r.Arguments, messages.MaxEdited); err != nil {
		return err
	}
	return checkSaid(r.By, r.Reason, r.Control)
}

func isHash(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

func checkSaid(by, reason, control string) error {
	if err := strict.CheckText("by", by, maxSaid); err != nil {
		return err
	}
	if err := strict.CheckText("reason", reason, maxSaid); err != nil {
		return err
	}
	if control == "" {
		return nil
	}
	return strict.CheckToken("control", control)
}

// AnswerRequest answers the question that a run waits with.
type AnswerRequest struct {
	Tenant  string `json:"tenant,omitempty"`
	ID      string `json:"id"`
	Call    string `json:"call,omitempty"` // whose question it is; absent: whatever is asked now
	Text    string `json:"text,omitempty"`
	Deny    bool   `json:"deny,omitempty"` // there is no answer: the call fails with the text, the budget ends
	By      string `json:"by,omitempty"`
	Control string `json:"control,omitempty"` // as in DecisionRequest
}

// Validate returns a *FieldError for the first field that is wrong; run and tenant are checked by Ref.
func (r *AnswerRequest) Validate() error {
	if err := strict.CheckText("call", r.Call, maxCallID); err != nil {
		return err
	}
	if err := strict.CheckText("text", r.Text, maxAnswer); err != nil {
		return err
	}
	return checkSaid(r.By, "", r.Control)
}

// ApprovalsRequest asks which calls wait for an approval.
type ApprovalsRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	Limit  int    `json:"limit,omitempty"`  // default 100, at most MaxApprovals
}

// MaxApprovals bounds one list.
const MaxApprovals = 1000

// Check returns the request with its defaults, or a *FieldError.
func (r ApprovalsRequest) Check() (ApprovalsRequest, error) {
	if r.Tenant == "" {
		r.Tenant = messages.DefaultTenant
	}
	if err := strict.CheckToken("tenant", r.Tenant); err != nil {
		return r, err
	}
	switch {
	case r.Limit < 0 || r.Limit > MaxApprovals:
		return r, &messages.FieldError{Field: "limit", Reason: "must be 1 to 1000"}
	case r.Limit == 0:
		r.Limit = 100
	}
	return r, nil
}

// ApprovalList answers an ApprovalsRequest.
type ApprovalList struct {
	Approvals []WaitingApproval `json:"approvals"`      // newest first
	More      bool              `json:"more,omitempty"` // there are more, or some could not be looked at
}

// WaitingApproval is a call that waits for an approval.
type WaitingApproval struct {
	Tenant    string     `json:"tenant"`
	ID        string     `json:"id"` // of the run
	Agent     string     `json:"agent"`
	Step      int        `json:"step"`
	Call      string     `json:"call"`
	Tool      string     `json:"tool"`
	Arguments string     `json:"arguments"`          // cut to 8 KiB
	Hash      string     `json:"hash"`               // of the whole arguments
	Editable  bool       `json:"editable,omitempty"` // it may be approved with other arguments
	Since     time.Time  `json:"since"`
	Until     *time.Time `json:"until,omitempty"`
}
