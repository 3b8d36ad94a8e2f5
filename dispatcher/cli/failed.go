package cli

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// RunFailed says that a run was shown that ended failed or cancelled. It has been told on the error output already.
type RunFailed struct { //nolint:errname // it is the outcome of a run, not of the command
	ID     string
	Status messages.Status
	Err    *messages.RunError // nil when the result names none
}

func (e *RunFailed) Error() string {
	s := fmt.Sprintf("run %s ended %s", e.ID, e.Status)
	if e.Err != nil {
		s += fmt.Sprintf(": %s (%s)", e.Err.Message, e.Err.Code)
	}
	return visible(s)
}

// Unwrap returns why the run failed, a *messages.RunError.
func (e *RunFailed) Unwrap() error {
	if e.Err == nil {
		return nil
	}
	return e.Err
}

// failed is a *RunFailed unless the run succeeded.
func failed(r *messages.AgentResult) error {
	if r.Success {
		return nil
	}
	return &RunFailed{r.ID, r.Status, r.Error}
}
