package render

import (
	"cmp"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// RunFailed says that a run was shown that ended failed or cancelled. It has been told on the error output already.
type RunFailed struct { //nolint:errname // it is the outcome of a run, not of the command
	ID     string
	Status messages.Status
	Err    *messages.RunError // nil when the result names none
}

func (e *RunFailed) Error() string {
	text, code := Outcome(e.Status, e.Err)
	if code != "" {
		code = " (" + code + ")"
	}
	return Visible("run " + e.ID + " " + text + code)
}

// Outcome is how a run ended, in words, and the code of its error unless the words say the same.
func Outcome(status messages.Status, err *messages.RunError) (text, code string) {
	text = cmp.Or(string(status), "ended")
	if err == nil {
		return text, ""
	}
	if strings.HasPrefix(err.Message, text) { // as that of a cancelled run does
		text = err.Message
	} else {
		text += ": " + err.Message
	}
	if code = string(err.Code); code == string(status) {
		code = ""
	}
	return text, code
}

// Unwrap returns why the run failed, a *messages.RunError.
func (e *RunFailed) Unwrap() error {
	if e.Err == nil {
		return nil
	}
	return e.Err
}

// Failed is a *RunFailed unless the run succeeded.
func Failed(r *messages.AgentResult) error {
	if r.Success {
		return nil
	}
	return &RunFailed{r.ID, r.Status, r.Error}
}
