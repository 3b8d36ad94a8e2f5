package request_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// What an error means to the caller. One that is not meant for the caller shows nothing of itself.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		status int
		code   messages.Code
		detail string
	}{
		{&messages.FieldError{Field: "limit", Reason: "is too large"}, http.StatusBadRequest, messages.CodeInvalidInput, "is too large"},
		{messages.ErrUnknownAgent, http.StatusBadRequest, messages.CodeUnknownAgent, messages.ErrUnknownAgent.Error()},
		{messages.ErrRevision, http.StatusConflict, messages.CodeConflict, messages.ErrRevision.Error()},
		{runlog.ErrNotFound, http.StatusNotFound, messages.CodeNotFound, "no such run"},
		{runlog.ErrEnded, http.StatusConflict, messages.CodeConflict, "the run has ended"},
		{schedules.ErrScheduleMoved, http.StatusConflict, messages.CodeConflict, schedules.ErrScheduleMoved.Error()},
		{record.ErrNewerVersion, http.StatusNotImplemented, messages.CodeInternal, "the log was written by a newer version than this dispatcher's"},
		{nats.ErrMaxPayload, http.StatusRequestEntityTooLarge, messages.CodeInternal, "the answer is larger than the server's max_payload"},
		{request.Conflict("taken"), http.StatusConflict, messages.CodeConflict, "taken"},
		{errors.New("open /var/lib/longshore/key: permission denied"), http.StatusInternalServerError, messages.CodeInternal, "internal error"},
	} {
		p := request.Problem(fmt.Errorf("while it was answered: %w", tc.err))
		told := p.Detail == tc.detail || p.Detail == "while it was answered: "+tc.detail
		if !told || p.Status != tc.status || p.Code != tc.code || p.Title != http.StatusText(tc.status) {
			t.Errorf("%v: %+v", tc.err, p)
		}
	}
}
